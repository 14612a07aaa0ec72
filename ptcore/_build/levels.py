"""How each kernel file is compiled: at which ISA levels, and what the optimiser is asked for.

A file that is not named here is compiled at every level, for speed: a new one needs no entry. Groups are
those of meson.build, which knows the flags.
"""
GROUPS = {
    # What follows indices has no lanes: it gains something from v3, nothing more from v4.
    "narrow": ("index", "advanced_index", "shape", "sort"),
    # Wrappers of libraries and data movement gain nothing from a higher level: compiled once.
    "base": ("search", "place", "margin", "pooling", "resample", "pad"),
    # The same, and too large for what they are worth at -O3.
    "modest": ("grid_sample", "scatter_reduce"),
    # The time goes to the library, or to chains of comparisons and calls: compiled once, for size.
    "small": ("running", "svd", "lapack", "decompose"),
    # Normals must not depend on the ISA level: without contraction.
    "exact": ("random",),
    # No kernels of ops, but what all of them call: compiled once.
    "common": ("elementwise", "parallel", "blas", "optimizers"),
}
HIGHEST = {"narrow": "v3", "base": "base", "modest": "base", "small": "base"}     # else the last level


def group(name):
    """The group of a kernel file, by its name without suffix."""
    return next((g for g, names in GROUPS.items() if name in names), "every")
