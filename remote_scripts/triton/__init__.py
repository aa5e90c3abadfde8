"""Triton servers: found wherever they run, their state, statistics and metrics."""
