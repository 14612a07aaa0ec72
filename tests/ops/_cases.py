"""From rows to test cases: the arguments, dtypes and memory layouts an op is tried with.

A case is a list of arguments in signature order, where ``F`` (data of the dtype under test),
``I`` (int64 positions), ``B`` (a mask) and lists of ``F`` stand for tensors and everything else
is a parameter. ``Sample`` draws NumPy arrays for a case and makes the ptcore arguments from
them in a given layout; the arrays themselves go to the reference. Elementwise rows need no
entry here: their cases follow from the signature and the ``sample`` column.
"""
import importlib
import math

import _cases_attention
import _cases_factor
import _cases_fft
import _cases_window
import numpy as np
from _composite_cases import COMPOSITES
from _composite_cases import TYPES as COMPOSITE_TYPES
from _specs import B, C, F, I, Of

import ptcore
from ptcore._ops import rows
from ptcore._ops.table import schema

LAYOUTS = ("contiguous", "transposed", "sliced", "reversed", "offset")
INTEGERS = schema.INTEGRAL
WIDE = {"float16": "float64", "bfloat16": "float64", "float32": "float64",
        "complex64": "complex128"}
ROWS = {r.name: r for r in rows() if r.family != "registered"}
ELEMENTWISE = [r for r in ROWS.values() if r.kind == "elementwise"]


def function(row):
    """The compiled function of a row, internal ones included."""
    module = importlib.import_module("ptcore._ops.functions")
    return getattr(module, row.name)


def inplace_function(row):
    module = importlib.import_module("ptcore._ops.functions")
    return getattr(module, row.name + "_")


def run_args(row):
    """The parameters that the op itself takes (a selecting parameter picks another op)."""
    return [a for a in row.args if a.name not in (row.select or {})]


# -- values --------------------------------------------------------------------------------------

def draw(rng, shape, dtype, domain=None, away_from_kinks=False):
    """Values of a dtype, rounded to it, held in NumPy's dtype of that name (bfloat16: float32)."""
    kind, low, high = domain or ("uniform", -3, 3)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in INTEGERS:
        low, high = math.ceil(low), math.floor(high)
        if dtype.startswith("u"):
            low = max(low, 0)
        high = max(low, high)           # where the domain has no whole number: the first beyond it
        return rng.integers(low, high + 1, shape).astype(dtype)
    if kind == "integers":
        return rng.integers(low, high + 1, shape).astype(storage_dtype(dtype))
    values = rng.uniform(low, high, shape)
    if away_from_kinks:
        near = np.abs(values * 2 - np.rint(values * 2)) < 0.1
        values = np.where(near, values + (0.11 if high > 0.5 else -0.11), values)
        values = np.clip(values, low, high)
    if dtype.startswith("complex"):
        return (values + 1j * rng.uniform(low, high, shape)).astype(dtype)
    return rounded(values, dtype)


def storage_dtype(dtype):
    return "float32" if dtype == "bfloat16" else dtype


def rounded(values, dtype):
    values = np.asarray(values).astype(storage_dtype(dtype))
    return from_bits(to_bits(values)) if dtype == "bfloat16" else values


def to_bits(values):
    """The bits of the nearest bfloat16, ties to even."""
    values = np.asarray(values, np.float32)
    bits = values.view(np.uint32).astype(np.uint64)
    bits = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), bits)


def from_bits(bits):
    return (np.asarray(bits, np.uint32) << 16).view(np.float32)


