"""What is known about NVIDIA Triton: its statistics, models and words."""
