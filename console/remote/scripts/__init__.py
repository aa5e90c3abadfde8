"""Running the remote scripts over a transport (docs/wire.md 1)."""
