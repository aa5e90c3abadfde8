"""From a target to an authenticated connection: jump hosts, limits, failures told apart."""
