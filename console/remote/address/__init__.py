"""Where a droplet is: what ssh itself would use for that name."""
