"""What is kept on this side: known hosts, audit log, recordings."""
