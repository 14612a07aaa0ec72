"""A list whose items are kept as bytes in one block of memory."""

import pickle

import ptcore

__all__ = ["SharedList"]


class SharedList:
    """A read-only sequence of objects that workers share.

    Forked worker processes share the objects of a list only until they read them: reading changes reference counts,
    which copies the page of each object into each process. Spawned processes get copies of all objects. This list keeps
    its items as pickled bytes in one block of shared memory that is never written to, and makes an item anew at each
    read.

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
        # The memory is shared before its address is used elsewhere, since memory with a known address cannot be moved.
        self._bytes = ptcore.empty(len(parts), dtype=ptcore.uint8, device="cpu")
        self._ends = ptcore.tensor(ends, device="cpu")
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
