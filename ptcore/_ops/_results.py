"""Named tuples that ops of several outputs return, and the unifying of dim/axis spellings."""


def second_spelling(op, mine, value, theirs, other):
    """The value of dim/axis or keepdim/keepdims when the second spelling was used."""
    if value is not None and value is not False:
        raise TypeError(f"{op}: {mine} and {theirs} are two names of one argument; both were "
                        "given")
    return other


def _named(name, *fields):
    from collections import namedtuple
    cls = namedtuple(name, fields)
    cls.__module__ = "ptcore.return_types"
    return cls


max = _named("max", "values", "indices")
min = _named("min", "values", "indices")
svd = _named("svd", "U", "S", "V")
linalg_svd = _named("linalg_svd", "U", "S", "Vh")