def widened(values, dtype):
    """What the reference computes with."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "fc":
        return values.astype(WIDE.get(dtype, values.dtype))
    return values


# -- layouts -------------------------------------------------------------------------------------

def laid_out(values, layout):
    """An ndarray equal to values whose memory is laid out otherwise."""
    values = np.array(values, order="C")
    if values.ndim == 0:
        return values
    if layout == "transposed":
        return np.asfortranarray(values)
    if layout == "sliced":              # every second element of the last dim of a larger array
        wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1] + 1), values.dtype)
        wide[..., 1::2] = values
        return wide[..., 1::2]
    if layout == "reversed":
        flipped = values[(slice(None, None, -1),) * values.ndim].copy()
        return flipped[(slice(None, None, -1),) * values.ndim]
    if layout == "offset":              # not at the start of its storage, rows apart
        larger = np.zeros([n + 2 for n in values.shape], values.dtype)
        window = larger[(slice(1, -1),) * values.ndim]
        window[...] = values
        return window
    if layout == "channels_last" and values.ndim in (4, 5):
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(values, 1, -1)), -1, 1)
    return values


def tensor(values, dtype, layout="contiguous"):
    """A ptcore tensor of a dtype with these values in a layout."""
    if dtype == "bfloat16":
        return ptcore.from_numpy(laid_out(to_bits(values), layout)).view(ptcore.bfloat16)
    return ptcore.from_numpy(laid_out(values, layout))


def array(t):
    """The values of a tensor as an ndarray (bfloat16 as float32), by memory, without casts."""
    t = t.detach()
    if t.dtype is ptcore.bfloat16:
        return from_bits(t.view(ptcore.uint16).numpy())
    return t.numpy()


# -- cases ---------------------------------------------------------------------------------------

class Sample:
    """One case drawn for a dtype: ``values`` for the reference, ``arguments`` for the op."""

    def __init__(self, row, case, dtype, rng, away_from_kinks=False):
        self.row, self.dtype = row, dtype
        self.args = run_args(row)
        if len(case) < len(self.args):
            case = [*case, *[a.default for a in self.args[len(case):]]]
        self.case = case

        def drawn(spec, i):
            if isinstance(spec, F):
                own = "bool" if row.promote == "where" and i == 0 else dtype
                return np.asarray(draw(rng, spec.shape, own, spec.domain or row.sample,
                                       away_from_kinks))
            if isinstance(spec, B):
                return np.asarray(rng.random(spec.shape) < 0.5)
            if isinstance(spec, I):
                return spec.values
            if isinstance(spec, (list, tuple)) and spec and isinstance(spec[0], (F, I)):
                return tuple(drawn(s, -1) for s in spec)
            return spec

        self.data = []
        for i, spec in enumerate(case):
            self.data.append(drawn(spec, i) if not isinstance(spec, Of) else self.derived(spec))

    def derived(self, spec):
        """In the dtype of statistics: float32 beside halves."""
        values = spec.function(*[widened(v, self.dtype) for v in self.data])
        dtype = self.dtype if self.dtype == "float64" or values.dtype.kind == "c" else "float32"
        return values.astype(dtype)

    @property
    def values(self):
        """What the reference gets: arrays widened, dtypes by NumPy's name."""
        def plain(v):
            if isinstance(v, tuple):
                return tuple(plain(x) for x in v)
            if isinstance(v, ptcore.dtype):
                return storage_dtype(v.name)
            if floats and isinstance(v, np.ndarray) and v.dtype.kind in "biu":
                return v.astype(float)
            return widened(v, self.dtype)

        floats = self.row.promote == "float"
        return [plain(v) for v in self.data]

    def arguments(self, layout="contiguous", make=tensor):
        """The ptcore arguments: (positional, keyword)."""
        def convert(v, spec):
            if isinstance(v, np.ndarray):
                own = self.dtype if isinstance(spec, F) and v.dtype != bool else v.dtype.name
                return make(v, own, layout)
            if isinstance(v, tuple) and v and isinstance(v[0], np.ndarray):
                return tuple(convert(x, s) for x, s in zip(v, spec))
            return v

        made = [convert(v, s) for v, s in zip(self.data, self.case)]
        positional = [v for v, a in zip(made, self.args) if not a.keyword_only]
        return positional, {a.name: v for v, a in zip(made, self.args) if a.keyword_only}

    def expected(self):
        """The reference's results as a list, None where there is no reference value."""
        from _references import evaluate
        result = evaluate(self.row.reference, "".join(a.letter for a in self.args),
                          [a.name for a in self.args], self.values)
        return list(result) if isinstance(result, tuple) else [result]


def elementwise_cases(row):
    """Cases of an elementwise row: one shape, broadcasting, 0-d, empty."""
    def case(*shapes):
        shapes = iter(shapes)
        result = []
        for a in run_args(row):
            if a.letter == "I":
                result.append(B(*next(shapes)))
            elif a.is_tensor:
                result.append((C if (row.name, a.name) in CONSTANT else F)(*next(shapes)))
            else:
                result.append(PARAMETERS.get((row.name, a.name), a.default))
        return result

    n = len(row.tensors)
    if row.name == "assign":            # its result has the first operand's shape
        return [case((3, 5), (3, 5)), case((3, 5), (5,)), case((2, 67), ()), case((), ())]
    cases = [case(*[(3, 5)] * n), case(*[(2, 3, 67)] * n), case(*[()] * n), case(*[(0, 3)] * n)]
    if n > 1:
        cases += [case(*[(4, 1), (1, 3), (4, 3)][:n]), case(*[(), (3,), (2, 1)][:n]),
                  case(*[(2, 3), (), (3,)][:n]), case(*[(0, 1), (1, 3), ()][:n])]
    return cases


# No derivative by it is implemented, in PyTorch neither: it raises (tests/ops/special/test_parity_special.py).
CONSTANT = {("igamma", "input"), ("igammac", "input"), ("zeta", "input"),
            *((n, "n") for n in ROWS if "polynomial_" in n or n in ("jacobi_ratio", "laguerre_of"))}
