"""droplet-console: operations for GPU droplets that serve models with NVIDIA Triton."""

__version__ = "0.1.0"
