"""The folder of ``ptcore.pc``, which the entry point ``pkg_config`` names."""
