"""Messages name the function that the user called, never a row that is not public."""
import math
import re

import pytest

import ptcore as pt
from ptcore._ops import rows
from ptcore._ops.table import ids as _table
from ptcore.nn import functional as F

pytestmark = pytest.mark.core

ROWS = {row.name: row for row in rows() if row.family != "registered"}
OPS = _table.n_ops()                    # tests define more, under one name again and again
INTERNAL = sorted(name for name, row in ROWS.items() if row.internal)
# Said by what is no function.
WORDS = {"index": pt.Tensor.__getitem__, "rnn": pt.nn.RNN, "standard_gamma": pt.distributions.Gamma,
         **{name.lower(): getattr(pt.optim, name) for name in pt.optim.__all__}}


def public(name):
    """What a user can call by a name that messages say."""
    for owner in (pt, pt.Tensor, F, pt.linalg, pt.special, pt.fft):
        for spelled in (name, name + "_", name.removeprefix("linalg_"), name.removeprefix("fft_")):
            if hasattr(owner, spelled):
                return getattr(owner, spelled)
    return WORDS.get(name)


@pytest.mark.parametrize("name", INTERNAL)
def test_rows_that_are_not_public_say_what_was_called(name):
    row = ROWS[name]
    assert row.called not in INTERNAL
    assert public(row.called) is not None
    assert _table.message_name(_table.op_id(name)) == row.called


def test_every_op_has_a_name_of_its_own_and_one_to_say():
    names = [_table.op_name(op) for op in range(OPS)]
    assert len(set(names)) == len(names)
    for op, name in enumerate(names):
        base = name.partition("__d")[0]
        if base in ROWS:
            assert _table.message_name(op) == ROWS[base].called


X, WHOLE, META = pt.ones(3), pt.tensor([1, 2, 3]), pt.tensor([0], device="meta")
COMPLEX = pt.ones(2, 2, dtype=pt.complex64)
BITS = pt.ones(1, 1, 2, 2, dtype=pt.bool)


def whole_step(make, **options):
    """A step of integers."""
    p = pt.zeros(2, dtype=pt.int64)
    p.grad = pt.zeros(2, dtype=pt.int64)
    make([p], **options).step()


STEPS = {"sgd": (pt.optim.SGD, {}), "sgd_momentum": (pt.optim.SGD, {"momentum": 0.5}),
         "sgd_nesterov": (pt.optim.SGD, {"momentum": 0.5, "nesterov": True}), "adam": (pt.optim.Adam, {}),
         "amsgrad": (pt.optim.Adam, {"amsgrad": True}), "rmsprop": (pt.optim.RMSprop, {}),
         "rmsprop_momentum": (pt.optim.RMSprop, {"momentum": 0.5}),
         "rmsprop_centered": (pt.optim.RMSprop, {"centered": True}),
         "rmsprop_momentum_centered": (pt.optim.RMSprop, {"momentum": 0.5, "centered": True}),
         **{make.__name__.lower(): (make, {}) for make in (
             pt.optim.Adadelta, pt.optim.Adagrad, pt.optim.Adamax, pt.optim.ASGD, pt.optim.NAdam, pt.optim.RAdam,
             pt.optim.Rprop)}}
