"""config.yaml, read into typed settings."""
