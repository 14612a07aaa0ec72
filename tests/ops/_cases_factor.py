"""Cases of recurrent layers, equations and factors; see _cases.py."""
from ptcore._ops.table import schema

MATRICES = ("float32", "float64", *schema.COMPLEX)
# Factors and vectors are functions of matrices that equal their adjoint: tests/ops/linalg/test_factors.py
ELSEWHERE = ("_linalg_cholesky", "_linalg_eigh", "linalg_cholesky", "cholesky", "linalg_cholesky_ex", "linalg_eigh",
             "linalg_eigvalsh", "linalg_lstsq", "linalg_matrix_rank", "_linalg_pinv_of",
             # the same of vectors up to their phase, pivots that must be int32, no derivatives: test_decompositions.py
             "_linalg_eig", "linalg_eig", "linalg_eigvals", "_pivot_order", "lu_unpack", "_linalg_lu_solve",
             "linalg_lu_solve", "lu_solve",
             "_linalg_ldl", "_linalg_ldl_solve", "linalg_ldl_factor", "linalg_ldl_factor_ex", "linalg_ldl_solve",
             "_geqrf", "geqrf")
COMPOSITES = ("linalg_solve", "linalg_solve_triangular", "cholesky_solve", "cholesky_inverse", "linalg_inv", "inverse",
              "linalg_det", "det", "linalg_slogdet", "slogdet", "logdet", "linalg_pinv", "pinverse", "linalg_qr", "qr",
              "linalg_cond", "linalg_lu_factor", "linalg_lu_factor_ex", "linalg_lu", "lu", "linalg_solve_ex",
              "linalg_inv_ex", "triangular_solve", "linalg_householder_product", "orgqr", "ormqr", "linalg_matrix_exp",
              "matrix_exp", "linalg_tensorinv", "linalg_tensorsolve")
TYPES = {**dict.fromkeys((*COMPOSITES, *ELSEWHERE), MATRICES), "logdet": schema.COMPLEX,
         **dict.fromkeys(("vander", "linalg_vander"), schema.NUMERIC)}


