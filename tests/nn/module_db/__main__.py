"""``python -m module_db``: walk torch's database of modules, print and write the table."""
from _database import main

from ._walk import ENTRIES, PHASES, walk

main("module_db", ENTRIES, PHASES, walk)
