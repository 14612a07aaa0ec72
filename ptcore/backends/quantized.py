"""Engines of quantized operations: there are none."""
engine = "none"
supported_engines = ["none"]
