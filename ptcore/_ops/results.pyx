"""Result types of ops with several outputs, and the unification of dim/axis spellings.

A result type is a tuple whose items have names as well. ``ptcore.return_types`` holds them all.
"""
cdef extern from "Python.h":
    ctypedef struct PyStructSequence_Field:
        const char *name
        const char *doc
    ctypedef struct PyStructSequence_Desc:
        const char *name
        const char *doc
        PyStructSequence_Field *fields
        int n_in_sequence
    type PyStructSequence_NewType(PyStructSequence_Desc *)

TYPES = []                  # all result types, in the order of this file
_texts = []


def second_spelling(op, mine, value, theirs, other, default=None):
    """The value of dim/axis or keepdim/keepdims, from whichever of the two spellings was used."""
    if value is not None and not (type(value) is type(default) and value == default):
        raise TypeError(f"{op}: {mine} and {theirs} are two names of one argument; both were "
                        "given")
    return other


def fitting(out, size):
    """The out= of a body, for the op that it calls, if out has that size or no elements yet. Otherwise None: the
    body's function resizes out and warns under its own name."""
    return out if not out.numel() or tuple(out.shape) == tuple(size) else None


class NotGiven:
    """The default of a parameter for which an explicit None has a meaning."""

    def __repr__(self):
        return "None"


NOT_GIVEN = NotGiven()


def _text(self):
    items = ",\n".join([f"{name}={value!r}" for name, value in zip(self.__match_args__, self)])
    return f"{type(self).__module__}.{type(self).__name__}(\n{items})"


def _result_type(str name, *fields):
    """A tuple type of CPython's own kind for results whose items have names."""
    # The type keeps pointers to its texts.
    cdef list texts = [f"ptcore.return_types.{name}".encode(),
                       f"Result of ``ptcore.{name}``: a tuple ({', '.join(fields)}).".encode()]
    cdef PyStructSequence_Field[8] items
    cdef PyStructSequence_Desc desc
    cdef int i
    for i, field in enumerate(fields):
        texts += [field.encode(), f"Item {i}: {field}.".encode()]
        items[i].name, items[i].doc = texts[-2], texts[-1]
    items[len(fields)].name = items[len(fields)].doc = NULL
    desc.name, desc.doc, desc.fields, desc.n_in_sequence = texts[0], texts[1], items, <int>len(fields)
    made = PyStructSequence_NewType(&desc)
    made.__repr__ = _text
    _texts.extend(texts)
    TYPES.append(made)
    return made


def packed(cls, outputs):
    """The outputs of an op as its result type; other types, which an override may return, are kept."""
    return cls(outputs) if type(outputs) is tuple else outputs


max = _result_type("max", "values", "indices")
min = _result_type("min", "values", "indices")
sort = _result_type("sort", "values", "indices")
topk = _result_type("topk", "values", "indices")
svd = _result_type("svd", "U", "S", "V")
linalg_svd = _result_type("linalg_svd", "U", "S", "Vh")
linalg_slogdet = _result_type("linalg_slogdet", "sign", "logabsdet")
slogdet = _result_type("slogdet", "sign", "logabsdet")
linalg_cholesky_ex = _result_type("linalg_cholesky_ex", "L", "info")
linalg_qr = _result_type("linalg_qr", "Q", "R")
qr = _result_type("qr", "Q", "R")
linalg_eigh = _result_type("linalg_eigh", "eigenvalues", "eigenvectors")
linalg_lstsq = _result_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
linalg_lu_factor = _result_type("linalg_lu_factor", "LU", "pivots")
linalg_lu_factor_ex = _result_type("linalg_lu_factor_ex", "LU", "pivots", "info")
linalg_lu = _result_type("linalg_lu", "P", "L", "U")
lu_unpack = _result_type("lu_unpack", "P", "L", "U")
linalg_solve_ex = _result_type("linalg_solve_ex", "result", "info")
linalg_inv_ex = _result_type("linalg_inv_ex", "inverse", "info")
linalg_ldl_factor = _result_type("linalg_ldl_factor", "LD", "pivots")
linalg_ldl_factor_ex = _result_type("linalg_ldl_factor_ex", "LD", "pivots", "info")
linalg_eig = _result_type("linalg_eig", "eigenvalues", "eigenvectors")
geqrf = _result_type("geqrf", "a", "tau")
triangular_solve = _result_type("triangular_solve", "solution", "cloned_coefficient")
histogram = _result_type("histogram", "hist", "bin_edges")
histogramdd = _result_type("histogramdd", "hist", "bin_edges")
cummax = _result_type("cummax", "values", "indices")
cummin = _result_type("cummin", "values", "indices")
median = _result_type("median", "values", "indices")
nanmedian = _result_type("nanmedian", "values", "indices")
mode = _result_type("mode", "values", "indices")
kthvalue = _result_type("kthvalue", "values", "indices")
aminmax = _result_type("aminmax", "min", "max")
frexp = _result_type("frexp", "mantissa", "exponent")
