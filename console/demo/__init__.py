"""The practice droplet: a folder of this machine's that the console reaches as it reaches any droplet."""
