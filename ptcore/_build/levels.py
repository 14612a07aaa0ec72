"""How each kernel file is compiled: at which ISA levels, and what the optimiser is asked for.

A file that is not named here is compiled at every level, for speed: a new one needs no entry. Groups are
those of meson.build, which knows the flags.
"""
GROUPS = {
    # What follows indices has no lanes, rows of small matrices are short: v3 gives something, v4 nothing more.
    "narrow": ("index", "advanced_index", "shape", "sort", "pooling"),
    # Wrappers of libraries and data movement gain nothing from a higher level: compiled once.
    "base": ("search", "place", "margin", "pad"),
    # The same, and too large for what they are worth at -O3.
    "modest": ("grid_sample", "scatter_reduce", "segments", "histogram", "products"),
    # The time goes to the library, or to chains of comparisons and calls: compiled once, for size.
    "small": ("running", "svd", "lapack", "decompose", "ctc"),
    # Normals must not depend on the ISA level, nor what is fused on being fused: without contraction.
    "exact": ("random", "chain"),
    # PyTorch's numbers: one word after another, the same on every machine.
    "exact_base": ("mersenne",),
    # A product and a difference in one rounding would leave a pivot of a singular matrix that is not 0, and would move
    # positions that decide which number is the nearest.
    "exact_narrow": ("elimination", "resample"),
    # No kernels of ops, but what all of them call: compiled once.
    "common": ("elementwise", "stored", "parallel", "blas", "optimizers", "plan", "fuse", "rows", "take",
               "pooling_planes"),
}
HIGHEST = {"narrow": "v3", "exact_narrow": "v3", "base": "base", "modest": "base", "small": "base",
           "exact_base": "base"}     # else the last level

# Functions of the scalar header that call one function of doubles for each element gain nothing from lanes: loops of
# formulas with one of them are compiled at the base level alone.
SCALAR = {"bessel_j_of", "spherical_bessel_j_of", "airy_ai", "airy_ai_slope", "igamma", "igammac", "zeta", "polygamma",
          "polygamma_of", "laguerre_of", "jacobi_ratio", "laguerre_polynomial_l", "legendre_polynomial_p",
          "hermite_polynomial_h", "hermite_polynomial_he",
          *[f"{s}chebyshev_polynomial_{k}" for s in ("", "shifted_") for k in "tuvw"]}
# These have a form for floats that has lanes.
SCALAR_OF_DOUBLES = {"lgamma", "erfcx", "i0", "i1", "i0e", "i1e", "log_ndtr", "digamma"}

# The base level has no shift by a vector of counts.
SHIFTS = {"left_shift", "right_shift"}


def has_lanes(functions, dtype):
    """Whether a loop of that dtype over a formula that calls the functions is worth a higher level."""
    if functions & SHIFTS:
        return dtype != "bool"
    return dtype in ("float32", "float64") and not functions & SCALAR and not (
        dtype == "float64" and functions & SCALAR_OF_DOUBLES)


def group(name):
    """The group of a kernel file, by its name without suffix."""
    return next((g for g, names in GROUPS.items() if name in names), "every")
