"""Cases of the composite rows by family, the dtypes they take, and what the generated tests leave to others."""
import math

from _specs import B, C, F, I

import ptcore
from ptcore._ops.table import schema

POSITIVE = ("uniform", 0.5, 3)
UNIT = ("uniform", 0.1, 0.9)
REAL, NUMERIC, ORDERED, FLOATING = schema.REAL, schema.NUMERIC, schema.ORDERED, schema.FLOATING
WIDE = ("float32", "float64")
WIDE_COMPLEX = (*WIDE, "complex64", "complex128")
PLACES = I([[0, 2, 1], [1, 1, 0]])

SHAPING = {
    "repeat": [[F(2, 3), (2, 2)], [F(3), (2, 1, 2)], [F(), (3,)], [F(2), (0,)]],
    "tile": [[F(2, 3), (2,)], [F(2), (2, 2)], [F(2, 3), (1, 2)]],
    "repeat_interleave": [[F(3, 2), 2], [F(3, 2), I([1, 0, 2]), 0], [F(3, 2), 2, 1], [F(2, 3), I([2]), -1]],
    "roll": [[F(5), 2], [F(2, 3), 4], [F(2, 3), (1, -1), (0, 1)], [F(2, 3), -1, 1]],
    "rot90": [[F(2, 3)], [F(2, 3), 2], [F(2, 3, 4), 3, (1, 2)], [F(2, 3), -1, (1, 0)]],
    "fliplr": [[F(2, 3)]], "flipud": [[F(2, 3)], [F(3)]], "ravel": [[F(2, 3)], [F()]],
    "hstack": [[[F(2), F(3)]], [[F(2, 1), F(2, 2)]], [[F(), F(2)]]],
    "vstack": [[[F(2), F(2)]], [[F(1, 2), F(2, 2)]]],
    "dstack": [[[F(2), F(2)]], [[F(2, 1, 1), F(2, 1, 2)]]],
    "column_stack": [[[F(2), F(2, 2)]], [[F(), F()]]],
    "atleast_1d": [[[F()]], [[F(), F(2)]]], "atleast_2d": [[[F(2)]], [[F(), F(2, 1)]]],
    "atleast_3d": [[[F(2)]], [[F(), F(2, 1)]]],
    "block_diag": [[[F(2, 3), F(1, 2)]], [[F(2), F()]]],
    "broadcast_tensors": [[[F(2, 1), F(3)]], [[F(), F(2)]]],
    "meshgrid": [[[F(2), F(3)], "ij"], [[F(2), F(3), F(1)], "xy"], [[F(2), F()], "ij"]],
    "cartesian_prod": [[[F(2), F(3)]], [[F(2)]]],
    "combinations": [[F(4)], [F(3), 3], [F(3), 2, True], [F(3), 1]],
    "tensor_split": [[F(5, 2), 2], [F(2, 5), [1, 4], 1], [F(5), (2,)]],
    "hsplit": [[F(2, 4), 2], [F(4), [1]]], "vsplit": [[F(4, 1), 2]], "dsplit": [[F(1, 2, 4), [1, 3]]],
    "unfold": [[F(5), 0, 2, 1], [F(2, 6), 1, 3, 2], [F(4, 2), 0, 4, 1]],
    "diag": [[F(3)], [F(3, 4)], [F(3, 3), -1], [F(2), 1]], "diagflat": [[F(2, 2)], [F(2), -1]],
    "diag_embed": [[F(2, 3)], [F(2, 3), 1], [F(2), -1, 0, 1], [F(2, 3), 0, 0, 2]],
    "trace": [[F(3, 3)], [F(2, 4)]],
    "tril_indices": [[3, 3], [2, 4, 1]], "triu_indices": [[3, 3], [4, 2, -1]],
    "one_hot": [[I([0, 2, 1])], [I([[1], [0]]), 4]],
    "select_scatter": [[F(2, 3), F(3), 0, 1], [F(2, 3), F(2), 1, -1]],
    "slice_scatter": [[F(4, 2), F(2, 2), 0, 1, 3], [F(2, 5), F(2, 2), 1, None, 4, 2]],
    "as_strided_scatter": [[F(3, 3), F(2, 2), (2, 2), (3, 2)], [F(6), F(2), (2,), (3,), 1]],
    "split_with_sizes": [[F(5, 2), (2, 3)], [F(2, 5), [1, 4], 1]],
    "unsafe_split": [[F(5, 2), 2], [F(2, 5), 3, 1]], "unsafe_chunk": [[F(5, 2), 2], [F(2, 6), 3, 1]],
    "unsafe_split_with_sizes": [[F(5, 2), (2, 3)], [F(2, 5), [1, 4], 1]],
    "alias_copy": [[F(3, 4)], [F()]], "detach_copy": [[F(3, 4)]], "split_copy": [[F(5, 2), 2], [F(2, 5), 3, 1]],
    "as_strided_copy": [[F(12), (3, 2), (4, 1), 1], [F(12), (3, 4), (2, 1)]], "expand_copy": [[F(3, 1), (2, -1, 5)]],
    "diagonal_scatter": [[F(3, 3), F(3)], [F(3, 4), F(3), 1]],
    "complex_of": [[F(2, 3), F(2, 3)], [F(2, 1), F(3)]],
    "polar": [[F(2, 3, domain=POSITIVE), F(2, 3)]],
    "view_as": [[F(2, 3), C(3, 2)], [F(4), C(2, 1, 2)]], "reshape_as": [[F(2, 3), C(3, 2)], [F(), C(1)]],
    "expand_as": [[F(3, 1), C(2, 3, 4)], [F(2), C(2)]], "type_as": [[F(2, 3), C(2)]],
    "broadcast_to": [[F(3, 1), (2, 3, 4)], [F(), (2,)]], "conj": [[F(2, 3)], [F()]],
    "adjoint": [[F(2, 3)], [F(2, 3, 4)]], "resolve_conj": [[F(2, 3)]], "resolve_neg": [[F(2, 3)]],
    "as_strided": [[F(12), (3, 2), (4, 1), 1], [F(12), (3, 4), (2, 1)]],
    "sum_to_size": [[F(2, 3), (1, 3)], [F(2, 3), (3,)], [F(2, 1, 3), (1, 1)], [F(3), ()]],
    "to_dense": [[F(2, 3)]], "where_method": [[F(2, 3), B(2, 3), F(2, 3)], [F(3), B(2, 3), 2]],
    "fill_diagonal_inplace": [],                    # in place: test_parity_small_methods.py
    "masked_select": [[F(2, 3), B(2, 3)], [F(2, 3), I([True, False, True])], [F(3), B(2, 3)]],
    "constant_pad_nd": [[F(2, 3), (1, 2)], [F(3, 4), (0, 1, 2, -1), 2]],
    "view_as_real": [[F(2, 3)], [F()]], "view_as_complex": [[F(3, 2)], [F(2)]],
}

