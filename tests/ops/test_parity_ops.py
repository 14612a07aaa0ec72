"""Every public op against torch: values, dtypes, strides, gradients, promotion, error types.

torch has no negative strides and few kernels for uint16, uint32 and uint64: a case that torch
refuses for that reason alone is left out.
"""
import itertools
import math
from operator import attrgetter

import numpy as np
import pytest
from _draw import drawn
from _walk import walk

import ptcore as pt

torch = pytest.importorskip("torch")

from _cases import CASES, ROWS, F, Sample, array, case_id, cases, function, tensor  # noqa: E402
from _tolerance import ACCUMULATED, assert_near  # noqa: E402

pytestmark = pytest.mark.parity
CLEAR = (TypeError, ValueError, RuntimeError, IndexError, OverflowError, ZeroDivisionError)
NEW_UNSIGNED = ("uint16", "uint32", "uint64")
DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
          "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


# Strides of results are torch's; these differ, in the layouts and dtypes of the entry alone. torch promises nothing of
# them: it keeps those of a dense input in some ops and not in others, or shows the memory of LAPACK, by columns.
ANY = lambda dtype, layout: True
DENSE = lambda dtype, layout: layout == "transposed"
OTHER_STRIDES = {
    **dict.fromkeys(("logsigmoid", "flip", "fliplr", "flipud", "index_fill", "index_put", "put", "renorm", "sort", "argsort",
                     "msort", "matrix_power", "interpolate", "affine_grid"), DENSE),
    "addr": lambda dtype, layout: layout == "transposed" and dtype != "bool",
    **dict.fromkeys(("rot90", "select_scatter", "slice_scatter", "diagonal_scatter", "argwhere", "nonzero",
                     "linalg_lu_factor", "linalg_lu_factor_ex", "lu", "linalg_solve_ex", "linalg_inv_ex",
                     "triangular_solve", "linalg_householder_product", "linalg_tensorinv", "orgqr", "ormqr",
                     "unravel_index", "linalg_solve", "linalg_solve_triangular", "linalg_inv", "inverse", "linalg_qr",
                     "qr"), ANY),
    "angle": lambda dtype, layout: dtype == "complex64" and layout == "transposed",
    # copies, where torch gives views that remember to conjugate
    **dict.fromkeys(("conj", "adjoint"), lambda dtype, layout: dtype == "complex64" and layout == "sliced"),
    "gru_cell": DENSE, "batch_norm": DENSE}


def factor(m, x, upper):
    """The part of a sample that is a Cholesky factor: torch's complex results and gradients read the rest as well."""
    sides = m.triu(x, 1) if upper else m.tril(x, -1)
    diagonal = x.diagonal(dim1=-2, dim2=-1)
    return sides + m.diag_embed(m.real(diagonal) if x.is_complex() else diagonal)


COMPOSED = {
    "cholesky_inverse": lambda m: lambda x, upper=False: m.cholesky_inverse(factor(m, x, upper), upper),
    "cholesky_solve": lambda m: lambda b, x, upper=False: m.cholesky_solve(b, factor(m, x, upper), upper),
    # torch's gradient is that by what log_softmax is given, whether there is one or not
    "ctc_loss": lambda m: lambda x, *a, **k: m.nn.functional.ctc_loss(m.log_softmax(x, -1), *a, **k)}