def cases(F):
    bits, gate = ("uniform", 0.1, 0.9), ("uniform", -1, 1)
    square, diagonal = F(3, 3), ("uniform", 1, 3)

    def layer(rows, batch, n, sizes, mode, reverse=False, bias=False, size=0):
        width = n * {"lstm": 4, "gru": 3}.get(mode, 1)
        return [F(rows, width), F(batch, size or n), F(batch, n) if mode == "lstm" else None,
                F(width, size or n, domain=gate), F(width) if bias else None,
                F(size, n) if size else None, sizes, mode, reverse]

    def back(rows, batch, n, sizes, mode, reverse=False, cells=False, size=0):
        width = n * {"lstm": 4, "gru": 3}.get(mode, 1)
        lstm = mode == "lstm"
        state = size or n
        return [F(rows, state), F(rows, n) if cells else None, F(rows, state, domain=bits),
                F(rows, n) if lstm else F(0), F(rows, 4 * n, domain=bits) if mode in ("lstm", "gru") else F(0),
                F(batch, state), F(batch, n) if lstm else None, F(width, state, domain=gate),
                F(size, n) if size else None, sizes, mode, reverse]

    table = {
        "recurrent_layer": [
            layer(4, 2, 2, (2, 2), "tanh"), layer(3, 2, 2, (2, 1), "relu", True, True),
            layer(4, 2, 2, (2, 2), "lstm"), layer(3, 2, 1, (2, 1), "lstm", True, True),
            layer(4, 2, 2, (2, 1, 1), "gru", False, True), layer(3, 2, 2, (2, 1), "gru", True),
            layer(38, 20, 5, (20, 18), "lstm", False, True), layer(3, 2, 3, (2, 1), "lstm", True, True, size=2),
            layer(38, 20, 5, (20, 18), "lstm", size=3), layer(70, 1, 1, (1,) * 70, "tanh")],
        "recurrent_layer_backward": [
            back(4, 2, 2, (2, 2), "tanh"), back(3, 2, 2, (2, 1), "relu", True),
            back(4, 2, 2, (2, 2), "lstm", False, True),
            back(3, 2, 1, (2, 1), "lstm", True), back(4, 2, 2, (2, 1, 1), "gru"), back(3, 2, 2, (2, 1), "gru", True),
            back(38, 20, 5, (20, 18), "gru"), back(3, 2, 3, (2, 1), "lstm", True, True, size=2),
            back(38, 20, 5, (20, 18), "lstm", size=3), back(70, 1, 1, (1,) * 70, "gru")],
        "_linalg_solve": [[square, F(3, 2)], [F(2, 3, 3), F(2, 3, 1)], [F(1, 1), F(1, 4)], [F(0, 0), F(0, 2)]],
        "_linalg_solve_triangular": [
            [F(3, 3, domain=diagonal), F(3, 2), upper, unit] for upper in (True, False) for unit in (True, False)
        ] + [[F(2, 2, 2, domain=diagonal), F(2, 2, 3), False, False]],
        "_linalg_det": [[square], [F(2, 2, 2)], [F(0, 0)], [F(1, 1)]],
        "_linalg_slogdet": [[square], [F(2, 2, 2)], [F(0, 0)]],
        "_linalg_qr": [[F(4, 3), "reduced"], [square, "complete"], [F(2, 3, 2), "reduced"]],
        "linalg_solve": [[square, F(3, 2)], [square, F(3)], [F(2, 3, 3), F(2, 3)], [F(2, 1, 2, 2), F(3, 2, 1)],
                         [F(2, 2), F(3, 2), False]],
        "linalg_solve_triangular": [[F(3, 3, domain=diagonal), F(3, 2), True],
                                    [F(2, 2, domain=diagonal), F(3, 2), False, False, True]],
        "cholesky_solve": [[F(3, 2), F(3, 3, domain=diagonal)], [F(2, 1), F(2, 2, domain=diagonal), True]],
        "cholesky_inverse": [[F(3, 3, domain=diagonal)], [F(2, 2, domain=diagonal), True]],
        "linalg_inv": [[square], [F(2, 2, 2)]], "inverse": [[square]], "linalg_det": [[square], [F(2, 2, 2)]],
        "det": [[square]], "linalg_slogdet": [[square]], "slogdet": [[F(2, 2, 2)]], "logdet": [[square]],
        "linalg_pinv": [[F(4, 3)], [F(2, 4)], [F(2, 3, 2)]], "pinverse": [[F(3, 2)]],
        "linalg_qr": [[F(4, 3)], [F(2, 4)]], "qr": [[square]],
        "_linalg_solve_ex": [[square, F(3, 2), False], [F(2, 3, 3), F(2, 3, 1), True]],
        "_linalg_inv": [[square, False], [F(2, 2, 2), True], [F(5, 5), True], [F(0, 0), True]],
        "_linalg_lu": [[square, False, True], [F(4, 2), False, True], [F(2, 4), True, True], [F(2, 2, 2), True, True]],
        "_linalg_householder": [[F(4, 3), F(3)], [F(2, 3, 2), F(2, 1)]],
        "_linalg_matrix_exp": [[square], [F(2, 2, 2)], [F(0, 0)], [F(1, 1)]],
        "linalg_lu_factor": [[square], [F(2, 2, 3)]], "linalg_lu_factor_ex": [[F(3, 2)]],
        "linalg_lu": [[square], [F(4, 2)]],
        "lu": [[square], [F(2, 4), True, True]],
        "linalg_solve_ex": [[square, F(3, 2)], [F(2, 3, 3), F(2, 3)], [F(2, 2), F(3, 2), False, True]],
        "linalg_inv_ex": [[square], [F(2, 2, 2), True]],
        "triangular_solve": [[F(3, 2), F(3, 3, domain=diagonal), *more]
                             for more in ((), (False,), (True, True), (False, True, True))],
        "linalg_householder_product": [[F(4, 3), F(3)], [F(2, 3, 2), F(2, 1)], [F(3, 2), F(0)]],
        "orgqr": [[F(3, 2), F(2)]],
        "ormqr": [[F(3, 2), F(2), F(3, 4)], [F(3, 2), F(2), F(2, 3), False], [F(3, 4), F(2), F(3, 2), True, True]],
        "linalg_matrix_exp": [[square], [F(2, 2, 2)]], "matrix_exp": [[square]],
        "linalg_tensorinv": [[F(4, 2, 2), 1], [F(2, 3, 6)], [F(2, 2, 4), 2]],
        "linalg_tensorsolve": [[F(2, 3, 6), F(2, 3)], [F(6, 2, 3), F(2, 3), (0,)], [F(4, 4), F(4)]],
        "vander": [[F(3)], [F(2), 4], [F(3), 2, True], [F(3), 1], [F(3), 0]],
        "linalg_vander": [[F(3)], [F(2, 3)], [F(2), 4]],
        "linalg_cond": [[square], [square, -2], [square, 1], [square, "fro"], [square, float("-inf")]],
    }
    table.update({name: [] for name in ELSEWHERE})
    return table
