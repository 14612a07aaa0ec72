"""The namespace of the array API standard, version 2025.12, as ``Tensor.__array_namespace__()`` returns it.

Where PyTorch's function meets the standard, the same object as in ``ptcore`` is used; the others adapt names, keywords
and dtypes (doc/source/reference/array_api.rst lists the differences).
"""
from importlib import import_module as _import_module

from ptcore import abs as abs
from ptcore import acos as acos
from ptcore import acosh as acosh
from ptcore import add as add
from ptcore import argmax as argmax
from ptcore import argmin as argmin
from ptcore import asin as asin
from ptcore import asinh as asinh
from ptcore import atan as atan
from ptcore import atan2 as atan2
from ptcore import atanh as atanh
from ptcore import bitwise_and as bitwise_and
from ptcore import bitwise_left_shift as bitwise_left_shift
from ptcore import bitwise_not as bitwise_invert
from ptcore import bitwise_or as bitwise_or
from ptcore import bitwise_right_shift as bitwise_right_shift
from ptcore import bitwise_xor as bitwise_xor
from ptcore import bool as bool
from ptcore import broadcast_shapes as broadcast_shapes
from ptcore import ceil as ceil
from ptcore import complex64 as complex64
from ptcore import complex128 as complex128
from ptcore import conj as conj
from ptcore import copysign as copysign
from ptcore import cos as cos
from ptcore import cosh as cosh
from ptcore import diag as diag
from ptcore import divide as divide
from ptcore import e as e
from ptcore import eq as equal
from ptcore import exp as exp
from ptcore import expm1 as expm1
from ptcore import finfo as finfo
from ptcore import float16 as float16
from ptcore import float32 as float32
from ptcore import float64 as float64
from ptcore import floor as floor
from ptcore import floor_divide as floor_divide
from ptcore import greater as greater
from ptcore import greater_equal as greater_equal
from ptcore import hypot as hypot
from ptcore import iinfo as iinfo
from ptcore import imag as imag
from ptcore import inf as inf
from ptcore import int8 as int8
from ptcore import int16 as int16
from ptcore import int32 as int32
from ptcore import int64 as int64
from ptcore import isfinite as isfinite
from ptcore import isinf as isinf
from ptcore import isnan as isnan
from ptcore import less as less
from ptcore import less_equal as less_equal
from ptcore import log as log
from ptcore import log1p as log1p
from ptcore import log2 as log2
from ptcore import log10 as log10
from ptcore import logaddexp as logaddexp
from ptcore import logical_and as logical_and
from ptcore import logical_not as logical_not
from ptcore import logical_or as logical_or
from ptcore import logical_xor as logical_xor
from ptcore import maximum as maximum
from ptcore import minimum as minimum
from ptcore import multiply as multiply
from ptcore import nan as nan
from ptcore import negative as negative
from ptcore import newaxis as newaxis
from ptcore import not_equal as not_equal
from ptcore import pi as pi
from ptcore import positive as positive
from ptcore import pow as pow
from ptcore import real as real
from ptcore import reciprocal as reciprocal
from ptcore import remainder as remainder
from ptcore import signbit as signbit
from ptcore import sin as sin
from ptcore import sinh as sinh
from ptcore import sqrt as sqrt
from ptcore import square as square
from ptcore import subtract as subtract
from ptcore import tan as tan
from ptcore import tanh as tanh
from ptcore import trunc as trunc
from ptcore import uint8 as uint8
from ptcore import uint16 as uint16
from ptcore import uint32 as uint32
from ptcore import uint64 as uint64
from ptcore.array_api._creation import arange as arange
from ptcore.array_api._creation import asarray as asarray
from ptcore.array_api._creation import empty as empty
from ptcore.array_api._creation import empty_like as empty_like
from ptcore.array_api._creation import eye as eye
from ptcore.array_api._creation import from_dlpack as from_dlpack
from ptcore.array_api._creation import full as full
from ptcore.array_api._creation import full_like as full_like
from ptcore.array_api._creation import linspace as linspace
from ptcore.array_api._creation import meshgrid as meshgrid
from ptcore.array_api._creation import ones as ones
from ptcore.array_api._creation import ones_like as ones_like
from ptcore.array_api._creation import tril as tril
from ptcore.array_api._creation import triu as triu
from ptcore.array_api._creation import zeros as zeros
from ptcore.array_api._creation import zeros_like as zeros_like
from ptcore.array_api._dtypes import __array_namespace_info__ as __array_namespace_info__
from ptcore.array_api._dtypes import astype as astype
from ptcore.array_api._dtypes import can_cast as can_cast
from ptcore.array_api._dtypes import isdtype as isdtype
from ptcore.array_api._dtypes import result_type as result_type
from ptcore.array_api._elementwise import clip as clip
from ptcore.array_api._elementwise import nextafter as nextafter
from ptcore.array_api._elementwise import round as round
from ptcore.array_api._elementwise import sign as sign
from ptcore.array_api._elementwise import where as where
from ptcore.array_api._manipulation import broadcast_arrays as broadcast_arrays
from ptcore.array_api._manipulation import broadcast_to as broadcast_to
from ptcore.array_api._manipulation import concat as concat
from ptcore.array_api._manipulation import expand_dims as expand_dims
from ptcore.array_api._manipulation import flip as flip
from ptcore.array_api._manipulation import moveaxis as moveaxis
from ptcore.array_api._manipulation import permute_dims as permute_dims
from ptcore.array_api._manipulation import repeat as repeat
from ptcore.array_api._manipulation import reshape as reshape
from ptcore.array_api._manipulation import roll as roll
from ptcore.array_api._manipulation import squeeze as squeeze
from ptcore.array_api._manipulation import stack as stack
from ptcore.array_api._manipulation import tile as tile
from ptcore.array_api._manipulation import unstack as unstack
from ptcore.array_api._products import matmul as matmul
from ptcore.array_api._products import matrix_transpose as matrix_transpose
from ptcore.array_api._products import tensordot as tensordot
from ptcore.array_api._products import vecdot as vecdot
from ptcore.array_api._reductions import all as all
from ptcore.array_api._reductions import any as any
from ptcore.array_api._reductions import count_nonzero as count_nonzero
from ptcore.array_api._reductions import cumulative_prod as cumulative_prod
from ptcore.array_api._reductions import cumulative_sum as cumulative_sum
from ptcore.array_api._reductions import diff as diff
from ptcore.array_api._reductions import max as max
from ptcore.array_api._reductions import mean as mean
from ptcore.array_api._reductions import min as min
from ptcore.array_api._reductions import prod as prod
from ptcore.array_api._reductions import std as std
from ptcore.array_api._reductions import sum as sum
from ptcore.array_api._reductions import var as var
from ptcore.array_api._searching import argsort as argsort
from ptcore.array_api._searching import isin as isin
from ptcore.array_api._searching import nonzero as nonzero
from ptcore.array_api._searching import searchsorted as searchsorted
from ptcore.array_api._searching import sort as sort
from ptcore.array_api._searching import take as take
from ptcore.array_api._searching import take_along_axis as take_along_axis
from ptcore.array_api._searching import unique_all as unique_all
from ptcore.array_api._searching import unique_counts as unique_counts
from ptcore.array_api._searching import unique_inverse as unique_inverse
from ptcore.array_api._searching import unique_values as unique_values