SELECTION = {
    "scatter": [[F(3, 3), 1, I([[0, 2], [2, 1]]), F(2, 2)], [F(3, 3), 0, I([[0, 1, 2]]), 2]],
    "scatter_reduce": [[F(3, 3), 1, PLACES, F(2, 3), reduce, own] for reduce in ("sum", "prod", "mean", "amax", "amin")
                       for own in (True, False)],
    "scatter_prod": [[F(3, 3), 1, PLACES, F(2, 3)], [F(3, 3), 0, PLACES, F(3, 4)]],
    "scatter_amax": [[F(3, 3), 1, PLACES, F(2, 3)], [F(3, 3), 0, PLACES, F(3, 4)]],
    "scatter_amin": [[F(3, 3), 1, PLACES, F(2, 3)]],
    "index_fill": [[F(4, 3), 0, I([3, 0]), 1], [F(2, 4), -1, I([1, 1]), 0], [F(2, 4), 1, I([-1, 0, -4]), 2]],
    "index_reduce": [[F(4, 3), 0, I([3, 0, 0]), F(3, 3), reduce, own] for reduce in ("prod", "mean", "amax", "amin")
                     for own in (True, False)],
    "take": [[F(2, 3), I([0, 5, -1])], [F(3), I([[1, 1]])]],
    "put": [[F(2, 3), I([0, -1]), F(2)], [F(2, 3), I([1, 1]), F(2), True]],
    "take_along_dim": [[F(2, 3), PLACES, 1], [F(2, 3), I([[2]]), 1], [F(2, 3), I([5, 0]), None]],
    "masked_scatter": [[F(2, 3), B(2, 3), F(6)], [F(2, 3), B(3), F(3, 2)]],
    "argwhere": [[F(2, 3)]], "nonzero": [[F(2, 3)], [F()], [F(0, 2)]],
    "index_put": [[F(4, 3), [I([2, 0])], F(2, 3)], [F(4, 3), [I([2, 0]), I([1, 1])], F(2), True]], "nonzero_static": [[F(2, 3), 4], [F(2, 3), 8, 5], [F(), 0]],
    "fill": [[F(2, 3), 2], [F(), 1], [F(0, 2), 3]],
    "searchsorted": [], "bucketize": [], "places_among": [],       # of sorted data: test_order.py
    "renorm": [[F(3, 4), 2, 0, 1.5], [F(3, 4), 1, 1, 2.0], [F(2, 3, 2), 3, -1, 100.0]],
    "embedding": [[F(4, 3), I([[0, 3], [3, 1]])], [F(4, 3), I(2)], [F(4, 3), I([])]],
    "embedding_function": [[I([[0, 3], [3, 1]]), F(4, 3)]],
    "embedding_bag": [[I([[0, 3], [3, 1]]), F(4, 3), None, None, 2.0, False, mode] for mode in ("sum", "mean", "max")],
}

