"""What Overview is made of: each panel turns a picture of a droplet into lines, and into figures to take along."""
