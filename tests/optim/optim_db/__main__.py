"""``python -m optim_db``: walk torch's database of optimizers, print and write the table."""
from _database import main

from ._walk import ENTRIES, PHASES, walk

main("optim_db", ENTRIES, PHASES, walk)
