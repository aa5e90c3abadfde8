"""Proving who logs in: agent, keys, certificates, passwords, second factors."""
