"""Ticks from a droplet, rebuilt into complete samples."""
