"""The parts of `facts`, each failing by itself."""
