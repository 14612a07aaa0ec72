"""A list whose items are kept as bytes in one block of memory."""

import pickle

import ptcore

__all__ = ["SharedList"]


class SharedList:
    """A read-only sequence of objects that workers share.

    Worker processes that are forked share the objects of a list only until they read them: reading counts
    references, which copies the page of each object into each process; those that are spawned get copies of all. Here
    the items lie as pickled bytes in one block of shared memory, of which nothing is written, and one is made anew
    whenever it is asked for.

    Parameters
    ----------
    items : iterable
        Objects that can be pickled.

    Examples
    --------
    >>> from ptcore.utils.data import SharedList
    >>> files = SharedList([("cat.png", 3), ("dog.png", 5)])
    >>> len(files), files[1], files[-2:]
    (2, ('dog.png', 5), [('cat.png', 3), ('dog.png', 5)])
    """

    def __init__(self, items):
        ends, parts, end = [0], bytearray(), 0
        for item in items:
            part = pickle.dumps(item, protocol=5)
            parts += part
            end += len(part)
            ends.append(end)
        # Shared before anything knows their addresses: what is known outside cannot be moved.
        self._bytes, self._ends = ptcore.empty(len(parts), dtype=ptcore.uint8), ptcore.tensor(ends)
        self._bytes.share_memory_()
        self._ends.share_memory_()
        if parts:
            self._bytes.copy_(ptcore.frombuffer(parts, dtype=ptcore.uint8))

    def __len__(self):
        return len(self._ends) - 1

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        n, i = len(self), index.__index__()
        if not -n <= i < n:
            raise IndexError(f"SharedList: index {i} is out of range for {n} items")
        i %= n
        start, end = self._ends[i:i + 2].tolist()
        return pickle.loads(memoryview(self._bytes[start:end].numpy()))

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __repr__(self):
        return f"SharedList({len(self)} items, {self._bytes.numel()} bytes)"
