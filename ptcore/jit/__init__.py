"""Programs as graphs that are saved, loaded and made fast."""