STATISTICS = {
    "std_mean": [[F(3, 5)], [F(3, 5), 1]], "var_mean": [[F(3, 5)], [F(3, 5), 1]],
    "nansum": [[F(3, 5)], [F(3, 5), 1], [F(2, 3), 0, True]], "nanmean": [[F(3, 5)], [F(3, 5), 1, True]],
    "cov": [[F(3, 5)], [F(3, 4), 0]], "corrcoef": [[F(3, 5)]],
    "aminmax": [[F(3, 5)], [F(3, 5), 1], [F(2, 3), 0, True]],
    "msort": [[F(3, 5)], [F(4)]],
    "kthvalue": [[F(3, 5), 2], [F(5, 3), 4, 0], [F(3, 5), 1, 1, True], [F(2, 40, 3), 25, 1], [F(), 1]],
    "median_along": [[F(3, 5), False, 1, True], [F(40, 3), True, 0, False], [F(3, 4), False, 1, False]],
    "median_of": [[F(15), False, 0, False], [F(8), True, 0, True]],
    "median": [[F(3, 5)], [F(3, 4), 1], [F(4, 3), 0, True]], "nanmedian": [[F(3, 5)], [F(3, 4), 1]],
    "mode": [[F(3, 5)], [F(4, 3), 0, True], [F(2, 40, 3), 1]],
    "quantile": [[F(3, 5), 0.3], [F(3, 5), 0.5, 1], [F(2, 4), 0.7, 0, True]]
    + [[F(5), 0.3, None, False, kind] for kind in ("lower", "higher", "nearest", "midpoint")],
    "nanquantile": [[F(3, 5), 0.3], [F(3, 5), 0.25, 1]],
    "unique": [[F(2, 3)], [F(2, 3), True, True, True], [F(4, 2), True, True, True, 0]],
    "unique_consecutive": [[F(6)]],
    "bincount": [[I([0, 3, 3])], [I([1, 1]), None, 4]],
    "histc": [[F(20), 5], [F(20), 4, -1, 2]],
    "diff": [[F(5)], [F(3, 4), 2], [F(3, 4), 1, 0]],
    "trapezoid": [[F(5)], [F(3, 4), None, 0.5, 0], [F(3, 4), F(4)], [F(3, 4), F(3, 4), None, 0]],
    "cumulative_trapezoid": [[F(5)], [F(3, 4), None, 0.5, 0], [F(3, 4), F(4)]],
    "nan_to_num": [[F(3)], [F(2, 3), 1.0, 2.0, 3.0]],
    "logit": [[F(3, 4, domain=UNIT)], [F(3, 4, domain=UNIT), 0.25]],
    "polygamma_function": [[1, F(3, domain=POSITIVE)], [2, F(3, domain=POSITIVE)], [0, F(3, domain=POSITIVE)]],
    "ldexp": [[F(3), I([0, 2, -1])], [F(2, 3), 3]],
    "frexp": [[F(2, 3)]],
    "float_power": [[F(3, domain=POSITIVE), 2], [F(3, domain=POSITIVE), F(3)]],
    "rsub": [[F(3), 2], [F(2, 3), F(3)]],
    "positive": [[F(3)]], "isreal": [[F(3)]],
    "mvlgamma": [[F(3, domain=POSITIVE), 1], [F(2, 3, domain=("uniform", 1.5, 4)), 3]],
    "special_ndtr": [[F(3)]],
    "nextafter": [[F(3), F(3)], [F(2, 1), F(3)], [F(), F()]], "conj_physical_function": [[F(2, 3)]],
    "special_xlog1py": [[F(3), F(3, domain=POSITIVE)], [F(2, 1), F(3, domain=POSITIVE)]],
    "isin": [[I([0, 2, 5]), I([[2, 0]])], [F(2, 3), F(4)], [I([0, 2, 5]), I([2]), False, True]],
    "gradient": [[F(5)], [F(3, 4)], [F(4, 3), 2.0, 0], [F(4, 3), 0.5, (0, 1), 2], [F(3, 4), [1.5, 0.5], None, 1]],
    "histogram": [[F(20), 5], [F(20), 4, (-1, 2)], [F(5, 4), 3, (-1, 2), None, True]],
    "histogramdd": [],                                            # a tuple in a tuple: test_sets_and_counts.py
    "unravel_index": [[I([0, 5, 3]), (2, 3)], [I([[0, 23]]), (2, 3, 4)]],
}