__array_api_version__ = "2025.12"
__all__ = ["abs", "acos", "acosh", "add", "all", "any", "arange", "argmax", "argmin", "argsort", "asarray", "asin",
           "asinh", "astype", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert", "bitwise_left_shift",
           "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bool", "broadcast_arrays", "broadcast_shapes",
           "broadcast_to", "can_cast", "ceil", "clip", "complex64", "complex128", "concat", "conj", "copysign", "cos",
           "cosh", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "divide", "e", "empty", "empty_like",
           "equal", "exp", "expand_dims", "expm1", "eye", "finfo", "flip", "float16", "float32", "float64", "floor",
           "floor_divide", "from_dlpack", "full", "full_like", "greater", "greater_equal", "hypot", "iinfo", "imag",
           "inf", "int8", "int16", "int32", "int64", "isdtype", "isfinite", "isin", "isinf", "isnan", "less",
           "less_equal", "linalg", "linspace", "log", "log1p", "log2", "log10", "logaddexp", "logical_and",
           "logical_not", "logical_or", "logical_xor", "matmul", "matrix_transpose", "max", "maximum", "mean",
           "meshgrid", "min", "minimum", "moveaxis", "multiply", "nan", "negative", "newaxis", "nextafter", "nonzero",
           "not_equal", "ones", "ones_like", "permute_dims", "pi", "positive", "pow", "prod", "real", "reciprocal",
           "remainder", "repeat", "reshape", "result_type", "roll", "round", "searchsorted", "sign", "signbit", "sin",
           "sinh", "sort", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "take", "take_along_axis",
           "tan", "tanh", "tensordot", "tile", "tril", "triu", "trunc", "uint8", "uint16", "uint32", "uint64",
           "unique_all", "unique_counts", "unique_inverse", "unique_values", "unstack", "var", "vecdot", "where",
           "zeros", "zeros_like"]


def __getattr__(name):
    if name in ("fft", "linalg"):
        try:
            return _import_module(f"ptcore.array_api.{name}")
        except ModuleNotFoundError as error:        # without ptcore.fft the extension is absent, as the standard allows
            if error.name != "ptcore.fft":
                raise
    if name in ("cumprod", "cumsum", "einsum", "gradient", "logspace", "median", "transpose"):
        return getattr(_import_module("ptcore.array_api._numpy"), name)
    raise AttributeError(f"module 'ptcore.array_api' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), "fft", "linalg"})
