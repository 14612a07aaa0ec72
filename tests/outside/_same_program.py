"""The same program on NumPy's arrays and on tensors: one expression, evaluated with both, and its results compared."""
import numpy as np

import ptcore as pt

DATA = {
    "x": np.asarray([1.0, 2.0, 3.0]), "f4": np.asarray([1, 2, 3], np.float32), "i": np.asarray([1, 2, 3]),
    "u2": np.asarray([1, 2, 3], np.uint16), "b": np.asarray([True, False, True]), "z": np.asarray([1j, 2, 3]),
    "nan": np.asarray([1.0, np.nan, 3.0]), "m": np.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
    "image": np.arange(48, dtype=np.uint8).reshape(4, 4, 3), "zero": np.zeros(3), "number": np.asarray(2.0),
}


def evaluated(program, scope):
    """{kind of operand: what the program gives}"""
    given = {}
    for kind, make in (("array", np.copy), ("tensor", pt.tensor)):
        names = {name: make(value) for name, value in DATA.items()}
        array = np.asarray if kind == "array" else lambda *args: pt.tensor(np.asarray(*args))
        given[kind] = eval(program, {**scope, **names, "np": np, "A": array})
    return given["array"], given["tensor"]