PRODUCTS = {
    "outer": [[F(3), F(4)]],
    "addmv": [[F(3), F(3, 4), F(4)], [F(), F(3, 4), F(4), 2, 3], [F(3), F(3, 4), F(4), 0, 1]],
    "addr": [[F(3, 4), F(3), F(4)], [F(4), F(3), F(4), 2, 3]],
    "addbmm": [[F(3, 2), F(2, 3, 4), F(2, 4, 2)], [F(2), F(2, 3, 4), F(2, 4, 2), 2, 3]],
    "baddbmm": [[F(2, 3, 2), F(2, 3, 4), F(2, 4, 2)], [F(2), F(2, 3, 4), F(2, 4, 2), 2, 3]],
    "vdot": [[F(3), F(3)]], "inner": [[F(3), F(3)], [F(2, 3), F(4, 3)]],
    "tensordot": [[F(2, 3), F(3, 4), 1], [F(2, 3, 4), F(3, 4, 2)], [F(2, 3), F(4, 2), ([0], [1])], [F(2), F(3), 0]],
    "kron": [[F(2), F(3)], [F(2, 2), F(3)], [F(2, 3), F(2, 1)]],
    "chain_matmul": [[[F(2, 3), F(3, 4), F(4, 1)]], [[F(2, 3)]]],
    "linalg_multi_dot": [[[F(2, 3), F(3, 4), F(4, 1)]], [[F(3), F(3, 2), F(2)]]],
    "matrix_power": [[F(3, 3), 3], [F(2, 2, 2), 2], [F(2, 2), 1]],
    "linalg_vecdot": [[F(2, 3), F(2, 3)], [F(2, 3), F(3), -1], [F(2, 3), F(2, 3), 0]],
    "cross": [[F(2, 3), F(2, 3), 1], [F(3), F(3)]], "linalg_cross": [[F(2, 3), F(1, 3)], [F(3, 2), F(3, 2), 0]],
    "linalg_diagonal": [[F(2, 3, 3)], [F(3, 4), 1, 0, 1]],
    "norm": [[F(3, 5)], [F(3, 5), 1], [F(3, 5), 2, 1]],
    "linalg_vector_norm": [[F(3, 5)], [F(3, 5), 1, 0], [F(3, 5), math.inf, 1, True], [F(3, 5), 3]],
    "linalg_matrix_norm": [[F(3, 5), order] for order in ("fro", 1, -1, math.inf, -math.inf)]
    + [[F(2, 3, 4), 1, (0, 2)], [F(2, 3, 4), math.inf, (2, 1), True]],
    "linalg_norm": [[F(3, 5)], [F(3, 5), 1], [F(5), 3], [F(3, 5), 2, 1]],
    "dist": [[F(3), F(3)], [F(2, 3), F(3), 1]],
    "norm_except_dim": [[F(3, 4)], [F(3, 4), 1, 1], [F(2, 3, 2), 2, -1]],
    "pairwise_distance": [[F(3, 4), F(3, 4)], [F(3, 4), F(4), 1.0, 1e-3, True]],
    "cosine_similarity": [[F(3, 4), F(3, 4)], [F(3, 4), F(4), 1], [F(3, 4), F(3, 4), 0]],
    "normalize": [[F(3, 4)], [F(3, 4), 1.0, 0]],
    "cdist": [[F(3, 4), F(2, 4)], [F(2, 3, 2), F(4, 2), 1.0], [F(30, 2), F(2, 2)]],
    "pdist": [[F(4, 3)], [F(3, 2), 1.0]],
}

