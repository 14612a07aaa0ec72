"""Keys of indexing that hypothesis draws, and what NumPy makes of them by PyTorch's rules."""
import numpy as np
from hypothesis import strategies as st

SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=5).map(tuple)


@st.composite
def slices(draw, n, negative=True):
    bound = st.none() | st.integers(-n - 2, n + 2)
    step = draw(st.none() | st.integers(-3 if negative else 1, 3).filter(bool))
    return slice(draw(bound), draw(bound), step)


def _array(draw, n, length):
    """Positions in a dim of size n, in a shape that broadcasts with (2, length)."""
    shapes = [(length,), (1,), (2, 1), (1, length), (2, length), ()]
    shape = draw(st.sampled_from([s for s in shapes if n or 0 in s]))
    values = draw(st.lists(st.integers(-n, max(n - 1, 0)), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    return np.array(values, draw(st.sampled_from([np.int64, np.int32]))).reshape(shape)


def _mask(draw, shape, length):
    """A mask with ``length`` true elements."""
    order = draw(st.permutations(range(int(np.prod(shape)))))
    mask = np.zeros(int(np.prod(shape)), bool)
    mask[list(order[:length])] = True
    return mask.reshape(shape)


@st.composite
def mixed_keys(draw, shape, negative=True):
    """Ints, slices, None, Ellipsis, integer arrays and lists that broadcast together, masks of one or more dims."""
    ndim = len(shape)
    front = draw(st.integers(0, ndim))
    rear = draw(st.integers(0, ndim - front))
    length = draw(st.integers(0, 3))
    key = []

    def section(dims):
        dims = list(dims)
        while dims:
            kind = draw(st.sampled_from(["slice", "slice", "int", "array", "array", "list", "mask", "none"]))
            d = dims[0]
            if kind == "none":
                key.append(None)
                continue
            taken = 1
            if kind == "int" and shape[d]:
                key.append(draw(st.integers(-shape[d], shape[d] - 1)))
            elif kind in ("array", "list") and (shape[d] or not length):
                index = _array(draw, shape[d], length)
                key.append(index.tolist() if kind == "list" and index.ndim and index.size else index)
            elif kind == "mask":
                taken = draw(st.integers(1, len(dims)))
                size = [shape[i] for i in dims[:taken]]
                if int(np.prod(size)) < length:
                    continue
                key.append(_mask(draw, size, length))
            else:
                key.append(draw(slices(shape[d], negative)))
            del dims[:taken]

    section(range(front))
    if rear or draw(st.booleans()):
        key.append(Ellipsis)
        section(range(ndim - rear, ndim))
    return tuple(key)


def dims_of(item):
    """How many dims an item of a key takes."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, np.ndarray) and item.dtype == bool else 1


def selected(a, key):
    """(a view of a, a key without ints or Ellipsis): ints select before arrays index, as in PyTorch.

    NumPy takes an int beside arrays for an array, and an Ellipsis that stands for no dim for something between them.
    """
    rest = a.ndim - sum(dims_of(item) for item in key)
    items = []
    for item in key:
        items += [slice(None)] * rest if item is Ellipsis else [item]
    if not any(item is Ellipsis for item in key):
        items += [slice(None)] * rest
    first, then = [], []
    for item in items:
        number = isinstance(item, int) or (isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype != bool)
        if number:
            first.append(int(item))
            continue
        then.append(item)
        first += [slice(None)] * dims_of(item)
    return a[(*first, Ellipsis)], tuple(then)


@st.composite
def problems(draw, negative=True):
    shape = draw(SHAPES)
    return shape, draw(mixed_keys(shape, negative))