def digamma(x):
    """torch's digamma with a gradient of all digits: its trigamma has half those of float64."""
    class Digamma(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.digamma(x)

        @staticmethod
        def backward(ctx, g):
            return g * torch.special.zeta(torch.tensor(2.0, dtype=g.dtype), *ctx.saved_tensors)
    return Digamma.apply(x)


def cond(a, p=2):
    """torch's own writes over what its backward needs."""
    if p == -2:
        return 1 / cond(a)
    return torch.linalg.matrix_norm(a, p) * torch.linalg.matrix_norm(a.inverse(), p)


def as_strided_scatter(x, src, *geometry):
    """torch's values with a gradient that gradcheck accepts, unlike its own."""
    numbers = torch.arange(1, src.numel() + 1).reshape(src.shape)
    where = torch.as_strided_scatter(torch.zeros_like(x, dtype=torch.int64), numbers, *geometry)
    return torch.where(where > 0, src.reshape(-1)[(where - 1).clamp(min=0)], x)


def stable(f):
    """Of equals the first is the first; torch leaves that open without the word."""
    return lambda x, dim=-1, descending=False: f(x, dim=dim, descending=descending, stable=True)


# What torch gets wrong, as its documentation defines it, or leaves open.
CORRECTED = {
    "sort": stable(torch.sort), "argsort": stable(torch.argsort),
    "digamma": digamma,
    "polygamma_function": lambda n, x: torch.special.zeta(torch.tensor(n + 1.0, dtype=x.dtype), x)
                                       * (-1) ** (n + 1) * math.factorial(n) if n else digamma(x),
    # its sixth in the gradient is one of float32
    "hardsigmoid": lambda x: torch.nn.functional.relu6(x + 3) / 6,
    # its factor is an integer power in the backward: 0 for a negative exponent
    "ldexp": lambda x, n: x * 2.0 ** torch.as_tensor(n).double(),
    "linalg_cond": cond,
    # its cubic polynomials are evaluated in bfloat16
    "grid_sampler_2d": lambda x, grid, *how: torch.grid_sampler_2d(x.double(), grid.double(), *how).to(x.dtype),
    # of bfloat16 it is NaN here and there
    **dict.fromkeys(("matrix_exp", "linalg_matrix_exp"), lambda x: torch.linalg.matrix_exp(x.double()).to(x.dtype))}
OF_DOUBLES = {"matrix_exp", "linalg_matrix_exp", "grid_sampler_2d"}        # corrected of bfloat16 too
# What torch's own functions are off by in float64 (measured with mpmath; ours 3e-15).
TORCHS_ERROR = {"bessel_j0": 2e-6, "bessel_j1": 2e-6, "bessel_y0": 2e-6, "bessel_y1": 2e-6, "airy_ai": 2e-5}
DIFFERENTIABLE = {"as_strided_scatter": as_strided_scatter}


def ours_of(row):
    return COMPOSED[row.name](pt) if row.name in COMPOSED else function(row)


def counterpart(row):
    """torch's function of a row, by the row's public names."""
    if row.name in COMPOSED:
        return COMPOSED[row.name](torch)
    for path in sorted(row.public, key=lambda path: not path.startswith("nn.functional.")):
        if path.startswith("nn.functional."):
            return getattr(torch.nn.functional, path.rpartition(".")[2], None)
        if path.startswith("linalg."):
            return getattr(torch.linalg, path.rpartition(".")[2], None)
        if path.startswith("special."):
            return getattr(torch.special, path.rpartition(".")[2], None)
        if hasattr(torch, path):
            return getattr(torch, path)
    return getattr(torch.Tensor, row.method_name, None) if not row.internal else None


# Transforms are compared in fft/test_parity_fft.py.
COMPARED = [r for r in ROWS.values() if counterpart(r) is not None and not r.random and r.family != "fft"
            and (r.kind == "elementwise" or CASES.get(r.name))]


def torch_tensor(values, dtype, layout):
    """The same values in the same strides."""
    like = tensor(values, dtype, layout)
    if any(s < 0 for s in like.stride()):
        raise NotImplementedError
    out = torch.empty_strided(tuple(like.shape), like.stride(), dtype=getattr(torch, dtype))
    out.untyped_storage().fill_(0)          # as_strided_copy sees what lies between the elements
    return out.copy_(torch.from_numpy(np.ascontiguousarray(array(like))).reshape(out.shape))


def torch_array(t):
    t = t.detach().resolve_conj()
    return (t.float() if t.dtype is torch.bfloat16 else t).numpy()


def both(row, case, dtype, layout):
    """The arguments of ptcore's function, and those of torch's in the forms that it may want."""
    sample = Sample(row, case, dtype, np.random.default_rng(5))
    ours = sample.arguments(layout)
    positional, keyword = Sample(row, case, dtype, np.random.default_rng(5)).arguments(layout, torch_tensor)

    def plain(v):
        return getattr(torch, v.name) if isinstance(v, pt.dtype) else v

    order = iter(positional)
    given = [(a, plain(keyword[a.name] if a.keyword_only else next(order))) for a in sample.args]
    return ours, [list(form(given)) for form in (defaults_left_out, none_written_out, parameters_by_name)]


def is_default(a, v):
    return v is a.default or (type(v) is type(a.default) and not isinstance(v, torch.Tensor) and v == a.default)


def defaults_left_out(given):
    """As a user writes it: what is the default is not written, what follows it has its name."""
    first = next((k for k, (a, v) in enumerate(given) if a.keyword_only or is_default(a, v)), len(given))
    return [v for _, v in given[:first]], {a.name: v for a, v in given[first:] if not is_default(a, v)}


def none_written_out(given):
    last = max((k for k, (a, v) in enumerate(given) if not (a.keyword_only or is_default(a, v))), default=-1)
    return ([v for _, v in given[:last + 1]],
            {a.name: v for a, v in given[last + 1:] if not is_default(a, v) or a.name == "dim"})


def parameters_by_name(given):
    first = next((k for k, (a, _) in enumerate(given) if not a.is_tensor), len(given))
    return [v for _, v in given[:first]], {a.name: v for a, v in given[first:] if not is_default(a, v)}


def call_torch(f, forms):
    """torch's result, in the first form of the call that it takes."""
    for positional, keyword in forms:
        for spread in (False, True):
            if spread and not (positional and isinstance(positional[0], tuple)):
                continue
            try:
                return f(*(positional[0] if spread else positional), **keyword)
            except TypeError as e:
                error = e
    raise error


def results(r):
    return list(r) if isinstance(r, (tuple, list)) else [r]


# Loops or promotions that only torch has: refused here with a clear error.
NO_LOOP = {*[(f"{cell}_cell", dtype) for cell in ("lstm", "gru", "rnn_tanh", "rnn_relu")
             for dtype in ("int64", "complex64", "bool")], ("inner", "bool"), ("soft_margin_loss", "complex64"), ("histogram", "bfloat16")}
# What torch refuses, other than for want of a kernel, and ptcore takes.
MORE = {"masked_fill", "linear", "argmax", "argmin", "topk", "embedding_bag", "cosine_similarity",
        "kl_div", "poisson_nll_loss", "gaussian_nll_loss", "hinge_embedding_loss", "max", "min",
        "soft_margin_loss",             # a gradient by the target
        "ldexp",                        # a number for a tensor
        "mvlgamma", "linalg_vander",    # of bools, as of integers
        "ormqr",                        # fewer reflectors than there are columns, as its documentation has it
        "native_group_norm",            # torch wants it contiguous
        "view_as_complex_copy",         # of what needs gradients
        "batch_norm", "instance_norm",  # running statistics that need gradients, where they are given
        "take_along_dim", "kron", "conv_tbc"}       # torch takes a view of a layout that has none


def refused_too(row, ours, error, context):
    """An error of torch's is one here, unless torch lacks a kernel or ptcore takes more; whether it is one."""
    try:
        ours_of(row)(*ours[0], **ours[1])
    except CLEAR:
        return True
    assert "not implemented for" in str(error) or row.name in MORE, f"{context}: torch raises {error}"
    return False


def has_values(row, dtype):
    """Whether the domain of the row's samples holds numbers of a dtype (no integer is a probability)."""
    try:
        Sample(row, cases(row)[0], dtype, np.random.default_rng(5))
    except ValueError:
        return False
    return True


@walk(("row", "dtype"), [
    pytest.param(r, d, id=f"{r.name}-{d}") for r in drawn(COMPARED, attrgetter("name"))
    for d in ("float32", "float64", "int64", "complex64", "bool", "bfloat16") if d in r.types and has_values(r, d)])
def test_values_and_strides(row, dtype):
    compared, differ, more = 0, 0, 0
    other = OTHER_STRIDES.get(row.name, lambda *_: False)
    torchs = CORRECTED.get(row.name) if (
        dtype == "float64" or "sort" in row.name or (dtype == "bfloat16" and row.name in OF_DOUBLES)) else None
    torchs = torchs or counterpart(row)
    for case, layout in itertools.product(cases(row), ("contiguous", "transposed", "sliced")):
        context = f"{case_id(row, case)} {dtype} {layout}"
        ours, forms = both(row, case, dtype, layout)
        try:
            want = results(call_torch(torchs, forms))
        except Exception as e:
            more += not refused_too(row, ours, e, context)
            continue
        if (row.name, dtype) in NO_LOOP:
            with pytest.raises(CLEAR):
                ours_of(row)(*ours[0], **ours[1])
            return
        got = results(ours_of(row)(*ours[0], **ours[1]))
        assert len(got) == len(want), context
        compared += 1
        if row.name in ("topk", "kthvalue", "mode"):        # of equals torch takes any; here: tests/ops/sort/test_order.py
            got, want = got[:1], want[:1]
        for a, b in zip(got, want):
            if not isinstance(b, torch.Tensor):
                assert a == b, context
                continue
            if (row.name, dtype) != ("hinge_embedding_loss", "int64"):      # torch cuts the margin to an integer
                assert a.dtype.name == str(b.dtype).removeprefix("torch."), context
            if row.name in TORCHS_ERROR and dtype == "float64":
                np.testing.assert_allclose(array(a), torch_array(b), rtol=TORCHS_ERROR[row.name],
                                           atol=TORCHS_ERROR[row.name])
            else:
                assert_near(array(a), torch_array(b), a.dtype.name, context, ACCUMULATED)
            if 0 in b.shape or row.name in COMPOSED or (row.name in CORRECTED and "sort" not in row.name):
                continue
            same = relevant(a.shape, a.stride()) == relevant(b.shape, b.stride())
            assert same or other(dtype, layout), f"{context}: {a.stride()}, torch {b.stride()}"
            differ += not same
    assert compared or not more or dtype not in ("float32", "float64"), "torch took none of the cases"
    assert differ or not compared or row.name not in OTHER_STRIDES or not other(dtype, "transposed")


def relevant(shape, stride):
    """Strides of dims with more than one element: the others carry no meaning."""
    return [s for n, s in zip(shape, stride) if n > 1]


# No derivative in torch; here there is one by the tensor that is written to, or that is a complex number's part.
# torch has no derivative of them; ours are tested by differences (tests/ops/test_gradient.py).
DERIVED_HERE = {r.name for r in ROWS.values() if "polynomial_" in r.name or "bessel_" in r.name or r.name == "airy_ai"}
NOT_DIFFERENTIABLE = {"floor_divide", "scatter_add", "scatter_src", "scatter", "heaviside", "complex_of", "polar",
                      "view_as_complex", "unique", "unique_consecutive",
                      "igamma", "igammac", "zeta",  # by the exponent
                      "histogram",                  # by the weights
                      "detach_copy",                # recorded in torch, and fails in the backward
                      "vander"}                     # written over in place by torch's own forward


@walk("row", [pytest.param(r, id=r.name) for r in drawn(COMPARED, attrgetter("name")) if "float64" in r.types])
def test_gradient(row):
    torchs = {**CORRECTED, **DIFFERENTIABLE}.get(row.name, counterpart(row))
    for case in cases(row):
        context = case_id(row, case)
        ours, forms = both(row, case, "float64", "contiguous")

        def leaves(args):
            flat = [x for v in args for x in (v if isinstance(v, tuple) else (v,))]
            return [x.requires_grad_() for x in flat if isinstance(x, (pt.Tensor, torch.Tensor))
                    and str(x.dtype).endswith("float64")]

        a, b = leaves([*ours[0], *ours[1].values()]), leaves([*forms[0][0], *forms[0][1].values()])
        try:
            want = results(call_torch(torchs, forms))[0]
        except Exception as e:
            refused_too(row, ours, e, context)
            continue
        got = results(ours_of(row)(*ours[0], **ours[1]))[0]
        if row.name in DERIVED_HERE and "_bessel_i" not in row.name:
            assert got.requires_grad and not want.requires_grad
            continue
        if not isinstance(want, torch.Tensor) or not want.requires_grad:
            assert not isinstance(got, pt.Tensor) or not got.requires_grad, context
            continue
        seed = np.random.default_rng(1).standard_normal(want.shape)
        try:
            want.backward(torch.tensor(seed))
        except RuntimeError:
            assert row.name in NOT_DIFFERENTIABLE
            continue
        got.backward(pt.tensor(seed))
        assert len(a) == len(b)
        for x, y in zip(a, b):
            zero = torch.zeros_like(y) if y.grad is None else y.grad
            mine = np.zeros(y.shape) if x.grad is None else x.grad.numpy()
            assert_near(mine, zero.numpy(force=True), "float64", context, ACCUMULATED)


# -- promotion -----------------------------------------------------------------------------------

NUMBERS = {"bool": True, "int": 2, "float": 2.5, "complex": 2.5 + 1j}
OPERATORS = {
    "add": lambda m, x, y: x + y, "mul": lambda m, x, y: x * y, "div": lambda m, x, y: x / y,
    "eq": lambda m, x, y: x == y, "pow": lambda m, x, y: m.pow(x, y),
    "floor_divide": lambda m, x, y: m.floor_divide(x, y),
    "remainder": lambda m, x, y: m.remainder(x, y), "lt": lambda m, x, y: x < y,
    "and": lambda m, x, y: x & y, "where": lambda m, x, y: m.where(m.tensor(True), x, y),
    "masked_fill": lambda m, x, y: x.masked_fill(m.tensor([True, False]), y),
    "clamp_min": lambda m, x, y: m.clamp(x, min=y), "iadd": lambda m, x, y: x.add_(y),
    "imul": lambda m, x, y: x.mul_(y), "copy": lambda m, x, y: x.copy_(y),
    "alpha": lambda m, x, y: m.add(x, y, alpha=2)}
TENSOR_ONLY = {
    "maximum": lambda m, x, y: m.maximum(x, y), "cat": lambda m, x, y: m.cat([x, y]),
    "stack": lambda m, x, y: m.stack([x, y]), "result_type": lambda m, x, y: x + y + x}


def operand(m, kind, dtype):
    if kind == "number":
        return NUMBERS[dtype]
    return m.ones((2,) if kind == "tensor" else (), dtype=getattr(m, dtype))


def outcome(f, m, x, y):
    try:
        r = f(m, x, y)
    except Exception as e:
        return e
    return str(r.dtype).rpartition(".")[2]


@pytest.mark.parametrize("name", [*OPERATORS, *TENSOR_ONLY])
def test_promotion(name):
    """The result's dtype for all pairs of dtypes: with tensors, 0-d tensors and numbers."""
    f = {**OPERATORS, **TENSOR_ONLY}[name]
    kinds = ["tensor", "zero"] + (["number"] if name in OPERATORS else [])
    if name in ("cat", "stack", "copy"):
        kinds = ["tensor"]
    if name == "masked_fill":           # torch takes no other values
        kinds = ["zero", "number"]
    wrong = []
    for kind, (a, b) in itertools.product(
            kinds, itertools.product(DTYPES, DTYPES)):
        if kind == "number":
            if b not in ("bool", "int32", "float32", "complex64"):
                continue
            b = {"int32": "int", "float32": "float", "complex64": "complex"}.get(b, b)
        want = outcome(f, torch, operand(torch, "tensor", a), operand(torch, kind, b))
        got = outcome(f, pt, operand(pt, "tensor", a), operand(pt, kind, b))
        if isinstance(want, Exception):
            unsigned = a in NEW_UNSIGNED or b in NEW_UNSIGNED
            if unsigned or "not implemented for" in str(want):
                continue
            if not isinstance(got, type(want)):
                wrong.append((kind, a, b, got, f"{type(want).__name__}: {want}"))
        elif got != want:
            wrong.append((kind, a, b, got, want))
    assert not wrong, f"{len(wrong)} differ, e.g. (kind, x, y, ptcore, torch): {wrong[:12]}"


# An extension, and any() of uint8: bool as in the array API (guide/differences.rst).
OTHER_DTYPE = {("argmax", "bool"): "int64", ("any", "uint8"): "bool"}


@pytest.mark.parametrize("name", ["sin", "sqrt", "sum", "mean", "cumsum", "prod", "abs", "neg",
                                  "argmax", "any", "softmax", "logsumexp", "square", "floor",
                                  "reciprocal", "sigmoid", "sign", "var", "amax", "round"])
def test_dtype_of_unary(name):
    wrong = []
    for dtype in DTYPES:
        args = (0,) if name in ("cumsum", "softmax", "logsumexp") else ()
        want = outcome(lambda m, x, y, args=args: getattr(m, name)(x, *args), torch,
                       operand(torch, "tensor", dtype), None)
        got = outcome(lambda m, x, y, args=args: getattr(m, name)(x, *args), pt,
                      operand(pt, "tensor", dtype), None)
        want = OTHER_DTYPE.get((name, dtype), want)
        if isinstance(want, Exception):
            if dtype in NEW_UNSIGNED or "not implemented for" in str(want):
                continue
            if not isinstance(got, type(want)):
                wrong.append((dtype, got, want))
        elif got != want:
            wrong.append((dtype, got, want))
    assert not wrong, wrong


# -- errors --------------------------------------------------------------------------------------

ERRORS = {
    "add_shapes": lambda m: m.ones(2) + m.ones(3),
    "mm_inner": lambda m: m.mm(m.ones(2, 3), m.ones(2, 3)),
    "mm_ndim": lambda m: m.mm(m.ones(2), m.ones(2, 3)),
    "mm_dtype": lambda m: m.mm(m.ones(2, 2), m.ones(2, 2).long()),
    "matmul_0d": lambda m: m.matmul(m.tensor(1.0), m.ones(2)),
    "matmul_batch": lambda m: m.matmul(m.ones(2, 3, 4), m.ones(3, 4, 5)),
    "bmm": lambda m: m.bmm(m.ones(2, 3, 4), m.ones(3, 4, 5)),
    "dot": lambda m: m.dot(m.ones(2), m.ones(3)),
    "dot_ndim": lambda m: m.dot(m.ones(2, 2), m.ones(2, 2)),
    "sum_dim": lambda m: m.ones(2).sum(3), "sum_twice": lambda m: m.ones(2, 2).sum((0, 0)),
    "softmax_dim": lambda m: m.softmax(m.ones(2, 2), 2),
    "softmax_int": lambda m: m.softmax(m.ones(2, 2).long(), 1),
    "mean_int": lambda m: m.ones(2).long().mean(),
    "max_empty": lambda m: m.zeros(0).max(), "argmax_empty": lambda m: m.zeros(0).argmax(),
    "amax_empty": lambda m: m.zeros(0, 3).amax(0),
    "view_size": lambda m: m.ones(6).view(4), "view_two": lambda m: m.ones(6).view(-1, -1),
    "view_strides": lambda m: m.ones(2, 3).t().view(6),
    "reshape": lambda m: m.ones(6).reshape(4, -1),
    "expand": lambda m: m.ones(2).expand(3), "expand_less": lambda m: m.ones(2, 2).expand(2),
    "permute": lambda m: m.ones(2, 3).permute(0, 0),
    "permute_few": lambda m: m.ones(2, 3).permute(0),
    "transpose": lambda m: m.ones(2, 3).transpose(0, 2),
    "unsqueeze": lambda m: m.ones(2).unsqueeze(3), "squeeze": lambda m: m.ones(2).squeeze(1),
    "select": lambda m: m.ones(2).select(0, 2), "select_dim": lambda m: m.ones(2).select(1, 0),
    "narrow": lambda m: m.ones(3).narrow(0, 1, 3),
    "split": lambda m: m.ones(3).split([1, 1]), "chunk": lambda m: m.ones(3).chunk(0),
    "cat_shapes": lambda m: m.cat([m.ones(2, 2), m.ones(3, 3)]),
    "cat_none": lambda m: m.cat([]), "stack_none": lambda m: m.stack([]),
    "stack_shapes": lambda m: m.stack([m.ones(2), m.ones(3)]),
    "cat_0d": lambda m: m.cat([m.tensor(1.0), m.tensor(2.0)]),
    "unbind_0d": lambda m: m.tensor(1.0).unbind(),
    "gather_ndim": lambda m: m.ones(2, 2).gather(0, m.tensor([0])),
    "gather_float": lambda m: m.ones(2).gather(0, m.tensor([0.0])),
    "gather_range": lambda m: m.ones(2).gather(0, m.tensor([5])),
    "index_select_range": lambda m: m.ones(2).index_select(0, m.tensor([5])),
    "scatter_add_dtype": lambda m: m.zeros(2).scatter_add(0, m.tensor([0]), m.ones(1).double()),
    "index_int": lambda m: m.ones(2)[2], "index_neg": lambda m: m.ones(2)[-3],
    "index_many": lambda m: m.ones(2)[0, 0], "index_0d": lambda m: m.tensor(1.0)[0],
    "index_float": lambda m: m.ones(2)[1.0], "index_str": lambda m: m.ones(2)["a"],
    "index_tensor": lambda m: m.ones(2)[m.tensor([2])],
    "index_float_tensor": lambda m: m.ones(2)[m.tensor([1.0])],
    "index_mask": lambda m: m.ones(2)[m.tensor([True, False, True])],
    "index_broadcast": lambda m: m.ones(3, 3)[m.tensor([0, 1]), m.tensor([0, 1, 2])],
    "setitem_shape": lambda m: m.ones(3).__setitem__(slice(0, 2), m.ones(3)),
    "item": lambda m: m.ones(2).item(), "bool": lambda m: bool(m.ones(2)),
    "bool_empty": lambda m: bool(m.zeros(0)),
    "int": lambda m: int(m.ones(2)), "len_0d": lambda m: len(m.tensor(1.0)),
    "iter_0d": lambda m: list(m.tensor(1.0)), "hash_list": lambda m: {}[m.tensor(1)],
    "bool_minus": lambda m: m.tensor(True) - m.tensor(True),
    "bool_neg": lambda m: -m.tensor(True), "float_and": lambda m: m.ones(1) & m.ones(1),
    "float_not": lambda m: ~m.ones(1), "float_shift": lambda m: m.ones(2) << 1.5,
    "int_pow": lambda m: m.tensor(2) ** -1,
    "int_zero_div": lambda m: m.tensor([1]) // m.tensor([0]),
    "complex_lt": lambda m: m.tensor(1j) < m.tensor(2j), "complex_max": lambda m: m.tensor([1j]).max(),
    "complex_floor": lambda m: m.floor(m.tensor(1j)),
    "clamp_none": lambda m: m.ones(2).clamp(), "add_str": lambda m: m.ones(2) + "a",
    "add_none": lambda m: m.add(m.ones(2), None), "sin_number": lambda m: m.sin(1.0),
    "unknown_keyword": lambda m: m.sin(m.ones(1), nope=1), "too_many": lambda m: m.sin(1, 2, 3),
    "tensor_ragged": lambda m: m.tensor([[1, 2], [3]]), "tensor_str": lambda m: m.tensor("a"),
    "tensor_none": lambda m: m.tensor(None), "tensor_dict": lambda m: m.tensor({}),
    "tensor_overflow": lambda m: m.tensor(2**70), "zeros_negative": lambda m: m.zeros(-1),
    "zeros_float": lambda m: m.zeros(1.5), "arange_zero": lambda m: m.arange(0, 1, 0),
    "arange_sign": lambda m: m.arange(0, 1, -1), "eye": lambda m: m.eye(-1),
    "linspace": lambda m: m.linspace(0, 1, -1), "randint": lambda m: m.randint(3, 3, (2,)),
    "requires_grad_int": lambda m: m.ones(2).long().requires_grad_(),
    "tensor_int_grad": lambda m: m.tensor([1], requires_grad=True),
    "numpy_grad": lambda m: m.ones(2, requires_grad=True).numpy(),
    "float_of_complex": lambda m: float(m.tensor(1j)),
    "inplace_shape": lambda m: m.ones(2).add_(m.ones(3, 2)),
    "inplace_dtype": lambda m: m.ones(2).long().add_(1.5),
    "inplace_expanded": lambda m: m.ones(1).expand(3).add_(1),
    "out_dtype": lambda m: m.add(m.ones(2), 1.5, out=m.zeros(2).long()),
    "as_strided": lambda m: m.ones(3).as_strided((5,), (1,)),
    "diagonal": lambda m: m.ones(2, 2).diagonal(0, 1, 1), "tril": lambda m: m.ones(2).tril(),
    "outer": lambda m: m.outer(m.ones(2, 2), m.ones(2)), "t_3d": lambda m: m.ones(2, 2, 2).t(),
    "flatten": lambda m: m.ones(2, 3).flatten(1, 0), "device": lambda m: m.ones(2, device="nope"),
    "to_bad": lambda m: m.ones(2).to("nope"), "unflatten": lambda m: m.ones(6).unflatten(0, (4, 2)),
    "movedim": lambda m: m.ones(2, 3).movedim((0, 0), (0, 1)),
    "backward_vector": lambda m: m.ones(2, requires_grad=True).exp().backward(),
    "backward_none": lambda m: m.ones(()).backward(),
    "imag_real": lambda m: m.ones(2).imag, "norm_str": lambda m: m.ones(2).norm("x"),
    "rounding": lambda m: m.div(m.ones(1), 2, rounding_mode="up"),
    "bernoulli": lambda m: m.bernoulli(m.tensor([2.0])),
    "cross_entropy": lambda m: m.nn.functional.cross_entropy(m.ones(2, 3), m.tensor([0, 5])),
    "cross_entropy_shape": lambda m: m.nn.functional.cross_entropy(m.ones(2, 3), m.tensor([0])),
    "linear": lambda m: m.nn.functional.linear(m.ones(2, 3), m.ones(2, 4)),
    "layer_norm": lambda m: m.nn.functional.layer_norm(m.ones(2, 3), (4,)),
    "dropout": lambda m: m.nn.functional.dropout(m.ones(2), 1.5),
    "repeat": lambda m: m.ones(2, 3).repeat(2), "tile_negative": lambda m: m.ones(2).tile(-1),
    "repeat_interleave": lambda m: m.ones(3).repeat_interleave(m.tensor([1, 2])),
    "roll": lambda m: m.ones(3).roll((1, 2), 0), "roll_none": lambda m: m.ones(3).roll(()),
    "rot90": lambda m: m.ones(3, 3).rot90(1, (0, 0)), "rot90_1d": lambda m: m.ones(3).rot90(),
    "meshgrid": lambda m: m.meshgrid(m.ones(2, 2)),
    "meshgrid_dtypes": lambda m: m.meshgrid(m.ones(2), m.ones(2).long()),
    "combinations": lambda m: m.combinations(m.ones(2, 2)), "cartesian": lambda m: m.cartesian_prod(m.ones(2, 2)),
    "tensor_split": lambda m: m.ones(3).tensor_split(0), "hsplit": lambda m: m.ones(3).hsplit(2),
    "unfold": lambda m: m.ones(3).unfold(0, 4, 1), "unfold_step": lambda m: m.ones(3).unfold(0, 2, 0),
    "diag": lambda m: m.ones(2, 2, 2).diag(), "trace": lambda m: m.ones(2).trace(),
    "diag_embed": lambda m: m.diag_embed(m.ones(2), 0, 1, 1),
    "one_hot": lambda m: m.nn.functional.one_hot(m.tensor([3]), 2),
    "one_hot_float": lambda m: m.nn.functional.one_hot(m.ones(2)),
    "select_scatter": lambda m: m.select_scatter(m.ones(2, 2), m.ones(3), 0, 0),
    "view_as_complex": lambda m: m.view_as_complex(m.ones(3)), "view_as_real": lambda m: m.view_as_real(m.ones(3)),
    "complex_dtypes": lambda m: m.complex(m.ones(2), m.ones(2).double()),
    "scatter_reduce": lambda m: m.zeros(2).scatter_reduce(0, m.tensor([0]), m.ones(1), "all"),
    "scatter_no_src": lambda m: m.zeros(2).scatter(0, m.tensor([0])),
    "index_copy": lambda m: m.zeros(2).index_copy(0, m.tensor([0]), m.ones(2)),
    "index_fill": lambda m: m.zeros(2).index_fill(0, m.tensor([5]), 1),
    "take": lambda m: m.ones(2).take(m.tensor([5])), "put": lambda m: m.ones(2).put(m.tensor([0]), m.ones(2)),
    "take_along_dim": lambda m: m.ones(2, 2).take_along_dim(m.tensor([0]), 0),
    "masked_scatter": lambda m: m.zeros(2).masked_scatter(m.tensor([True, True]), m.ones(1)),
    "searchsorted": lambda m: m.searchsorted(m.ones(2, 3), m.ones(3, 4)),
    "bucketize": lambda m: m.bucketize(m.ones(2), m.ones(2, 2)),
    "embedding_bag": lambda m: m.nn.functional.embedding_bag(m.tensor([0]), m.ones(2, 2)),
    "bincount": lambda m: m.bincount(m.tensor([-1])), "bincount_float": lambda m: m.bincount(m.ones(2)),
    "histc": lambda m: m.histc(m.ones(2), 0), "quantile": lambda m: m.quantile(m.ones(2), 1.5),
    "quantile_int": lambda m: m.quantile(m.ones(2).long(), 0.5), "kthvalue": lambda m: m.ones(2).kthvalue(3),
    "median_empty": lambda m: m.ones(0, 2).median(0), "diff": lambda m: m.diff(m.tensor(1.0)),
    "trapezoid": lambda m: m.trapezoid(m.ones(3), m.ones(2)), "renorm": lambda m: m.ones(2).renorm(2, 0, 1),
    "addmv": lambda m: m.addmv(m.ones(3), m.ones(2, 2), m.ones(2)),
    "addr": lambda m: m.addr(m.ones(1), m.ones(2, 2), m.ones(2)),
    "baddbmm": lambda m: m.baddbmm(m.ones(3), m.ones(2, 2, 2), m.ones(2, 2, 2)),
    "tensordot": lambda m: m.tensordot(m.ones(2, 3), m.ones(2, 3), 1), "inner": lambda m: m.inner(m.ones(2), m.ones(3)),
    "cross": lambda m: m.cross(m.ones(2), m.ones(2), 0), "cdist": lambda m: m.cdist(m.ones(2, 3), m.ones(2, 4)),
    "cdist_p": lambda m: m.cdist(m.ones(2, 3), m.ones(2, 3), -1),
    "matrix_power": lambda m: m.matrix_power(m.ones(2, 3), 2),
    "matrix_norm": lambda m: m.linalg.matrix_norm(m.ones(2)), "multi_dot": lambda m: m.linalg.multi_dot([m.ones(2, 2)]),
    "glu": lambda m: m.nn.functional.glu(m.ones(3)), "prelu": lambda m: m.nn.functional.prelu(m.ones(2, 3), m.ones(2)),
    "bce_range": lambda m: m.nn.functional.binary_cross_entropy(m.tensor([2.0]), m.ones(1)),
    "bce_shape": lambda m: m.nn.functional.binary_cross_entropy(m.ones(2), m.ones(3)),
    "bce_logits": lambda m: m.nn.functional.binary_cross_entropy_with_logits(m.ones(2), m.ones(3)),
    "huber": lambda m: m.nn.functional.huber_loss(m.ones(2), m.ones(2), delta=0.0),
    "reduction": lambda m: m.nn.functional.smooth_l1_loss(m.ones(2), m.ones(2), reduction="all"),
    "gaussian": lambda m: m.nn.functional.gaussian_nll_loss(m.ones(2), m.ones(2), m.tensor([-1.0, 1.0])),
    "multi_margin": lambda m: m.nn.functional.multi_margin_loss(m.ones(2, 3), m.tensor([0, 5])),
    "triplet": lambda m: m.nn.functional.triplet_margin_loss(m.ones(2, 2), m.ones(2, 2), m.ones(2, 2), margin=-1.0),
    "ctc": lambda m: m.nn.functional.ctc_loss(m.ones(3, 1, 2), m.tensor([[1]]), (4,), (1,)),
    "multinomial": lambda m: m.multinomial(m.ones(2), 3),
    "multinomial_negative": lambda m: m.multinomial(-m.ones(2), 1),
    "poisson": lambda m: m.poisson(m.tensor([-1.0])),
    "alpha_dropout": lambda m: m.nn.functional.alpha_dropout(m.ones(2), 2.0),
    "cauchy": lambda m: m.ones(2).cauchy_(0, -1), "geometric": lambda m: m.ones(2).geometric_(2.0),
    "addcdiv_int": lambda m: m.addcdiv(m.ones(2).long(), m.ones(2).long(), m.ones(2).long()),
    "gcd_float": lambda m: m.gcd(m.ones(2), m.ones(2)), "rsub_bool": lambda m: m.rsub(m.tensor(True), 1),
    "polygamma": lambda m: m.polygamma(-1, m.ones(2)), "positive_bool": lambda m: m.positive(m.tensor(True)),
}
@walk("name", ERRORS)
def test_error_type(name):
    """What raises in torch raises here, with the same class or one derived from it."""
    try:
        value = ERRORS[name](torch)
    except Exception as e:
        want = type(e)
    else:
        pytest.fail(f"torch does not raise here: {value!r}")
    with pytest.raises(want):
        ERRORS[name](pt)


def test_cases_exist():
    """The suite compares what it says: nearly every public op has a counterpart in torch."""
    public = [r for r in ROWS.values() if not r.internal and not r.random and r.family != "fft"]
    missing = {r.name for r in public if cases(r)} - {r.name for r in COMPARED}
    # vectors of a decomposition are unique only up to a factor: tests/ops/linalg
    assert missing <= {"trunc_divide", "svd", "linalg_svd", "linalg_svdvals"}, missing
    assert any(isinstance(s, F) for s in CASES["sum"][0])
