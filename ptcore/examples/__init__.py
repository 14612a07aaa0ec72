"""Runnable examples: ``python -m ptcore.examples.digits`` and ``.gpt``."""
