"""torch's database of modules as the oracle: each entry's inputs are given to both libraries, in every phase.

``_walk`` walks one entry. ``python -m module_db`` (with ``tests``, ``tests/ops`` and ``tests/nn`` on the path) walks
all of them and writes the table.
"""
