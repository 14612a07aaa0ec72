"""Calls with blocks: functions whose nodes carry closed graphs (``Node.blocks``), for branches, loops and ``with``.

A block sees nothing but its own arguments: what it uses of the graph around it is passed to it. All results are tuples,
of which ``operator.getitem`` takes the parts. Whoever runs a node calls its target with callables for its blocks.
"""

NAMES = ("cond", "loop", "with_block")


def cond(predicate, *captured, blocks):
    """The first block's results if the predicate is true, else the second's; both get ``captured``."""
    return blocks[0 if predicate else 1](*captured)


def loop(trips, condition, *values, blocks):
    """Runs its block as long as a condition holds, at most ``trips`` times if that is no None.

    The block is called with the number of the round and ``values``; it gives the next condition and the values of the
    next round. It may give fewer than it gets: those behind are the same in each round.

    Returns
    -------
    tuple
        The values that the block gives, of the last round.
    """
    (block,) = blocks
    k, n = 0, block.results - 1
    fixed, values = values[n:], values[:n]
    while condition and (trips is None or k < trips):
        condition, *values = block(k, *values, *fixed)
        k += 1
    return tuple(values)


def with_block(context, *captured, blocks):
    """Runs its block inside a context manager: the block gets what ``__enter__`` gives, and ``captured``."""
    with context as entered:
        return blocks[0](entered, *captured)
