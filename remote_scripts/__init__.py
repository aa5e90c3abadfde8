"""What runs on the droplet: the standard library only, Python 3.10 and newer."""