CALLS = {
    "add_scaled": ("add", lambda: pt.add(WHOLE, WHOLE, alpha=1.5)),
    "sub_scaled": ("sub", lambda: WHOLE.sub(WHOLE, alpha=1e39)),
    "trunc_divide": ("div", lambda: pt.div(WHOLE, 0, rounding_mode="trunc")),
    "root_of_variance": ("std", lambda: pt.std(WHOLE)),
    "round_to": ("round", lambda: pt.round(WHOLE, decimals=1)),
    "clamp_between": ("clamp", lambda: pt.clamp(X, 0, 1, out=pt.ones(3, dtype=pt.int64))),
    "assign": ("copy", lambda: X.clone().copy_(pt.ones(2))),
    "gelu_tanh": ("gelu", lambda: F.gelu(WHOLE, approximate="tanh")),
    "prod_dims": ("prod", lambda: X.prod(5)),
    "max_dim": ("max", lambda: COMPLEX.max(0)),
    "min_dim": ("min", lambda: pt.min(COMPLEX, 0)),
    "var_dims": ("var", lambda: pt.var(WHOLE)), "std_dims": ("std", lambda: pt.std(WHOLE)),
    "vector_norm": ("norm", lambda: WHOLE.norm()),
    "split_by_sizes": ("split", lambda: X.split([1, 1])),
    "split_by_sizes_unsafely": ("unsafe_split_with_sizes", lambda: X.unsafe_split_with_sizes([1, 1])),
    "as_strided_of": ("as_strided", lambda: pt.as_strided(X, (9,), (1,))),
    "scatter_src": ("scatter", lambda: X.scatter(0, WHOLE - 1, WHOLE)),
    "index_get": ("index", lambda: X[META]),
    "is_among": ("isin", lambda: pt.isin(COMPLEX, COMPLEX)),
    "index_filled": ("index_fill", lambda: X.index_fill(0, pt.tensor([7]), 1)),
    "median_along": ("nanmedian", lambda: pt.nanmedian(pt.ones(2, 0), 1)),
    "multi_margin": ("multi_margin_loss", lambda: F.multi_margin_loss(pt.ones(1, 2), pt.tensor([2]))),
    "multilabel_margin": ("multilabel_margin_loss",
                          lambda: F.multilabel_margin_loss(pt.ones(1, 2), pt.tensor([[-2, 0]]))),
    "overwritten": ("select_scatter", lambda: pt.select_scatter(X, pt.ones(2, device="meta"), 0, 0)),
    "masked_write": ("masked_scatter", lambda: X.masked_scatter(X > -9, pt.ones(1))),
    "_fft_c2c": ("fft_ifft", lambda: pt.fft.ifft(COMPLEX[:, :0])),
    "_fft_r2c": ("fft_ihfft", lambda: pt.fft.ihfft(X.half())),
    "_fft_c2r": ("fft_hfft", lambda: pt.fft.hfft(X, out=pt.ones(4, dtype=pt.int64))),
    "complex_pair": ("complex", lambda: pt.complex(X, WHOLE)),
    "cross_of": ("cross", lambda: pt.cross(pt.ones(3, dtype=pt.bool), pt.ones(3, dtype=pt.bool))),
    "fractional_windows": ("fractional_max_pool2d", lambda: F.fractional_max_pool2d(pt.ones(1, 4, 4), 2, 4)),
    "index_write": ("index_put_", lambda: X.clone().index_put_((META,), pt.ones(1))),
    "index_accumulate": ("index_put_", lambda: X.clone().index_put_((META,), pt.ones(1), accumulate=True)),
    "_linalg_svd": ("linalg_svd", lambda: pt.linalg.svd(pt.ones(2, 2, dtype=pt.int64))),
    "_linalg_solve": ("linalg_solve", lambda: pt.linalg.solve(pt.ones(2, 2), pt.ones(3))),
    "_linalg_solve_triangular": ("linalg_solve_triangular",
                                 lambda: pt.linalg.solve_triangular(pt.ones(2, 2), pt.ones(3, 1), upper=True)),
    "_linalg_cholesky": ("linalg_cholesky", lambda: pt.linalg.cholesky(-pt.eye(2))),
    "_linalg_qr": ("linalg_qr", lambda: pt.linalg.qr(WHOLE)),
    "_linalg_eigh": ("linalg_eigh", lambda: pt.linalg.eigh(pt.full((2, 2), math.nan))),
    "_geqrf": ("geqrf", lambda: pt.geqrf(WHOLE)),
    "_linalg_eig": ("linalg_eig", lambda: pt.linalg.eig(pt.ones(2, 3))),
    "_linalg_householder": ("linalg_householder_product",
                            lambda: pt.linalg.householder_product(pt.ones(2, 3), pt.ones(3))),
    "_linalg_ldl": ("linalg_ldl_factor", lambda: pt.linalg.ldl_factor(pt.ones(2, 3))),
    "_linalg_ldl_solve": ("linalg_ldl_solve", lambda: pt.linalg.ldl_solve(
        pt.eye(2), pt.tensor([1, 9], dtype=pt.int32), pt.ones(2, 1))),
    "_linalg_lu": ("linalg_lu", lambda: pt.linalg.lu(WHOLE)),
    "_linalg_matrix_exp": ("linalg_matrix_exp", lambda: pt.linalg.matrix_exp(pt.ones(2, 3))),
    "_linalg_solve_ex": ("linalg_solve_ex", lambda: pt.linalg.solve_ex(pt.ones(2, 2), pt.ones(3))),
    "_linalg_inv": ("linalg_inv", lambda: pt.linalg.inv(pt.ones(2, 3))),
    "_linalg_lu_solve": ("linalg_lu_solve", lambda: pt.linalg.lu_solve(
        pt.ones(2, 2), pt.tensor([1, 3], dtype=pt.int32), pt.ones(2, 1))),
    "_pivot_order": ("linalg_lu_solve", lambda: pt.linalg.lu_solve(
        pt.eye(2), pt.tensor([1, 9], dtype=pt.int32), pt.ones(2, 1))),
    "_linalg_det": ("linalg_det", lambda: pt.linalg.det(pt.ones(2, 3))),
    "_linalg_slogdet": ("linalg_slogdet", lambda: pt.linalg.slogdet(pt.ones(2, 3))),
    "recurrent_layer": ("RNN", lambda: pt.nn.RNN(2, 3)(pt.ones(2, 2, 2), pt.ones(1, 3, 3))),
    "layer_norm_stats": ("layer_norm", lambda: F.layer_norm(WHOLE, (3,))),
    "rms_norm_stats": ("rms_norm", lambda: F.rms_norm(pt.ones(2, 3), (3,), pt.ones(3, device="meta"))),
    "batch_norm_stats": ("batch_norm", lambda: F.batch_norm(pt.ones(2, 3, dtype=pt.int64), None, None, training=True)),
    "batch_norm_given": ("batch_norm", lambda: F.batch_norm(pt.ones(2, 3, dtype=pt.int64), pt.zeros(3), pt.ones(3))),
    "group_norm_stats": ("group_norm", lambda: F.group_norm(pt.ones(2, 3, dtype=pt.int64), 1)),
    "cross_entropy_stats": ("cross_entropy", lambda: F.cross_entropy(pt.ones(3, 2, dtype=pt.int64), WHOLE)),
    "ctc_loss_stats": ("ctc_loss", lambda: F.ctc_loss(pt.ones(3, 1, 2, dtype=pt.int64), pt.ones(1, 1, dtype=pt.int64), (3,),
                                                      (1,))),
    "segments": ("segment_reduce", lambda: pt.segment_reduce(pt.ones(3), "max", lengths=pt.tensor([2]))),
    "binned": ("histogram", lambda: pt.histogram(pt.ones(2), 0)),
    "counted": ("bincount", lambda: pt.bincount(pt.ones(2))),
    "nll_loss_stats": ("nll_loss", lambda: F.nll_loss(pt.ones(3, 2, dtype=pt.int64), WHOLE)),
    "squared_difference": ("mse_loss", lambda: F.mse_loss(WHOLE, WHOLE)),
    "absolute_difference": ("l1_loss", lambda: F.l1_loss(pt.ones(3), pt.ones(2))),
    "fill_arange": ("arange", lambda: pt.arange(0, 10**20)),
    "fill_linspace": ("linspace", lambda: pt.linspace(0, 1, 3, dtype=pt.bool)),
    "fill_eye": ("eye", lambda: pt.eye(-1)),
    "fill_full": ("full", lambda: pt.vmap(lambda x: x + pt.full((-1,), 2.0))(pt.ones(2))),
    "random_uniform": ("rand", lambda: pt.rand(3, dtype=pt.int64)),
    "random_normal": ("randn", lambda: pt.randn(3, dtype=pt.int64)),
    "random_exponential": ("exponential_", lambda: WHOLE.clone().exponential_()),
    "random_integers": ("randint", lambda: pt.randint(5, 2, (3,))),
    "randperm_values": ("randperm", lambda: pt.randperm(-1)),
    "bernoulli_of": ("bernoulli", lambda: pt.bernoulli(WHOLE)),
    "dropout_masked": ("dropout", lambda: F.dropout(WHOLE)),
    "places_among": ("searchsorted", lambda: pt.searchsorted(COMPLEX[0], COMPLEX)),
    "scatter_prod": ("scatter_reduce", lambda: X.scatter_reduce(0, WHOLE, X, "prod")),
    "scatter_amax": ("scatter_reduce", lambda: X.scatter_reduce(0, WHOLE, X, "amax")),
    "scatter_amin": ("scatter_reduce", lambda: X.scatter_reduce(0, WHOLE, X, "amin")),
    "poisson_of": ("poisson", lambda: pt.poisson(-X)),
    "binomial_of": ("binomial", lambda: pt.binomial(X + 0.5, X)),
    "prelu_of": ("prelu", lambda: F.prelu(WHOLE, WHOLE[:1])),
    "logit_of": ("logit", lambda: pt.logit(COMPLEX)),
    "polygamma_of": ("polygamma", lambda: pt.polygamma(1, COMPLEX)),
    "hardtanh_of": ("hardtanh", lambda: F.hardtanh(COMPLEX)),
    "softshrink_of": ("softshrink", lambda: F.softshrink(WHOLE)),
    "softsign_of": ("softsign", lambda: F.softsign(X, out=pt.ones(3, dtype=pt.int64))),
    "logsumexp_of": ("logsumexp", lambda: pt.logsumexp(X, 9)),
    "nan_replaced": ("nan_to_num", lambda: pt.nan_to_num(X, "a")),
    "cross_entropy_of_bits": ("binary_cross_entropy", lambda: F.binary_cross_entropy(X, WHOLE)),
    "cross_entropy_of_logits": ("binary_cross_entropy_with_logits",
                                lambda: F.binary_cross_entropy_with_logits(X, COMPLEX)),
    "gated": ("glu", lambda: F.glu(pt.ones(2, dtype=pt.int64))),
    "huber_of": ("huber_loss", lambda: F.huber_loss(X, WHOLE, delta="a")),
    "convolve": ("conv2d", lambda: F.conv2d(BITS, BITS)),
    "convolve_transposed": ("conv_transpose2d", lambda: F.conv_transpose2d(BITS, BITS)),
    "max_pool_windows": ("max_pool2d", lambda: F.max_pool2d(BITS, 2)),
    "mean_pool": ("avg_pool2d", lambda: F.avg_pool2d(BITS, 2)),
    "pad_constant": ("pad", lambda: F.pad(X, (-2, -2))),
    "pad_edges": ("pad", lambda: F.pad(X.reshape(1, 1, -1), (9, 9), "reflect")),
    "unfold_windows": ("unfold", lambda: F.unfold(BITS.to(pt.int64), 2)),
    "fold_windows": ("fold", lambda: F.fold(pt.ones(1, 4, 3), (3, 3), 2)),
    "resample": ("interpolate", lambda: F.interpolate(BITS, 3)),
    "attention_stats": ("scaled_dot_product_attention", lambda: F.scaled_dot_product_attention(BITS, BITS, BITS)),
    "grid_sampled": ("grid_sample", lambda: F.grid_sample(X, X)),
    **{f"step_{name}": (make.__name__.lower(), lambda make=make, options=options: whole_step(make, **options))
       for name, (make, options) in STEPS.items()},
    # not a row of their own, or shared by functions
    "by uniform_": ("uniform_", lambda: WHOLE.clone().uniform_()),
    "by normal_": ("normal_", lambda: WHOLE.clone().normal_()),
    "by uniform_ of nan": ("uniform_", lambda: X.clone().uniform_(0, math.nan)),
    "by clamp": ("clamp", lambda: X.clamp(max=1e39)),
    "by clamp of complex": ("clamp", lambda: pt.clamp(COMPLEX, min=1)),
    "by setitem": ("index", lambda: X.clone().__setitem__(slice(2), pt.ones(3))),
    "by setitem with a mask": ("index", lambda: X.clone().__setitem__(X > 0, pt.ones(2))),
    "by setitem with positions": ("index", lambda: X.clone().__setitem__([0, 1], pt.ones(3))),
    "by var of a word": ("var", lambda: X.var("a")),
    "by matmul": ("matmul", lambda: pt.matmul(WHOLE, pt.ones(3, dtype=pt.float64, device="meta"))),
}
# Ops of a backward on what a forward has accepted, and conversions that take everything.
UNREACHED = {"gelu_erf_grad", "gelu_tanh_grad", "softmax_backward", "log_softmax_backward", "layer_norm_backward",
             "rms_norm_backward", "batch_norm_backward", "group_norm_backward", "cross_entropy_backward", "attention_backward",
             "grid_sample_backward", "max_pool_backward", "keep_mask", "recurrent_layer_backward", "_linalg_pinv_of",
             "nll_loss_backward", "convolve_weight", "mean_pool_transposed", "pad_edges_transposed",
             "resample_transposed", "filtered", "filtered_transposed",
             "to_dtype", "to_device", "conj_physical", "nextafter_of", "slice", "split_evenly", "split_by_slices",
             "split_unsafely", "ctc_loss_backward", "segments_slope", "median_of",
             "nonzero_of", "row_major", "picked", "masked_collect", "triangle_places",
             "multi_margin_slope", "multilabel_margin_slope", "pair_distances", "pair_distances_slope",
             # of PyTorch's random numbers: their functions check the arguments
             "random_one_by_one", "random_log_normal", "random_cauchy", "random_geometric", "random_whole",
             "random_bernoulli_number", "random_gamma", "random_places", "rrelu_noise",
             "row_distances", "row_distances_slope", "airy_ai_slope", "bessel_j_of", "spherical_bessel_j_of",
             "jacobi_ratio", "laguerre_of", "frexp_mantissa", "frexp_exponent", "mean_of_terms",
             "with_values", "sigmoid_slope", "logcumsumexp_slope", "products_slope"}


def test_every_row_is_called_or_said_to_be_unreached():
    assert set(INTERNAL) == {name for name in CALLS if not name.startswith("by ")} | UNREACHED


@pytest.mark.parametrize("case", CALLS)
def test_messages(case):
    name, call = CALLS[case]
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError, OverflowError)) as caught:
        call()
    text = str(caught.value)
    assert text.startswith(f"{name}: "), text
    assert not re.search(rf"\b({'|'.join(n for n in INTERNAL if n != 'slice')})\b", text), text


def test_a_composite_keeps_class_and_cause():
    """Only the name at the front is another; errors of user code stay as they are."""
    with pytest.raises(NotImplementedError, match=r"^clamp: dtype must be one of bool"):
        pt.clamp(COMPLEX, min=1)

    class Own(pt.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise KeyError("my: own")

    with pytest.raises(KeyError, match="my: own"):
        pt.clamp(X.as_subclass(Own), min=1)
