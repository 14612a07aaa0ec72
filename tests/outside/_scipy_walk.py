"""Calls every function that SciPy marks for array libraries other than NumPy, with NumPy's arrays and with tensors.

    SCIPY_ARRAY_API=1 python tests/outside/_scipy_walk.py              one JSON object: name -> [way, what went wrong]
    SCIPY_ARRAY_API=1 python tests/outside/_scipy_walk.py --page       the page of the reference

SciPy reads the variable when it is first imported: this is a process of its own. ``way`` is "array API" where SciPy
computes with the namespace's functions, "NumPy" where it goes through ``np.asarray`` and back.
"""
import importlib
import json
import os
import sys
import warnings

import numpy as np

import ptcore

os.environ["SCIPY_ARRAY_API"] = "1"

from _scipy_calls import CALLS, DATA
from scipy._lib._array_api import xp_capabilities_table

MODULES = ("special", "fft", "constants", "differentiate", "integrate", "interpolate", "linalg", "optimize",
           "optimize.elementwise", "cluster.hierarchy", "cluster.vq", "ndimage", "signal", "signal.windows", "stats")
CLASSES = {"spatial.transform": ("Rotation", "Slerp", "RigidTransform")}
# Their results are NumPy's arrays whatever they are given, PyTorch's tensors too.
GIVE_NUMPY = ("signal.bode", "signal.cspline2d", "signal.impulse", "signal.place_poles", "stats.power",
              "spatial.transform.RigidTransform.identity")


def marked():
    """{name: (object, way)} of what the table marks for other libraries on the CPU."""
    found, seen = {}, set()

    def enter(name, thing, owner):
        try:
            entry = xp_capabilities_table.get(thing)
        except TypeError:               # what cannot be a key is none
            return
        if entry is None or id(thing) in seen or entry["out_of_scope"] or entry["np_only"]:
            return
        seen.add(id(thing))
        found[name] = owner, "NumPy" if entry["cpu_only"] else "array API"

    for module in MODULES:
        scope = importlib.import_module(f"scipy.{module}")
        for name in scope.__all__:
            thing = getattr(scope, name, None)
            enter(f"{module}.{name}", thing, thing)
    for module, classes in CLASSES.items():
        scope = importlib.import_module(f"scipy.{module}")
        for name in classes:
            owner = getattr(scope, name)
            for method, thing in vars(owner).items():
                enter(f"{module}.{name}.{method}", getattr(thing, "__func__", thing), owner)
    return found


def leaves(value):
    """The arrays and numbers in what a call gave, in order."""
    if isinstance(value, (np.ndarray, np.generic, ptcore.Tensor, int, float, complex, str)) or value is None:
        return [value]
    if isinstance(value, dict):
        return [leaf for key in value for leaf in leaves(value[key])]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    if hasattr(value, "__dict__") and not callable(value):      # SciPy's result objects
        return leaves({k: v for k, v in vars(value).items() if not k.startswith("_")})
    return []


def called(call, function, xp):
    from scipy import ndimage, special
    from scipy.cluster import hierarchy
    from scipy.spatial.transform import Rotation
    from scipy.stats import qmc
    generator = np.random.default_rng(3)

    def set_item(owner, index, value):
        owner[index] = value
        return owner
    scope = {name: xp.asarray(data) if xp is not np else data.copy() for name, data in DATA.items()}
    scope |= {"f": function, "xp": xp, "np": np, "hierarchy": hierarchy, "ndimage": ndimage, "Rotation": Rotation,
              "qmc": qmc, "set_item": set_item, "normal_cdf": special.ndtr,
              "rng_normal": lambda size: generator.normal(size=size), "np_or": lambda value: xp.asarray(value)}
    return eval(call, scope)


