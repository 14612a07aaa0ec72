"""Sizes that are symbols: the numbers (``symbolic``) and what they are made of (``expressions``)."""