PARAMETERS = {("add_scaled", "alpha"): 2, ("sub_scaled", "alpha"): 3, ("polygamma_of", "n"): 1.0,
              ("bessel_j_of", "order"): 2.0, ("spherical_bessel_j_of", "order"): 2.0, ("jacobi_ratio", "alpha"): 0.5,
              ("jacobi_ratio", "beta"): 1.5, ("laguerre_of", "alpha"): 1.0,
              ("nan_replaced", "nan"): 1.5, ("nan_replaced", "posinf"): 2.5, ("nan_replaced", "neginf"): -2.5,
              ("huber_of", "delta"): 1.25, ("threshold", "threshold"): 1, ("threshold", "value"): 2}


def reductions(extra=()):
    return [[F(3, 5), None, *extra], [F(3, 5), 0, *extra], [F(2, 3, 4), (0, 2), *extra],
            [F(2, 3, 4), -1, *extra], [F(), None, *extra], [F(2, 40, 33), 1, *extra]]


GROUP_MEAN = Of(lambda g, x: x.reshape(x.shape[0], 2, -1).mean(axis=2))
GROUP_RSTD = Of(lambda g, x, mean: 1 / x.reshape(x.shape[0], 2, -1).std(axis=2))
ROW_MEAN = Of(lambda g, x: x.mean(axis=1, keepdims=True))
ROW_INVERSE = Of(lambda g, x: (x * x).mean(axis=1, keepdims=True) ** -0.5)
ROW_RSTD = Of(lambda g, x, mean: 1 / x.std(axis=1, keepdims=True))
POSITIONS = I([[0, 2, 1], [1, 1, 0]])


def _segments(*args):
    from _references import _segments
    return _segments(*args)


def _ctc(g, x, labels, input_lengths, target_lengths, *rest):
    from _references import _ctc_loss_stats
    return _ctc_loss_stats(x, labels, input_lengths, target_lengths, 0)


