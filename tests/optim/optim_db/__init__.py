"""torch's database of optimizers as the oracle: each entry's settings are given to both libraries, in every phase.

``_walk`` walks one entry. ``python -m optim_db`` (with ``tests``, ``tests/ops`` and ``tests/optim`` on the path) walks
all of them and writes the table.
"""
