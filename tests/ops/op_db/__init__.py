"""torch's own op database as the oracle: each entry's samples are given to both libraries, in every phase.

``_entries`` finds our function of an entry, ``_convert`` carries arguments over, ``_compare`` says what differs,
``_phases`` walks one entry, ``_differences`` names what is meant to differ. ``python -m op_db`` (with ``tests/ops`` on the
path) walks all of them and writes the table.
"""
