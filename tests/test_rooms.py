"""Rooms: the parts of the package, which may import which, and which circles of files there are.

The form is that of SciPy's ``tach.toml``. Imports inside of functions count, and so do cimports, modules that are
imported by name, and those that are read as ``ptcore.name``. ``_lazy.py`` alone leads up: its names are for users.
"""
from collections import defaultdict

import pytest
from _imports import PACKAGE, circles, imports, module_of, private_attributes, read_through_face, sources

pytestmark = [pytest.mark.core, pytest.mark.skipif(not (PACKAGE / "_build").exists(), reason="needs the source tree")]

# Rooms that are less than a folder or a file of the root, or more.
PARTS = {
    # What knows no op: private files of the root, of which all names are public to the package.
    "ground": ("_exchange", "_memory"),
    "_ops": ("_ops", "_names"),         # names are generated
    # Flexible attention traces and plans its functions of scores: a program over the compiler.
    "nn.attention": ("nn.attention",),
    # What modules and optimisers use of PyTorch's utils.
    "hooks": ("utils.hooks",),
    # A loss in pieces, each of which is a checkpoint.
    "linear_cross_entropy_options": ("nn.modules.linear_cross_entropy_options",),
}

# Room -> the rooms that it imports, beside the ground. From below to above: each imports rooms that stand before it.
# "ptcore" is the face, the names of ``import ptcore``.
ROOMS = {
    # floor 0
    "ground": "",
    "_trees": "",
    "_sizes": "",
    # names of the ground
    "random": "",
    "futures": "",
    "monitor": "",
    "_pkgconfig": "",
    "_pyinstaller": "",
    "types": "_sizes",
    # floor 1
    "_ops": "_sizes",
    "cuda": "_ops",
    "cython_ops": "_ops",
    "fft": "_ops",
    "linalg": "_ops",
    "ops": "_ops",
    "return_types": "_ops",
    "signal": "_ops",
    "special": "_ops",
    "accelerator": "cuda",
    "amp": "_ops cuda",
    "cpu": "amp",
    # floor 2
    "autograd": "_ops _trees cuda",
    "profiler": "autograd",
    "ptcore": "_ops autograd cuda",
    # what models are made of
    "array_api": "_ops cuda fft linalg ptcore",
    "config_tool": "ptcore",
    "cython_tensor": "_ops",
    "c_api": "_ops cython_ops cython_tensor",
    "hooks": "autograd ptcore",
    "quasirandom": "ptcore",
    "storage": "_ops",
    "testing": "ptcore",
    "version": "ptcore",
    "nn": "_ops _trees amp autograd cuda hooks linalg ptcore",
    "overrides": "fft linalg nn special ptcore",
    "masked": "_ops linalg nn ptcore",
    "distributions": "_ops _sizes autograd linalg nn overrides special ptcore",
    "optim": "_ops autograd cuda hooks nn ptcore",
    # transformations, and what they are saved by: a graph module is a module
    "serialization": "hooks nn storage ptcore",
    "func": "_ops _trees autograd nn ptcore",
    "fx": "_ops _sizes _trees nn ptcore",
    "jit": "_ops _sizes _trees amp autograd fft fx linalg nn optim return_types serialization special ptcore",
    "compiler": "jit",
    "library": "_ops _trees amp autograd jit testing types ptcore",
    "nn.attention": "_ops _trees accelerator amp autograd func fx jit nn ptcore",
    # programs
    "backends": "_ops cuda nn.attention",
    "hub": "serialization",
    "multiprocessing": "cuda nn ptcore",
    "utils": "_ops _trees accelerator amp autograd cpu cuda hub multiprocessing nn serialization ptcore",
    "linear_cross_entropy_options": "_ops utils ptcore",
    "examples": "autograd distributions func multiprocessing nn optim utils ptcore",
    "compat": "_ops amp autograd backends compiler cuda func jit library nn ops serialization storage utils ptcore",
}

# Circles of files, each with its reason: at most three, of at most six files, fifteen in all.
CIRCLES = {
    # The partials of a row without texts are those of its formula: a rule walks a small graph. The walk's last step,
    # a leaf, asks for rules, and runs hooks, which are the walk's.
    ("ptcore.autograd.accumulate", "ptcore.autograd.engine", "ptcore.autograd.function", "ptcore.autograd.helpers"),
}

# Private names of PyTorch, which its programs and so other rooms use.
PYTORCHS = {
    "ptcore._disabled_torch_function_impl", "ptcore.autograd.profiler._ExperimentalConfig", "ptcore.jit._overload",
    "ptcore.nn.modules.batchnorm._BatchNorm", "ptcore.utils._pytree", "ptcore.utils.data._utils.collate",
}


def room_of(module):
    inner = module.removeprefix("ptcore").lstrip(".")
    for room, places in PARTS.items():
        if any(inner == place or inner.startswith(f"{place}.") for place in places):
            return room
    head = inner.partition(".")[0]
    if head.startswith("_") and not (PACKAGE / head).is_dir():
        return "ground"
    return head or "ptcore"


def test_imports_follow_the_table():
    wrong, used = [], defaultdict(set)
    for path in sources():
        here = room_of(module_of(path))
        for module in [i.module for i in imports(path)] + read_through_face(path):
            there = room_of(module)
            if there not in (here, "ground"):
                used[here].add(there)
                if here == "ground" or there not in ROOMS.get(here, "").split():
                    wrong.append(f"{path.relative_to(PACKAGE)} ({here}) imports {module} ({there})")
    assert not wrong, "\n".join(wrong)
    stale = [f"{room}: {there}" for room, its in ROOMS.items() for there in its.split() if there not in used[room]]
    assert not stale, f"permissions that nothing uses: {stale}"


def test_the_table_is_in_order():
    """So there is no circle of rooms."""
    below = set()
    for room, its in ROOMS.items():
        assert set(its.split()) <= below, (room, set(its.split()) - below)
        below.add(room)
    assert {room_of(module_of(path)) for path in sources()} == below


def test_circles_of_files():
    graph = {}
    for path in sources():
        here = module_of(path)
        graph.setdefault(here, set()).update(i.module for i in imports(path) if i.module != here)
    found = {tuple(circle) for circle in circles(graph)}
    assert found == CIRCLES, f"new: {found - CIRCLES}; gone: {CIRCLES - found}"
    assert len(CIRCLES) <= 3 and all(len(c) <= 6 for c in CIRCLES) and sum(map(len, CIRCLES)) <= 15


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


@pytest.mark.outer
def test_private_names_stay_in_their_room():
    """Names and modules; those of the ground's files are public to the package, and private ops are ops."""
    wrong, kept = [], set()
    for path in sources():
        module = module_of(path)
        here = room_of(module)
        taken = [(i.module, i.name) for i in imports(path)] + list(private_attributes(path))
        for where, name in taken:
            there = room_of(where)
            if there in (here, "ground"):
                continue
            inside = where.split(".")[2:]
            op = where == "ptcore._ops.functions"
            if any(map(is_private, inside)) or (name and is_private(name) and not op):
                full = where if name is None or where in PYTORCHS else f"{where}.{name}"
                if full in PYTORCHS:
                    kept.add(full)
                else:
                    wrong.append(f"{path.relative_to(PACKAGE)} takes {full}")
    assert not wrong, "\n".join(wrong)
    assert kept == PYTORCHS, f"nobody takes {PYTORCHS - kept}"
