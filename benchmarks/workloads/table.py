"""The group ``table``: a call of every public op that torch has too, made from the rows (``ptcore.ops``).

An entry is one call; an op with variants in torch's op database (rounding modes, kinds of interpolation) has one for
each. Public functions and methods without a row (creation, what is written in place only) follow the rows.
"""
import re
import warnings

import numpy as np

from .arguments import ELEMENTWISE, GRADIENTS_DIFFER, NO_OPS, OWN, REDUCING, VALUES_DIFFER, own
from .calls import Call, Unfit, database, found, row_cases, samples, spread

NO_GRADIENT = "nothing has a gradient in torch"
SPACES = ("", "nn.functional.", "linalg.", "special.", "fft.", "Tensor.")
LAPACK = re.compile(r"svd|cond|pca_lowrank|lobpcg|\[nuc\]")
NO_LAPACK = ("vander", "linalg_vander", "lu_unpack")        # in the rows of factors, computed by own kernels


class Entry:
    """A call to be timed; ``kind`` is "elementwise", "reducing" or None; ``hosted`` says that LAPACK computes it."""

    def __init__(self, name, path, candidates, kind=None, hosted=False):
        self.name, self.path, self.candidates = name, path, candidates
        self.kind, self.hosted = kind, hosted


def variants(keys, table):
    """[(suffix of the name, OpInfo)] of the first key that the database has; with None where it has none."""
    for key in keys:
        infos = table.get(key)
        if infos:
            plain = [i for i in infos if not i.variant_test_name]
            rest = [i for i in infos if i.variant_test_name]
            return [("", i) for i in plain[:1]] + [(f"[{i.variant_test_name}]", i) for i in rest]
    return [("", None)]


def kind_of(row, path, info):
    """Whether the 512 x 512 of an op are timed: as elementwise, as reducing, or not (None)."""
    from torch.testing._internal.opinfo.core import BinaryUfuncInfo, ReductionOpInfo, UnaryUfuncInfo
    if path in REDUCING or isinstance(info, ReductionOpInfo) or (row is not None and row.family == "reduction"):
        return "reducing"
    ufunc = (isinstance(info, (BinaryUfuncInfo, UnaryUfuncInfo)) or path in ELEMENTWISE
             or (row is not None and row.kind == "elementwise"))
    return "elementwise" if ufunc and not path.startswith("Tensor.") else None


def candidates(path, info, row, torch):
    """Functions that give calls: those of our own arguments first, of the row's tests last."""
    made = [lambda: own(path)]
    if info is not None:
        made.append(lambda: samples(info, path, torch))
    if row is not None:
        made.append(lambda: row_cases(row, path, torch))
    return made


def entries(ptcore, torch):
    """(entries, {name: why it has none})."""
    import ptcore.fft
    import ptcore.linalg
    import ptcore.nn
    import ptcore.special
    from ptcore import _ops
    table, made, left = database(), [], {}
    covered = set()

    def add(name, path, keys, row):
        for k, (suffix, info) in enumerate([("", None)] if path in OWN else variants(keys, table)):
            hosted = (row is not None and row.family == "linalg" and row.name not in NO_LAPACK) or bool(
                LAPACK.search(path + suffix))
            calls = candidates(path, info, None if k else row, torch)
            made.append(Entry(name + suffix, path, calls, kind_of(row, path, info), hosted))

    for row in _ops.rows():
        if row.internal or row.family in (None, "registered"):
            continue
        paths = row.public or [f"Tensor.{row.method_name}"]
        short = [p.rpartition(".")[2] for p in paths]
        covered.update([*paths, *short, row.name, *row.alias])
        path = next((p for p in paths if found(torch, p) is not None), None)
        if path is None:
            left[paths[0]] = "torch has none"
        else:
            add(path, path, [*paths, *short, row.name, *row.alias], row)

    for space in SPACES:
        ours, theirs = (found(xp, space.rstrip(".")) if space else xp for xp in (ptcore, torch))
        for name in sorted(set(dir(ours))):
            path, attribute = space + name, getattr(ours, name, None)
            known = path in OWN or name in table or path in table
            if (name.startswith("_") and not known) or isinstance(attribute, type) or name in covered:
                continue
            if not callable(attribute) and not (space == "Tensor." and known):
                continue
            if name.endswith("_") and not name.startswith("_") and (name[:-1] in covered
                                                                    or found(ptcore, name[:-1]) is not None):
                continue                # in place; the other form is timed
            if space != "Tensor." or not hasattr(ptcore, name):
                if path in NO_OPS:
                    left[path] = "computes nothing"
                elif not hasattr(theirs, name):
                    left[path] = "torch has none"
                elif not known:
                    left[path] = "no arguments: neither in torch's op database nor in workloads/arguments.py"
                else:
                    covered.add(name)
                    add(path, path, [path, name], None)
    return made, left


