"""torch.special's Bessel functions, orthogonal polynomials, zeta, ndtri and airy_ai: values, dtypes, errors; names."""
import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

S, TS = pt.special, torch.special
KINDS = [f"chebyshev_polynomial_{k}" for k in "tuvw"]
NAMES = ["airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1",
         "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0", "ndtri", "zeta",
         "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
         *KINDS, *[f"shifted_{k}" for k in KINDS]]
TWO = [n for n in NAMES if n == "zeta" or "polynomial" in n]
ONE = [n for n in NAMES if n not in TWO] + ["modified_bessel_i0", "modified_bessel_i1"]
# PyTorch's Bessel functions of float64 are good to about eight digits, its polynomials by
# cosines to as many as are left after n * arccos(x).
BESSEL = {"airy_ai": 3e-6, **dict.fromkeys(("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"), 1e-6)}


def near(name, mine, theirs, dtype):
    tolerance = 4e-6 if dtype == "float32" else BESSEL.get(name, 1e-12)
    scale = np.maximum(np.abs(theirs), 1)
    with np.errstate(invalid="ignore"):         # inf - inf
        close = np.abs(mine - theirs) <= tolerance * scale
    wrong = ~((mine == theirs) | (np.isnan(mine) & np.isnan(theirs)) | close)
    assert not wrong.any(), (mine[wrong], theirs[wrong])


def both(name, *arrays):
    return [getattr(lib, name)(*[make(a) for a in arrays]).numpy()
            for lib, make in ((S, pt.from_numpy), (TS, torch.from_numpy))]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ONE)
def test_of_one(name, dtype):
    x = np.concatenate([np.linspace(-20, 20, 81), [0.1, 1e-8, 1e-30, -1e-8, np.nan]])
    if name == "ndtri":
        x = np.concatenate([np.linspace(0, 1, 81), [1e-8, 1e-30, -1, 2, np.nan]])
    near(name, *both(name, x.astype(dtype)), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [n for n in TWO if n != "zeta"])
def test_polynomials(name, dtype):
    x = np.concatenate([np.linspace(-1, 1, 41), np.linspace(-3, 3, 13), [1e-8, -1e-30]]).astype(dtype)
    n = np.array([-3, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 2.7, -0.5]).astype(dtype)
    if dtype == "float32":                  # the size of the intermediate terms is what PyTorch's error goes by
        n = n[n < 7]
    near(name, *both(name, *np.broadcast_arrays(x[:, None], n)), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeta(dtype):
    x = np.concatenate([np.linspace(-2, 9, 45), [1, np.nan]]).astype(dtype)
    q = np.array([-2, -1.5, 0, 0.5, 1, 1.5, 2, 3, 10, 100, np.nan]).astype(dtype)
    near("zeta", *both("zeta", *np.broadcast_arrays(x[:, None], q)), dtype)


def outcome(f, *args):
    """The dtype of a result, or the class of the error."""
    try:
        return str(f(*args).dtype).split(".")[1]
    except (TypeError, RuntimeError) as e:      # NotImplementedError is one
        return type(e) if not isinstance(e, NotImplementedError) else NotImplementedError


DTYPES = ["bool", "uint8", "int16", "int64", "float32", "float64"]


@pytest.mark.parametrize("name", NAMES)
def test_dtypes(name):
    for a in DTYPES:
        made = [lib.ones(3, dtype=getattr(lib, a)) for lib in (pt, torch)]
        if name in ONE:
            assert outcome(getattr(S, name), made[0]) == outcome(getattr(TS, name), made[1]), a
            continue
        for b in DTYPES:
            for shape in ((3,), ()):
                more = [lib.ones(shape, dtype=getattr(lib, b)) for lib in (pt, torch)]
                assert outcome(getattr(S, name), made[0], more[0]) == outcome(getattr(TS, name), made[1], more[1])
                assert outcome(getattr(S, name), more[0], made[0]) == outcome(getattr(TS, name), more[1], made[1])
        for number in (2, 2.5, True):
            assert outcome(getattr(S, name), made[0], number) == outcome(getattr(TS, name), made[1], number)
            assert outcome(getattr(S, name), number, made[0]) == outcome(getattr(TS, name), number, made[1])


@pytest.mark.parametrize("name", NAMES)
def test_errors(name):
    for make in (lambda lib: [], lambda lib: [2.0], lambda lib: ["x"], lambda lib: [None],
                 lambda lib: [lib.ones(2, dtype=lib.complex64)], lambda lib: [2.0, 3.0],
                 lambda lib: [lib.ones(2), lib.ones(3)], lambda lib: [lib.ones(2), "x"],
                 lambda lib: [lib.ones(2), None], lambda lib: [lib.ones(2, dtype=lib.complex64), 2]):
        mine, theirs = outcome(getattr(S, name), *make(pt)), outcome(getattr(TS, name), *make(torch))
        assert isinstance(theirs, type)
        assert mine is theirs or issubclass(mine, theirs), make(pt)


def test_gradients():
    """Where PyTorch has them."""
    for name, args in (("ndtri", [np.linspace(0.01, 0.99, 9)]), ("zeta", [np.float64(3.5), np.linspace(0.5, 4, 9)])):
        found = []
        for lib in (pt, torch):
            tensors = [lib.tensor(a) for a in args]
            tensors[-1].requires_grad_()
            getattr(lib.special, name)(*tensors).sum().backward()
            found.append(tensors[-1].grad.numpy())
        np.testing.assert_allclose(*found, rtol=1e-12)


def test_names():
    own = {n for n in dir(TS) if not n.startswith("_")} - {"Tensor", "torch", "common_args", "multi_dim_common"}
    assert own <= set(dir(S))
    assert own <= set(S.__all__)
