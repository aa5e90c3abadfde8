"""The lab: real droplets for the tests, booted in seconds on this machine (root, Debian)."""