def compared(want, got, any_arrays=False):
    """What differs between the results of NumPy's arrays and of tensors, or None. Real roots may be complex numbers."""
    want, got = leaves(want), leaves(got)
    if len(want) != len(got):
        return f"{len(got)} results, NumPy's arrays give {len(want)}"
    tensors = 0
    for a, b in zip(want, got):
        if isinstance(b, (np.ndarray, np.generic)) and not isinstance(a, (int, float, complex)) and not any_arrays:
            return f"a result is {type(b).__name__}, no tensor"
        tensors += isinstance(b, ptcore.Tensor)
        if isinstance(a, str) or a is None:
            if a != b:
                return f"{b!r}, NumPy's arrays give {a!r}"
            continue
        x, y = np.asarray(a), np.asarray(b)
        if x.shape != y.shape:
            return f"shape {y.shape}, NumPy's arrays give {x.shape}"
        if y.dtype.kind == "c" and x.dtype.kind == "f" and not y.imag.any():
            y = y.real
        if x.dtype.kind != y.dtype.kind and {x.dtype.kind, y.dtype.kind} != {"i", "u"}:
            return f"dtype {y.dtype}, NumPy's arrays give {x.dtype}"
        scale = np.max(np.abs(x[np.isfinite(x)]), initial=0.0) if x.dtype.kind in "fc" else 0.0
        if not np.allclose(x, y, rtol=1e-7, atol=1e-9 * scale, equal_nan=True):
            return f"{y!r}, NumPy's arrays give {x!r}"
    plain = all(isinstance(a, (int, float, str, type(None))) for a in want)
    return None if tensors or plain or any_arrays else "no result is a tensor"


def walk(names=None):
    """{name: [way, what went wrong or None]}"""
    xp = ptcore.tensor(0).__array_namespace__()
    results = {}
    for name, (owner, way) in marked().items():
        if names and name not in names:
            continue
        call = CALLS.get(name)
        if call is None:
            results[name] = [way, "there is no call"]
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                want = called(call, owner, np)
            except Exception as error:
                results[name] = [way, f"the call fails with NumPy's arrays: {type(error).__name__}: {error}"]
                continue
            try:
                wrong = compared(want, called(call, owner, xp), name in GIVE_NUMPY)
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
                if os.environ.get("WALK_TRACE"):
                    import traceback
                    traceback.print_exc()
        results[name] = [way, wrong]
    return results


def page(results):
    """The table of the reference: a row for each module, its functions by way."""
    import scipy
    lines = ["SciPy's functions on tensors", "============================", "",
             f"Every function that SciPy {scipy.__version__} marks for array libraries other than NumPy, called with",
             "NumPy's arrays and with tensors on the CPU under ``SCIPY_ARRAY_API=1``. *Array API*: SciPy computes with",
             ":doc:`ptcore.array_api <array_api>`. *NumPy*: it computes with NumPy on the tensors' memory and gives",
             "tensors back. This page is printed by ``tests/outside/_scipy_walk.py --page``; the calls stand beside it",
             "in ``_scipy_calls.py``. " + ", ".join(f"``{name}``" for name in GIVE_NUMPY) + " give NumPy's arrays,",
             "as they do for PyTorch's tensors.", ""]
    modules = {}
    for name, (way, wrong) in results.items():
        module, _, function = name.rpartition(".")
        modules.setdefault(module, {}).setdefault("fails" if wrong else way, []).append(function)
    for module, ways in modules.items():
        lines += [f"scipy.{module}", "-" * (6 + len(module)), ""]
        for way in ("array API", "NumPy", "fails"):
            if way in ways:
                title = {"array API": "Array API", "NumPy": "NumPy", "fails": "Does not work"}[way]
                lines += [f"{title} ({len(ways[way])})", *wrapped(ways[way]), ""]
    return "\n".join(lines)


def wrapped(names):
    lines, line = [], "   "
    for name in names:
        if len(line) + len(name) + 6 > 110:
            lines.append(line.rstrip())
            line = "   "
        line += f"``{name}`` "
    return [*lines, line.rstrip()]


if __name__ == "__main__":
    ptcore.set_default_dtype(ptcore.float64)        # as SciPy expects of every library: its constants have that dtype
    found = walk([a for a in sys.argv[1:] if not a.startswith("-")])
    sys.stdout.write(page(found) if "--page" in sys.argv else json.dumps(found, indent=1) + "\n")
