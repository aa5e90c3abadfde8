"""Commands over an SSH connection, and the one typed door to paramiko."""
