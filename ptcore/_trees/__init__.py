"""Trees of containers."""
