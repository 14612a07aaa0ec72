"""Runnable examples: ``python -m ptcore.examples.digits``, ``.gpt`` and ``.hogwild``."""
