"""Which rows run for the stored types (PT_KIND_STORED of kernel.h): those that PyTorch runs on the CPU.

``tests/ops/test_parity_stored.py`` compares this table with PyTorch. Elementwise rows run in tiles of float32 or
complex64. The other rows move elements whole, or have kernels for the wide type alone (``WIDE``): their arguments are
converted to it, and their results from it.
"""

FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
SIGNED = FLOAT8[:4]
ALL = (*FLOAT8, "complex32")

_MOVED = """assign where cat clone index_get index_select index_write masked_collect masked_write overwritten
    pad_constant picked row_major to_device to_dtype fill_full with_values""".split()
_PRODUCTS = ("mm", "addmm", "linear")
_TRUTHS = ("any", "all", "count_nonzero")
_OF_COMPLEX = """index_add convolve convolve_transposed convolve_weight tril triu nonzero_of""".split()

ROWS = {
    **dict.fromkeys([*_MOVED, *_TRUTHS, "eq", "ne", "isnan", "mul"], ALL),
    **dict.fromkeys([*_PRODUCTS, "abs"], SIGNED),
    "index_accumulate": (*SIGNED, "complex32"),
    "fill_eye": FLOAT8,
    "isinf": ("float8_e5m2",),
    "isfinite": ("float8_e5m2", "float8_e8m0fnu"),
}
# A number over a float16 tensor is a division of complex32, which PyTorch refuses beside another one.
for _name in [*_OF_COMPLEX, *"""abs add add_scaled div sub sub_scaled neg sgn addcmul masked_fill index_copy
        index_filled conj_physical isfinite isinf""".split()]:
    ROWS[_name] = (*ROWS.get(_name, ()), "complex32")

WIDE = frozenset((*_PRODUCTS, *_TRUTHS, *_OF_COMPLEX, "index_accumulate"))


def types_of(name):
    """The stored types that the row of a name takes."""
    return ROWS.get(name, ())