CASES = {
    "sum": [*reductions(), *reductions([True]), [F(0, 3), 0], [F(2, 0), 1]],
    "prod_dims": [*reductions()[:5], [F(3, 4), 1, True]],
    "mean": [*reductions(), *reductions([True])], "mean_of_terms": reductions(),
    "amax": [*reductions(), *reductions([True])], "amin": [*reductions(), *reductions([True])],
    "max_dim": [[F(3, 5), 1], [F(3, 5), 0, True], [F(2, 40, 5), -2]],
    "min_dim": [[F(3, 5), 1], [F(3, 5), 0, True], [F(2, 40, 5), -2]],
    "argmax": [[F(3, 5), None], [F(3, 5), 0], [F(3, 5), 1, True]],
    "argmin": [[F(3, 5), None], [F(3, 5), 0], [F(3, 5), 1, True]],
    "any": [*reductions(), [F(0, 2), 0]], "all": [*reductions(), [F(0, 2), 0]],
    "hash_tensor": reductions([False, 0]),
    "count_nonzero": [[F(3, 5), None], [F(3, 5), 0], [F(2, 3, 4), (0, 2)]],
    "var_dims": [*reductions([1.0]), *reductions([0.0, True])[:4], [F(3, 5), 1, 2.0]],
    "std_dims": [*reductions([1.0]), *reductions([0.0, True])[:4], [F(3, 5), 1, 2.0]],
    "logsumexp_of": [[F(3, 5), 0], [F(3, 5), (0, 1)], [F(2, 3, 4), -1, True]],
    "logsumexp": [[F(3, 5), 0], [F(3, 5), (0, 1)], [F(2, 3, 4), -1, True]],
    "vector_norm": [[F(3, 5), p, dim, keep] for p in (2.0, 1.0, 0.0, 3.0, math.inf, -math.inf)
                    for dim, keep in ((None, False), (1, True))],
    "cumsum": [[F(3, 5), 0], [F(3, 5), -1], [F(2, 3, 40), 1]],
    "cumprod": [[F(3, 5), 0], [F(3, 5), -1], [F(2, 3, 40), 1]],
    "sort": [[F(3, 5), 0], [F(3, 5)], [F(2, 40, 3), 1, True], [F(2, 2000), -1], [F(), 0]],
    "topk": [[F(3, 5), 2], [F(5, 3), 4, 0, False], [F(2, 40, 3), 7, 1], [F(3, 4), 0], [F(), 1]],
    "argsort": [[F(3, 5)], [F(2, 7), 0, True]],
    "einsum": [["ij,jk->ik", [F(3, 4), F(4, 2)]], ["ii->i", [F(3, 3)]], ["...i,...i", [F(2, 3), F(2, 3)]],
               ["bij,bjk,k", [F(2, 3, 2), F(2, 2, 3), F(3)]], ["i,j->ji", [F(3), F(2)]]],
    "view": [[F(2, 6), (3, 4)], [F(2, 6), (-1,)], [F(), (1, 1)]],
    "reshape": [[F(2, 6), (3, 4)], [F(2, 6), (4, -1)], [F(), (1,)], [F(2, 3, 4), (6, 4)]],
    "expand": [[F(3, 1), (3, 4)], [F(3, 1), (2, -1, 5)], [F(), (2, 2)]],
    "transpose": [[F(2, 3), 0, 1], [F(2, 3, 4), -1, 0]],
    "permute": [[F(2, 3, 4), (2, 0, 1)], [F(2, 3), (-1, 0)]],
    "squeeze": [[F(1, 3, 1), None], [F(1, 3, 1), 0], [F(1, 3, 1), (0, 2)], [F(2, 3), 0]],
    "unsqueeze": [[F(2, 3), 0], [F(2, 3), -1], [F(), 0]],
    "select": [[F(2, 3), 0, 1], [F(2, 3, 4), -2, -1]],
    **{f"split_{_how}": [[F(5, 2), (2, 3), 0], [F(2, 5), (1, 0, 4), -1], [F(3), (3,), 0], [F(0, 2), (0,), 0]]
       for _how in ("evenly", "by_sizes", "by_slices", "unsafely", "by_sizes_unsafely")},
    "slice": [[F(5, 3), 0, 1, 4, 2], [F(3, 5), 1, None, None, -1], [F(3, 5), -1, 4, 0, -2],
              [F(3, 5), 0, 2, 1, 1]],
    "detach": [[F(3, 4)], [F()], [I(5)]],
    "as_strided_of": [[F(12), (3, 2), (4, 1), 1, (1,), 0], [F(12), (3, 4), (2, 1), 0, (1,), 0]],
    "real": [[F(3, 4)], [F()]], "imag": [[F(3, 4)], [F()]],
    "diagonal": [[F(3, 4), 0, 0, 1], [F(3, 4), 1, 0, 1], [F(3, 4), -1, 0, 1],
                 [F(2, 3, 3), 0, -2, -1]],
    "to_dtype": [[F(3, 4), ptcore.float64], [F(3, 4), ptcore.float32]],
    "clone": [[F(3, 4)], [F()], [F(0, 2)]], "row_major": [[F(3, 4)], [F()], [F(0, 2)]],
    "cat": [[[F(2, 3), F(1, 3)], 0], [[F(2, 3), F(2, 1), F(2, 4)], -1], [[F(0,), F(2, 3)], 0],
            [[F(4)], 0], [[F(2, 3, 2, 2), F(2, 2, 2, 2)], 1], [[F(1, 2, 3, 2, 2), F(1, 2, 3, 2, 1)], -1],
            [[F(2, 2, 2, 3), F(1, 2, 2, 3)], 0]],
    "flip": [[F(3, 4), (0,)], [F(3, 4), (0, 1)], [F(2, 3, 4), (-1, 0)]],
    "tril": [[F(3, 4)], [F(2, 3, 3), 1], [F(3, 3), -1]],
    "triu": [[F(3, 4)], [F(2, 3, 3), 1], [F(3, 3), -1]],
    "gather": [[F(3, 3), 1, POSITIONS], [F(3, 3), 0, POSITIONS], [F(3, 3), -1, I([[2], [0]])]],
    "scatter_add": [[F(3, 3), 1, POSITIONS, F(2, 3)], [F(3, 3), 0, POSITIONS, F(3, 4)]],
    "scatter_src": [[F(3, 3), 1, I([[0, 2], [2, 1]]), F(2, 2)],
                    [F(3, 3), 0, I([[0, 1, 2]]), F(2, 3)]],
    "multi_margin": [[F(3, 4), I([0, 3, 1]), None, 1, 1.0], [F(3, 4), I([0, 3, 1]), C(4), 2, 0.5]],
    "index_copy": [[F(4, 3), 0, I([3, 0]), F(2, 3)], [F(2, 4), 1, I([1, 2]), F(2, 2)],
                   [F(2, 4, 3), 1, I([3]), F(2, 1, 3)], [F(), 0, I([0]), F()]],
    "index_filled": [[F(4, 3), 0, I([3, 0]), F()], [F(2, 4), -1, I([1, 1]), F()], [F(2, 3, 4), 1, I([2, 0]), F()]],
    "is_among": [[F(3, 4), F(2), False], [F(3, 4), F(20), True]],
    "pair_distances": [[F(3, 4), F(2, 4), p] for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf)]
    + [[F(2, 3, 70), F(2, 2, 70), 1.0], [F(2, 3, 70), F(2, 2, 70), 2.0]],
    "pair_distances_slope": [], "row_distances_slope": [],         # of distances that belong to rows: test_distances.py
    "row_distances": [[F(4, 3), p] for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf)],
    "multi_margin_slope": [[F(3, 4), I([0, 3, 1]), None, 1, 1.0], [F(3, 4), I([0, 3, 1]), C(4), 2, 0.5]],
    "multilabel_margin": [[F(2, 4), I([[3, 0, -1, 1], [1, -1, 0, 2]])], [F(2, 3), I([[2, 2, 0], [-1, 0, 1]])]],
    "multilabel_margin_slope": [[F(2, 4), I([[3, 0, -1, 1], [1, -1, 0, 2]])], [F(2, 3), I([[2, 2, 0], [-1, 0, 1]])]],
    "overwritten": [[F(3, 4), F(2, 2), (4, 2), 1], [F(3, 4), F(3), (5,), 0], [F(2, 3), F(), (), 5],
                    [F(2, 3), F(2, 0), (3, 1), 0], [F(4), F(2), (-2,), 3], [F(2, 3, 4), F(2, 4), (12, 1), 4]],
    "picked": [[F(3, 4), (2, 2), (4, 2), 1], [F(3, 4), (3,), (5,), 0], [F(2, 3), (), (), 5], [F(4), (2,), (-2,), 3]],
    "masked_write": [[F(2, 3), B(2, 3), F(6)], [F(4), I([True, False, True, True]), F(3, 1)]],
    "masked_collect": [[F(2, 3), B(2, 3), (6,)], [F(4), I([True, False, True, True]), (3,)],
                       [F(4), I([True, False, True, True]), (2, 2)]],
    "triangle_places": [[F(0), 3, 4, 0, True, (2, 6)], [F(1), 2, 3, -1, True, (2, 1)], [F(0), 3, 2, 1, False, (2, 1)],
                        [F(0), 2, 2, -9, False, (2, 4)]],
    "complex_pair": [[F(2, 3), F(2, 3)], [F(0, 2), F(0, 2)]],
    "cross_of": [[F(2, 3), F(2, 3), 1], [F(3, 4, 2), F(3, 4, 2), 0], [F(3), F(3), -1]],
    "fractional_windows": [[F(2, 1, 6), C(2, 1, 1, domain=("uniform", 0.1, 0.9)), (2,), (3,)],
                           [F(1, 2, 5, 6), C(1, 2, 2, domain=("uniform", 0.1, 0.9)), (2, 3), (3, 2)],
                           [F(1, 1, 4, 4, 5), C(1, 1, 3, domain=("uniform", 0.1, 0.9)), (2, 1, 2), (2, 2, 1)]],
    "index_select": [[F(4, 3), 0, I([3, 0, 0])], [F(2, 3, 4), -1, I([1])], [F(3, 2), 1, I([])]],
    "index_add": [[F(4, 3), 0, I([3, 0, 0]), F(3, 3)], [F(2, 4), 1, I([1, 1]), F(2, 2), 2]],
    "index_get": [[F(4, 3), (I([0, 3, 3]),), (0,), (3, 3)],
                  [F(4, 3), (I([0, 3, 3]), I([2, 2, 0])), (0, 1), (3,)]],
    "index_accumulate": [[F(4, 3), F(3, 3), (I([0, 3, 3]),), (0,), True],
                         [F(4, 3), F(3), (I([0, 3, 3]), I([2, 2, 0])), (0, 1), True]],
    "index_write": [[F(4, 3), F(2, 3), (I([0, 3]),), (0,), False],
                    [F(4, 3), F(3), (I([0, 3, 1]), I([2, 2, 0])), (0, 1), False]],
    "mm": [[F(3, 4), F(4, 2)], [F(1, 5), F(5, 1)], [F(0, 3), F(3, 2)], [F(2, 0), F(0, 3)],
           [F(17, 33), F(33, 20)]],
    "bmm": [[F(2, 3, 4), F(2, 4, 5)], [F(2, 2, 3), F(2, 3, 4)], [F(1, 2, 0), F(1, 0, 3)]],
    "mv": [[F(3, 4), F(4)], [F(2, 0), F(0)]], "dot": [[F(5), F(5)], [F(0), F(0)]],
    "addmm": [[F(3, 2), F(3, 4), F(4, 2)], [F(2), F(3, 4), F(4, 2), 2, 3],
              [F(), F(3, 4), F(4, 2), 0, 1], [F(3, 1), F(3, 0), F(0, 2)], [F(2), F(1, 0), F(0, 2)],
              [F(2, 1), F(2, 0), F(0, 1)]],
    "linear": [[F(5, 4), F(3, 4), F(3)], [F(2, 5, 4), F(3, 4), F(3)], [F(4), F(3, 4), F(3)],
               [F(5, 4), F(4), F()], [F(1, 0), F(3, 0), F(3)], [F(0), F(3, 0), F(3)],
               [F(2, 1, 3), F(0, 3), F(0)]],
    "softmax": [[F(3, 5), 0], [F(3, 5), -1], [F(2, 40, 3), 1], [F(), 0]],
    "log_softmax": [[F(3, 5), 0], [F(3, 5), -1], [F(2, 40, 3), 1]],
    "softmax_backward": [[F(3, 5), F(3, 5, domain=("uniform", 0.1, 0.3)), 1]],
    "log_softmax_backward": [[F(3, 5), F(3, 5, domain=("uniform", -2, -1)), 0]],
    "layer_norm_stats": [[F(3, 5), F(5), F(5), 1, 1e-5], [F(3, 5), None, None, 1, 1e-5],
                         [F(2, 3, 4), F(3, 4), None, 2, 1e-3]],
    "layer_norm_backward": [[F(3, 5), F(3, 5), ROW_MEAN, ROW_RSTD, F(5)],
                            [F(3, 5), F(3, 5), ROW_MEAN, ROW_RSTD, None]],
    "rms_norm_stats": [[F(3, 5), F(5), 1, 1e-5], [F(3, 5), None, 1, 1e-5], [F(2, 3, 4), F(3, 4), 2, 1e-3]],
    "rms_norm_backward": [[F(3, 5), F(3, 5), ROW_INVERSE, F(5)], [F(3, 5), F(3, 5), ROW_INVERSE, None]],
    "batch_norm_stats": [[F(5, 3), F(3), F(3), 1e-5], [F(3, 2, 4), None, None, 1e-3],
                         [F(2, 3, 4, 5), F(3), None, 1e-5], [F(70, 20, 3), F(20), F(20), 1e-5],
                         [F(2, 2, 3, 2), F(2), F(2), 1e-2], [F(1, 2, 2, 3, 2), None, None, 1e-2]],
    "batch_norm_given": [[F(5, 3), C(3), C(3, domain=("uniform", 0.5, 3)), F(3), F(3), 1e-5],
                         [F(3, 2, 4), C(2), C(2, domain=("uniform", 0.5, 3)), None, None, 1e-3],
                         [F(2, 3, 4, 5), C(3), C(3, domain=("uniform", 0.5, 3)), F(3), None, 1e-5],
                         [F(70, 20, 3), C(20), C(20, domain=("uniform", 0.5, 3)), None, F(20), 1e-5]],
    "batch_norm_backward": [
        [F(4, 3, 2), F(4, 3, 2), Of(lambda g, x: x.mean(axis=(0, 2))), Of(lambda g, x, m: x.var(axis=(0, 2))),
         F(3), 1e-5],
        [F(3, 2, 4, 5), F(3, 2, 4, 5), Of(lambda g, x: x.mean(axis=(0, 2, 3))),
         Of(lambda g, x, m: x.var(axis=(0, 2, 3))), None, 1e-3]],
    "group_norm_stats": [[F(3, 4), F(4), F(4), 2, 1e-5], [F(2, 6, 5), None, None, 3, 1e-3],
                         [F(2, 4, 4, 5), F(4), F(4), 1, 1e-5], [F(2, 4, 3, 7), F(4), F(4), 4, 1e-5],
                         [F(2, 4, 2, 2), F(4), F(4), 2, 1e-2], [F(1, 4, 2, 1, 3), None, None, 1, 1e-2]],
    "group_norm_backward": [
        [F(3, 4, 2), F(3, 4, 2), GROUP_MEAN, GROUP_RSTD, F(4), 2],
        [F(2, 4, 4, 5), F(2, 4, 4, 5), GROUP_MEAN, GROUP_RSTD, None, 2]],
    "cross_entropy_stats": [
        [F(4, 3), I([0, 2, 1, 2]), weight, reduction, ignore, smoothing]
        for weight in (None, C(3, domain=("uniform", 0.5, 2)))
        for reduction, ignore, smoothing in (("mean", -100, 0.0), ("sum", 2, 0.1), ("none", 1, 0.2))
    ] + [[F(3), I(1)], [F(2, 3, 4), I([[0, 1, 2, 0], [2, 2, 1, 0]])]],
    "segments": [
        [F(6, 3), I([0, 2, 2, 5, 6]), 0, reduce, start, given]
        for reduce, start, given in (("sum", 0.0, False), ("mean", 0.5, True), ("prod", 1.0, False), ("max", -9.0, True),
                                     ("min", 9.0, True))
    ] + [[F(2, 5), I([[0, 2, 5], [1, 1, 4]]), 1, reduce, 0.5, True] for reduce in ("sum", "prod", "max")],
    "segments_slope": [
        [F(2, 2), F(5, 2), Of(lambda g, x, r=reduce: _segments(x, np.array([0, 2, 5]), 0, r, 1.0, False)), I([0, 2, 5]),
         0, reduce, 1.0, False] for reduce in ("sum", "mean", "prod")],
    "binned": [
        [F(40, 1), Of(lambda x: np.array([-2.0, -0.5, 0.5, 3.0])), None, (3,), "searched"],
        [F(40, 2), Of(lambda x: np.array([-1.0, 0.0, 1.0, -3.0, -1.0, 1.0, 3.0])), F(40), (2, 3), "even"],
        [F(30, 1), Of(lambda x: np.array([-1.0, 1.0])), None, (4,), "computed"]],
    "counted": [[C(9, domain=("uniform", 0, 6)), None, 7], [C(9, domain=("uniform", 0, 6)), None, 3], [C(0), None, 2]],
    "ctc_loss_stats": [[F(4, 2, 3), I([[1, 2], [2, 0]]), I([4, 3]), I([2, 1]), 0],
                       [F(3, 2, 3), I([[1, 1], [2, 1]]), I([3, 3]), I([2, 2]), 0],
                       [F(3, 2, 2), I([[1], [1]]), I([2, 0]), I([0, 0]), 0]],
    "ctc_loss_backward": [
        [F(2), F(4, 2, 3), I([[1, 2], [2, 0]]), I([4, 3]), I([2, 1]), Of(lambda *args: _ctc(*args)[0]), Of(lambda *args: _ctc(*args)[1]), 0]],
    "cross_entropy_backward": [
        [F(), F(4, 3), I([0, 2, 1, 2]), None, F(4), C(domain=("uniform", 3, 4)), "mean", -100, 0.1]],
    "nll_loss_stats": [
        [F(4, 3), I([0, 2, 1, 2]), weight, reduction, ignore]
        for weight in (None, C(3, domain=("uniform", 0.5, 2)))
        for reduction, ignore in (("mean", -100), ("sum", 2), ("none", 1))
    ] + [[F(3), I(1)], [F(2, 3, 4), I([[0, 1, 2, 0], [2, 2, 1, 0]])]],
    "nll_loss_backward": [
        [F(), I([0, 2, 1]), None, Of(lambda *data: np.array(3.0)), "mean", -100, (3, 3)],
        [F(3), I([0, 2, 1]), C(3), C(domain=("uniform", 3, 4)), "none", 2, (3, 3)]],
    "nonzero_of": [],                   # its count depends on the data: tested by itself
    # vectors only up to a factor: tests/ops/linalg
    "_linalg_svd": [], "svd": [], "linalg_svd": [], "linalg_svdvals": [],
    "to_device": [],                    # needs a second device: tested with a stand-in
    "clamp": [[F(3, 5), 1, 2], [F(3, 5), None, 1], [F(3, 5), F(3, 5), None],
              [F(3, 5), F(5), F(3, 1)]],
    "max": [[F(3, 5)]], "min": [[F(3, 5)]], "prod": [[F(3, 4), 1], [F(2, 3), None]],
    "var": [[F(3, 5)], [F(3, 5), 1]], "std": [[F(3, 5)], [F(3, 5), 1]],
    "matmul": [[F(3, 4), F(4, 2)], [F(4), F(4)], [F(3, 4), F(4)], [F(4), F(4, 2)],
               [F(2, 3, 4), F(4, 2)], [F(2, 1, 3, 4), F(5, 4, 2)], [F(4), F(2, 4, 3)],
               [F(2, 3, 4), F(4)]],
    "stack": [[[F(2, 3), F(2, 3)], 0], [[F(2, 3), F(2, 3), F(2, 3)], -1], [[F()], 0]],
    "flatten": [[F(2, 3, 4)], [F(2, 3, 4), 1], [F(2, 3, 4), 0, 1], [F()]],
    "unflatten": [[F(2, 12), 1, (3, 4)], [F(12), 0, (3, -1)]],
    "swapaxes": [[F(2, 3, 4), 0, -1], [F(2, 3), 1, 1]],
    "movedim": [[F(2, 3, 4), 0, -1], [F(2, 3, 4), (0, 1), (1, 2)]],
    "t": [[F(2, 3)], [F(3)], [F()]],
    "narrow": [[F(5, 2), 0, 1, 3], [F(2, 5), -1, -3, 2]],
    "split": [[F(5, 2), 2], [F(2, 5), [1, 4], 1]],
    "chunk": [[F(5, 2), 2], [F(2, 6), 3, 1]], "unbind": [[F(3, 2)], [F(3, 2), 1]],
    "allclose": [[F(3), F(3)]], "isclose": [[F(3), F(3)], [F(2, 1), F(3)]],
    "equal": [[F(3), F(3)]],
    "fill_arange": [[0, 7, 1, (7,), ptcore.int64, None], [1.0, 2.0, 0.25, (4,), ptcore.float64, None]],
    "fill_linspace": [[0.0, 1.0, 5, (5,), ptcore.float64, None]],
    "fill_full": [[2.5, (3, 4), ptcore.float32, None], [7, (0, 2), ptcore.float32, None]],
    "fill_eye": [[(3, 4), ptcore.float32, None]],
    "cummax": [[F(3, 5), 0], [F(3, 5), -1], [F(2, 3, 40), 1], [F(), 0]],
    "cummin": [[F(3, 5), 0], [F(3, 5), -1], [F(2, 3, 40), 1], [F(), 0]],
    "logcumsumexp": [[F(3, 5), 0], [F(3, 5), -1], [F(2, 3, 40), 1]],
    "logcumsumexp_slope": [[F(3, 5), F(3, 5), 0], [F(3, 5), F(3, 5), -1], [F(2, 3, 40), F(2, 3, 40), 1]],
    "products_slope": [
        [F(3, 5), F(3, 5), Of(lambda g, x: x.cumprod(0)), 0], [F(3, 5), F(3, 5), Of(lambda g, x: x.cumprod(1)), -1],
        [F(1, 5), F(3, 5), Of(lambda g, x: x.prod(0, keepdims=True)), 0],
        [F(2, 1, 3), F(2, 20, 3), Of(lambda g, x: x.prod(1, keepdims=True)), 1],
        [F(2, 3, 1), F(2, 3, 20), Of(lambda g, x: x.prod(2, keepdims=True)), -1]],
    **COMPOSITES,
}
CASES.update(_cases_window.cases(F, I))
CASES.update(_cases_attention.cases(F, Of))
CASES.update(_cases_factor.cases(F))
CASES.update(_cases_fft.cases(F, Of))
CASES.update({f"{_view}_copy": CASES[_view] for _view in (
    "diagonal", "narrow", "permute", "select", "split_with_sizes", "squeeze", "t", "transpose", "unbind",
    "unfold", "unsqueeze", "view", "view_as_real", "view_as_complex")})
