"""Results that are written to before their backward: the writes, and what becomes of the gradients.

A write may be refused, or the backward raises since a rule needs what was written over, or the gradients are those of
the same call whose results were copied before the write. ``library`` is ptcore, or torch in tests of parity.
"""
import numpy as np

REASONS = ("modified by an inplace operation", "several views", "single memory location",
           "made under no_grad", "of a leaf Variable that requires grad")


def _without_history(library, y):
    with library.no_grad():
        y.add_(1)


def _last(y):
    return y.narrow(0, y.shape[0] - 1, 1) if y.ndim and y.shape[0] else y[...]


def _through_an_older_view(library, y):
    v = y[...]
    y.mul_(2)
    v.add_(1)


WRITES = {"add": lambda library, y: y.add_(1), "mul": lambda library, y: y.mul_(2),
          "zero": lambda library, y: y.zero_(), "no_grad": _without_history,
          "of a view": lambda library, y: _last(y).mul_(2), "of an older view": _through_an_older_view}


class Refused(Exception):
    """A call, a write or a backward that raised ``error``, as ``where`` says."""

    def __init__(self, where, error):
        super().__init__(f"{where}: {type(error).__name__}: {error}")
        self.where, self.error = where, error

    def is_of_autograd(self):
        """Whether it is one of autograd's reasons, none of the call's."""
        return isinstance(self.error, RuntimeError) and any(text in str(self.error) for text in REASONS)


def leaves_of(values, library):
    """(the values with copies of new leaves in the place of floating tensors, these leaves)."""
    leaves, copies = [], {}

    def of(x):
        if isinstance(x, library.Tensor):
            if not (x.is_floating_point() or x.is_complex()) or not x.requires_grad:
                return x
            if id(x) not in copies:         # a tensor that is given twice is one leaf
                leaves.append(x.detach().clone().requires_grad_())
                copies[id(x)] = leaves[-1].clone()
            return copies[id(x)]
        if type(x) in (list, tuple) or hasattr(x, "_fields"):
            parts = [of(v) for v in x]
            return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
        return {k: of(v) for k, v in x.items()} if isinstance(x, dict) else x
    return of(values), leaves


def tensors_of(x, library):
    """The tensors of a result that have a history."""
    if isinstance(x, library.Tensor):
        return [x] if x.requires_grad else []
    if isinstance(x, dict):
        x = x.values()
    return [y for v in x for y in tensors_of(v, library)] if isinstance(x, (list, tuple, type({}.values()))) else []


def overlaps(y):
    """Whether elements share memory: a write to one is a write to others, which a copy does not show."""
    places = np.zeros((), int)
    for n, step in zip(y.shape, y.stride()):
        places = places[..., None] + step * np.arange(n)
    return len(np.unique(places)) < places.size


def gradients(library, call, values, number, write, copied=False, parameters=()):
    """The gradients by the leaves of ``call(values)``, whose result of a number is written to before the backward.

    Returns
    -------
    list of ndarray or None
        None where there are no so many results. Raises `Refused`.
    """
    values, leaves = leaves_of(values, library)
    leaves += parameters
    for p in parameters:
        p.grad = None
    library.manual_seed(3)
    try:
        outputs = tensors_of(call(values), library)
    except Exception as error:
        raise Refused("call", error) from error
    if number >= len(outputs):
        return None
    if copied:
        outputs = [y.clone() for y in outputs]
    try:
        write(library, outputs[number])
    except Exception as error:
        raise Refused("write", error) from error
    try:
        total = 0.0
        for k, y in enumerate(outputs):
            y = library.view_as_real(y.resolve_conj()) if y.is_complex() else y
            weights = np.random.default_rng(k).uniform(0.5, 1.5, tuple(y.shape))
            total = total + (y.double() * library.tensor(weights)).sum()
        total.backward()
    except Exception as error:
        raise Refused("backward", error) from error
    return [np.zeros(tuple(x.shape)) if x.grad is None else plain(library, x.grad) for x in leaves]


def plain(library, g):
    g = g.detach().resolve_conj()
    return g.to(library.complex128 if g.is_complex() else library.float64).numpy()


def outcome(*args, **kwargs):
    """The gradients, None, or `Refused`."""
    try:
        return gradients(*args, **kwargs)
    except Refused as refused:
        return refused


def wrong(library, call, values, number, write, tolerance=1e-9, parameters=()):
    """(what became of a program, what is wrong with it or None). The gradients must be those with copies, unless
    elements of the result share memory."""
    got = outcome(library, call, values, number, write, parameters=parameters)
    if got is None:
        return got, None
    want = outcome(library, call, values, number, write, copied=True, parameters=parameters)
    if isinstance(want, Refused):       # the call, or its derivative, whatever is written
        return got, None if isinstance(got, Refused) else f"runs, and not with a copy: {want}"
    if isinstance(got, Refused):
        return got, None if got.is_of_autograd() else str(got)
    for a, b in zip(got, want):
        if not np.allclose(a, b, tolerance, tolerance, equal_nan=True) and not overlaps(
                tensors_of(call(leaves_of(values, library)[0]), library)[number]):
            return got, f"gradient {a.ravel()[:4]}, with a copy {b.ravel()[:4]}"
    return got, None