TARGET = C(3, 4, domain=UNIT)
NEURAL = {
    "glu": [[F(3, 4)], [F(4, 3), 0]], "prelu": [[F(3, 4), F(4)], [F(3, 4), F(1)], [F(3), F()]],
    "softsign": [[F(3, 4)]], "softshrink": [[F(3, 4)], [F(3, 4), 0.2]], "hardtanh": [[F(3, 4)], [F(3, 4), -0.25, 1.5]],
    "softmin": [[F(3, 4), 1]], "softmax_function": [[F(3, 4), 1]], "log_softmax_function": [[F(3, 4), 0]],
    "layer_norm": [[F(3, 5), (5,), F(5), F(5)], [F(2, 3, 4), (3, 4), None, None, 1e-3]],
    "batch_norm": [[F(4, 3), None, None, F(3), F(3), True], [F(2, 3, 4), None, None, None, None, True, 0.1, 1e-3],
                   [F(4, 3, 2), C(3), C(3, domain=POSITIVE), F(3), F(3)], [F(2, 3, 2, 2), C(3), C(3, domain=POSITIVE)]],
    "instance_norm": [[F(2, 3, 4)], [F(2, 3, 2, 2), None, None, F(3), F(3), True, 0.1, 1e-3],
                      [F(2, 3, 4), C(3), C(3, domain=POSITIVE), F(3), F(3), False]],
    "group_norm": [[F(2, 4, 3), 2, F(4), F(4)], [F(3, 6), 3], [F(2, 4, 2, 2), 1, F(4), None, 1e-3]],
    "rms_norm": [[F(3, 5), (5,), F(5), 1e-5], [F(2, 3, 4), (3, 4), None, 1e-3]],
    "local_response_norm": [[F(2, 5, 3), 3, 1.0, 0.75, 2.0], [F(1, 4, 2, 2), 2, 0.5]],
    "lstm_cell": [[F(2, 3), [F(2, 2), F(2, 2)], F(8, 3), F(8, 2), F(8), F(8)],
                  [F(2, 3), [F(2, 2), F(2, 2)], F(8, 3), F(8, 2)]],
    "gru_cell": [[F(2, 3), F(2, 2), F(6, 3), F(6, 2), F(6), F(6)], [F(2, 3), F(2, 2), F(6, 3), F(6, 2)]],
    "rnn_tanh_cell": [[F(2, 3), F(2, 2), F(2, 3), F(2, 2), F(2), F(2)]],
    "rnn_relu_cell": [[F(2, 3), F(2, 2), F(2, 3), F(2, 2), F(2), F(2)]],
    "linear_cross_entropy": [[F(4, 3), F(5, 3), I([0, 4, 2, 1])],
                             [F(4, 3), F(5, 3), I([0, 4, 2, 1]), F(5), None, "sum"]],
    "segment_reduce": [[F(5), "sum", I([2, 3])], [F(4, 3), "mean", I([1, 3])],
                       [F(2, 4), "max", I([[1, 3], [2, 2]]), None, None, 1], [F(4), "prod", I([3, 1])]],
    "native_layer_norm": [[F(3, 5), (5,), F(5), F(5), 1e-5], [F(2, 3, 4), (3, 4), None, None, 1e-3]],
    "native_group_norm": [[F(2, 4, 3), F(4), F(4), 2, 4, 3, 2, 1e-5], [F(2, 6), None, None, 2, 6, 1, 3, 1e-3]],
    "native_batch_norm": [[F(4, 3), F(3), F(3), None, None, True, 0.1, 1e-5],
                          [F(2, 3, 4), None, None, None, None, True, 0.1, 1e-3]],
    "cross_entropy": [[F(4, 3), I([0, 2, 1, 2])],
                      [F(4, 3), I([0, 2, 1, 2]), C(3, domain=("uniform", 0.5, 2)), None, 1, None, "sum", 0.1]],
    "nll_loss": [[F(4, 3), I([0, 2, 1, 2])], [F(4, 3), I([0, 2, 1, 2]), None, None, 1, None, "none"]],
    "mse_loss": [[F(3, 4), F(3, 4)], [F(3, 4), F(3, 4), None, None, "none"]],
    "l1_loss": [[F(3, 4), F(3, 4)], [F(3, 4), F(3, 4), None, None, "sum"]],
    "smooth_l1_loss": [[F(3, 4), F(3, 4)], [F(3, 4), F(3, 4), None, None, "none", 0.5]],
    "huber_loss": [[F(3, 4), F(3, 4)], [F(3, 4), F(3, 4), "sum", 0.5]],
    "binary_cross_entropy": [[F(3, 4, domain=UNIT), F(3, 4, domain=UNIT)],
                             [F(3, 4, domain=UNIT), TARGET, None, None, None, "none"]],
    "binary_cross_entropy_with_logits": [[F(3, 4), F(3, 4, domain=UNIT)], [F(3, 4), TARGET, None, None, None, "sum"]],
    "kl_div": [[F(3, 4), F(3, 4, domain=UNIT), None, None, "sum"], [F(3, 4), F(3, 4), None, None, "batchmean", True],
               [F(3, 4), TARGET, None, None, "none"]],
    "poisson_nll_loss": [[F(3, 4), F(3, 4, domain=POSITIVE)],
                         [F(3, 4, domain=POSITIVE), C(3, 4, domain=POSITIVE), False, True, None, 1e-8, None, "sum"]],
    "gaussian_nll_loss": [[F(3, 4), F(3, 4), F(3, 4, domain=POSITIVE)],
                          [F(3, 4), F(3, 4), F(3, 1, domain=POSITIVE), True, 1e-6, "none"]],
    "soft_margin_loss": [[F(3, 4), F(3, 4)]],
    "hinge_embedding_loss": [[F(3), I([1, -1, 1])], [F(3), I([1, -1, -1]), 2.0, None, None, "none"]],
    "margin_ranking_loss": [[F(3), F(3), I([1, -1, 1])], [F(3), F(3), I([1, -1, 1]), 0.5, None, None, "sum"]],
    "cosine_embedding_loss": [[F(3, 4), F(3, 4), I([1, -1, 1])], [F(4), F(4), I(-1), 0.1]],
    "triplet_margin_loss": [[F(3, 4), F(3, 4), F(3, 4)],
                            [F(3, 4), F(3, 4), F(3, 4), 2.0, 2, 1e-6, True, None, None, "none"]],
    "triplet_margin_with_distance_loss": [[F(3, 4), F(3, 4), F(3, 4)]],
    "multi_margin_loss": [[F(3, 4), I([0, 3, 1])], [F(4), I(2)], [F(3, 4), I([0, 3, 1]), 2, 0.5]],
    "multilabel_margin_loss": [[F(2, 4), I([[3, 0, -1, 1], [1, -1, 0, 2]])], [F(3), I([2, -1, 0])]],
    "multilabel_soft_margin_loss": [[F(3, 4), F(3, 4, domain=UNIT)]],
    "ctc_loss": [[F(5, 2, 4), I([[1, 2], [3, 3]]), (5, 4), (2, 2)],
                 [F(4, 2, 3), I([1, 2, 2]), (4, 3), (2, 1), 0, "none"], [F(3, 3), I([2, 1]), (3,), (2,), 0, "sum"]],
}

