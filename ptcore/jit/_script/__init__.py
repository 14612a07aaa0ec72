"""Programs of Python as graphs with static types: the compiler of ``jit.script``."""
