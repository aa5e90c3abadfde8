"""What a droplet is: one typed document, read from what `facts` sends (remote_scripts/facts.py)."""