CASES.update({r.name: [] for r in ROWS.values() if r.spells})      # tests/ops/test_spellings.py calls these
CASES.update({r.name: [] for r in ROWS.values() if r.family == "optimizers"})      # tests/optim calls these
CASES["slice_copy"] = [case for case in CASES["slice"] if case[4] > 0]


def cases(row):
    """All cases of a row; random rows have none (their kernels have tests of their own)."""
    if row.kind == "elementwise":
        return elementwise_cases(row)
    return CASES.get(row.name, [])


# composite rows take what the ops they call take
TYPES = {"argsort": schema.ORDERED, "embedding": schema.ALL, "einsum": schema.NUMERIC,
         "imag": schema.COMPLEX, "var": schema.REAL, "std": schema.REAL, "t": schema.ALL,
         "clamp": schema.ORDERED, "max": schema.ORDERED, "min": schema.ORDERED,
         "matmul": schema.NUMERIC, "isclose": schema.REAL, "allclose": schema.REAL,
         "fill_arange": ("int64",), "fill_linspace": ("float64",), "fill_eye": ("float32",), "fill_full": ("float32",), **COMPOSITE_TYPES,
         **_cases_window.TYPES, **_cases_attention.TYPES, **_cases_factor.TYPES, **_cases_fft.TYPES,
         "linalg_vecdot": schema.FLOATING}
# ops whose result depends on strides, which fail where a copy would be needed
FIXED_LAYOUT = ("view", "view_as", "as_strided", "as_strided_of", "as_strided_scatter", "as_strided_copy", "view_as_complex",
                "view_as_complex_copy")


def layouts(row):
    if row.keeps == "channels_last":
        return *LAYOUTS, row.keeps
    return LAYOUTS[:1] if row.name in FIXED_LAYOUT else LAYOUTS


def dtypes(row):
    """The dtypes a row is tried with: those it has kernels for, and those it promotes."""
    types = list(TYPES.get(row.name, row.types))
    if row.promote == "float":
        types += [t for t in (*schema.BOOL, *INTEGERS) if t not in types]
    return types


def case_id(row, case):
    def word(v):
        if isinstance(v, F):
            return "x".join(map(str, v.shape)) or "0d"
        if isinstance(v, (I, B)):
            return type(v).__name__
        if isinstance(v, (list, tuple)):
            return "(" + ",".join(word(x) for x in v) + ")"
        return str(v)

    return f"{row.name}[{' '.join(word(v) for v in case)}]"
