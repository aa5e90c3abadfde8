"""Whether a droplet is the one it says it is."""
