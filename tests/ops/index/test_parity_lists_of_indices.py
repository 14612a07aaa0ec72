"""Lists that PyTorch takes for tuples of indices, with its warning, and those that it takes for positions."""
import warnings

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

KEYS = {
    "tensors": lambda t: [t([0]), t([1])], "slices": lambda t: [slice(None), slice(0, 2)],
    "lists": lambda t: [[0, 1], [1, 2]], "one list": lambda t: [[0, 1]], "positions": lambda t: [0, 1],
    "None": lambda t: [None, 0], "Ellipsis": lambda t: [..., 0], "one tensor": lambda t: [t([0, 1])],
    "numbers in tensors": lambda t: [t(0), t(1)], "tensor and int": lambda t: [t([0, 1]), 0],
    "mask": lambda t: [t([True, False])], "arrays": lambda t: [np.array([0]), np.array([1])],
    "tuples": lambda t: [(0, 1), (1, 2)], "range": lambda t: [range(2)], "list and slice": lambda t: [[0], slice(0, 2)],
    "many": lambda t: [0] * 33, "many tensors": lambda t: [t(0)] * 33, "bools": lambda t: [True, False],
    "nothing": lambda t: [], "an empty list": lambda t: [[]], "NumPy's numbers": lambda t: [np.int64(0), np.int64(1)],
}


@pytest.mark.parametrize("name", KEYS)
def test_as_in_pytorch(name):
    found = []
    for lib in (pt, torch):
        key, x, y = KEYS[name](lib.tensor), lib.arange(24).reshape(2, 3, 4), lib.zeros(2, 3, 4)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            read = x[key].tolist()
            y[key] = 1
        found.append((read, y.tolist(), {str(w.message)[:66] for w in told}))
    assert found[0] == found[1]


def test_other_calls_of_names():
    assert pt.arange(end=3).tolist() == torch.arange(end=3).tolist()
    with pytest.raises(TypeError, match="start or end"):
        pt.arange()
    assert pt.IntTensor(range(3)).tolist() == torch.IntTensor(range(3)).tolist()