COMPOSITES = {**SHAPING, **SELECTION, **STATISTICS, **PRODUCTS, **NEURAL}

TYPES = {
    "complex_of": WIDE, "polar": WIDE, "one_hot": ("int64",), "tril_indices": ("int64",), "triu_indices": ("int64",),
    "view_as_real": schema.COMPLEX, "view_as_complex": WIDE,
    "view_as_real_copy": schema.COMPLEX, "view_as_complex_copy": WIDE,
    "scatter_reduce": REAL, "index_reduce": REAL, "renorm": REAL, "embedding_bag": REAL,
    "std_mean": REAL, "var_mean": REAL, "nanmean": REAL,
    "cov": WIDE_COMPLEX, "corrcoef": WIDE, "aminmax": ORDERED, "msort": ORDERED, "nanquantile": WIDE, "quantile": WIDE,
    "median": (*schema.INTEGRAL, *REAL), "nanmedian": (*schema.INTEGRAL, *REAL), "unique": ORDERED,
    "bincount": ("int64",), "histc": WIDE, "diff": NUMERIC, "trapezoid": WIDE_COMPLEX,
    "cumulative_trapezoid": WIDE_COMPLEX, "nan_to_num": (*schema.INTEGRAL, *REAL), "logit": REAL,
    "hash_tensor": ORDERED, "polygamma_function": REAL, "mvlgamma": REAL, "special_ndtr": REAL,
    "nextafter": WIDE, "special_xlog1py": REAL, "isin": WIDE, "gradient": WIDE_COMPLEX, "histogram": WIDE,
    "histogramdd": WIDE, "unravel_index": ("int64",), "ldexp": REAL, "frexp": REAL,
    "float_power": (*schema.INTEGRAL, *FLOATING),
    "rsub": NUMERIC, "positive": NUMERIC, "scatter": schema.ALL, "cross": NUMERIC,
    "linalg_cross": NUMERIC,
    **dict.fromkeys(PRODUCTS, NUMERIC), "outer": schema.ALL, "kron": schema.ALL, "linalg_diagonal": schema.ALL,
    **dict.fromkeys(("norm", "linalg_vector_norm", "linalg_matrix_norm", "linalg_norm", "dist", "norm_except_dim"),
                    REAL),
    **dict.fromkeys(("pairwise_distance", "cosine_similarity", "normalize", "cdist", "pdist"), REAL),
    **dict.fromkeys(NEURAL, REAL),
}

# Results that are no real tensors, steps, or have another history than their values: nothing to difference.
NO_GRADIENT = {"argwhere", "nonzero", "searchsorted", "bucketize", "isreal", "unique", "unique_consecutive", "bincount", "histc",
               "one_hot", "tril_indices", "triu_indices", "isin", "histogram", "histogramdd", "unravel_index",
               "nonzero_static", "fill", "detach_copy", "hash_tensor", "with_values"}
# The data decide the result's shape, or the call itself.
NEED_DATA = {"repeat_interleave", "combinations", "one_hot", "argwhere", "nonzero", "unique", "unique_consecutive",
             "bincount", "histc", "renorm", "embedding_bag", "embedding_function", "tril_indices", "triu_indices", "ctc_loss",
             "isin", "histogram", "histogramdd", "masked_select"}
# Made of float64 on the way, or of a decomposition: half types and exact comparison do not apply.
assert ptcore
