"""Reaching a droplet: transports, logins, host keys, and running the remote scripts."""
