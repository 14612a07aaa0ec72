"""Calls with blocks: functions whose nodes carry closed graphs (``Node.blocks``), for branches, loops and ``with``.

A block has access to its own arguments alone: values of the graph around it are passed to it. All results are tuples,
and ``operator.getitem`` takes their parts. To run a node, call its target with callables for its blocks.
"""

NAMES = ("cond", "loop", "with_block")


def cond(predicate, *captured, blocks):
    """Runs the first block if the predicate is true, otherwise the second; both get ``captured``."""
    return blocks[0 if predicate else 1](*captured)


def loop(trips, condition, *values, blocks):
    """Runs its block while a condition holds, at most ``trips`` times unless ``trips`` is None.

    The block is called with the number of the round and ``values``, and returns the next condition and the next values.
    If it returns fewer values than it gets, the last ones stay the same in each round.

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
    """Runs its block inside a context manager. The block gets the result of ``__enter__`` and ``captured``."""
    with context as entered:
        return blocks[0](entered, *captured)