# -- comparing -------------------------------------------------------------------------------------

def parts(value):
    """Tensors and plain values of a result, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in parts(v)]
    return [value]


def array(tensor):
    tensor = tensor.detach()
    if hasattr(tensor, "resolve_conj"):
        tensor = tensor.resolve_conj().resolve_neg()
    return (tensor.float() if str(tensor.dtype).endswith("bfloat16") else tensor).numpy(force=True)


def difference(ours, theirs, tensors, values=True):
    """What differs between two results, as a text; None if nothing does."""
    a, b = parts(ours), parts(theirs)
    if len(a) != len(b):
        return f"{len(a)} results, torch {len(b)}"
    for k, (x, y) in enumerate(zip(a, b)):
        if not isinstance(y, tensors[1]):
            if values and isinstance(y, (bool, int, float, str)) and not (
                    np.isclose(x, y) if isinstance(y, float) else x == y):
                return f"result {k} is {x!r}, torch {y!r}"
            continue
        if not isinstance(x, tensors[0]):
            return f"result {k} is {type(x).__name__}, torch Tensor"
        kinds = [str(t.dtype).rpartition(".")[2] for t in (x, y)]
        if kinds[0] != kinds[1]:
            return f"result {k} is {kinds[0]}, torch {kinds[1]}"
        if tuple(x.shape) != tuple(y.shape):
            return f"result {k} has shape {list(x.shape)}, torch {list(y.shape)}"
        if values and not close(array(x), array(y)):
            return f"result {k} differs by {np.abs(array(x).astype(complex) - array(y)).max():.3g}"
    return None


def close(a, b):
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    finite = np.abs(b[np.isfinite(b)])
    return np.allclose(a, b, rtol=2e-3, atol=1e-4 * max(1.0, finite.max(initial=0.0)), equal_nan=True)


def settled(entry, libraries, grad=False):
    """The first call that both libraries take: (Call, results of both, leaves of both). Unfit where none is.

    A call whose result has no elements is taken only where there is no other.
    """
    reasons, without = [], None
    for make in entry.candidates:
        try:
            calls = make()
        except Exception as e:
            reasons.append(f"samples: {type(e).__name__}: {e}")
            continue
        for call in calls:
            results = []
            for xp in libraries[::-1]:          # torch first: where it refuses, the sample is not for this call
                try:
                    results.insert(0, call.run(xp, grad))
                except Exception as e:
                    reasons.append(f"{xp.__name__}: {type(e).__name__}: {e}")
                    break
            if len(results) == 2:
                taken = call, [r for r, _ in results], [leaves for _, leaves in results]
                tensors = [t for t in parts(results[1][0]) if isinstance(t, libraries[1].Tensor)]
                if not tensors or any(t.numel() for t in tensors):
                    return taken
                without = without or taken
    if without:
        return without
    ours = [r for r in reasons if r.startswith("ptcore")]
    raise Unfit(" ".join((ours or reasons or ["no call"])[0].split())[:160])


def changes(call, torch):
    """Whether the values of two calls of torch differ: it draws random numbers."""
    first, second = (call.run(torch)[0] for _ in range(2))
    return difference(first, second, (torch.Tensor, torch.Tensor)) is not None


def compared(entry, call, libraries, results, values=True):
    values = values and entry.path not in VALUES_DIFFER and not changes(call, libraries[1])
    return difference(*results, [xp.Tensor for xp in libraries], values), values


# -- the three modes -------------------------------------------------------------------------------

def plain_mode(entry, libraries, rng):
    """[(name, statement and names for each library)]; raises Unfit, and AssertionError at a difference."""
    call, results, _ = settled(entry, libraries)
    differs, _ = compared(entry, call, libraries, results)
    assert not differs, differs
    return [(entry.name, [call.prepared(xp)[:2] for xp in libraries])]


def backward_mode(entry, libraries, rng, values=True):
    """The call on tensors that need a gradient, and the backward of its first result that has one; ``values`` says
    whether the results must be equal, beside their shapes and dtypes."""
    ptcore, torch = libraries
    call, results, leaves = settled(entry, libraries, True)
    flat = [parts(r) for r in results]
    k = next((k for k, t in enumerate(flat[1]) if isinstance(t, torch.Tensor) and t.requires_grad), None)
    if not leaves[1] or k is None:
        raise Unfit(NO_GRADIENT)
    if flat[1][k] is leaves[1][0]:
        raise Unfit("returns its argument")
    assert len(flat[0]) == len(flat[1]), f"{len(flat[0])} results, torch {len(flat[1])}"
    assert isinstance(flat[0][k], ptcore.Tensor) and flat[0][k].requires_grad, f"result {k} has no gradient"
    seed = array(flat[1][k])
    seed = np.asarray(rng.standard_normal(seed.shape)).astype(seed.dtype)
    loops, grads = [], []
    for xp, result, own_leaves in zip(libraries, flat, leaves):
        g = xp.from_numpy(seed.copy())
        try:
            result[k].backward(g)
        except RuntimeError as e:
            if xp is ptcore:
                raise
            raise Unfit(f"torch's backward: {e}") from e
        grads.append([leaf.grad for leaf in own_leaves])
    differs, values = compared(entry, call, libraries, results, values)
    assert not differs, differs
    values = values and entry.path not in GRADIENTS_DIFFER
    for mine, theirs in zip(*grads):
        if theirs is None or mine is None:
            zero = mine if theirs is None else theirs
            assert zero is None or not array(zero).any(), "a gradient is missing"
            continue
        differs = difference(mine, theirs, [xp.Tensor for xp in libraries], values)
        assert not differs, f"gradient: {differs}"
    for xp in libraries:
        text, names, own_leaves = call.prepared(xp, True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            picked = picks(eval(text, names), k, xp)
        names["g"] = xp.from_numpy(seed.copy())
        clear = ""
        for i, leaf in enumerate(own_leaves):
            name = next((n for n, v in names.items() if v is leaf), f"leaf{i}")
            names[name] = leaf
            clear += f"{name}.grad = "
        loops.append((f"{clear}None; {text}{picked}.backward(g)", names))
    return [(entry.name, loops)]


def picks(value, k, xp):
    """The subscripts that take the k-th tensor or value out of a result."""
    if not isinstance(value, (tuple, list)):
        return ""
    for i, v in enumerate(value):
        n = len(parts(v))
        if k < n:
            return f"[{i}]{picks(v, k, xp)}"
        k -= n
    raise AssertionError("the result has fewer parts than before")


def large_mode(entry, libraries, rng):
    """512 x 512: elementwise ops on all of it, reducing ops over all, the first and the last dim."""
    torch = libraries[1]
    if entry.kind is None:
        raise Unfit("neither elementwise nor reducing")
    call = settled(entry, libraries)[0]
    if not call.data():
        raise Unfit("no tensor")
    if entry.kind == "elementwise":
        forms = [("", call.enlarged(rng))]
    else:
        data = call.data()[0].array
        x = spread(rng, data.astype(np.float32), *((0.99, 1.01) if entry.path == "prod" else (-1, 1)))
        x = type(call.data()[0])(x)
        extra = REDUCING.get(entry.path, [])
        forms = [("", Call(entry.path, [x, *extra])), (", dim=0", Call(entry.path, [x, *extra], {"dim": 0})),
                 (", dim=1", Call(entry.path, [x, *extra], {"dim": 1}))]
    found_forms, reason = [], None
    for suffix, form in forms:
        try:
            theirs = form.run(torch)[0]
        except Exception as e:
            reason = Unfit(f"torch: {type(e).__name__}: {e}")
            continue
        differs, _ = compared(entry, form, libraries, [form.run(libraries[0])[0], theirs])
        assert not differs, f"512 x 512{suffix}: {differs}"
        loops = [form.prepared(xp)[:2] for xp in libraries]
        found_forms.append((entry.name + suffix, loops))
    if not found_forms:
        raise reason
    return found_forms


MODES = {"plain": plain_mode, "backward": backward_mode, "512": large_mode}
