"""No module holds a list that is pushed and popped: modes, hooks and stacks lie in a thread's state (``_state.pyx``).

A list, dict or set of a module may grow: a registry. What also shrinks, is counted down, or is set where a context
begins or ends, stands in a table with the reason why it is no thread's.
"""
import ast
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.core

PACKAGE = Path(__file__).resolve().parent.parent / "ptcore"
SOURCE_ONLY = pytest.mark.skipif(not (PACKAGE / "_build").exists(), reason="needs the source tree")

GROW = {"append", "appendleft", "add", "insert", "extend", "update", "setdefault"}
SHRINK = {"pop", "popleft", "popitem", "remove", "discard", "clear"}
ENDS = {"__enter__", "__exit__"}

# "file:name": why other threads see it.
ALLOWED = {
    "cuda/driver/ipc.pyx:_unclosed": "memory of other processes that a capture keeps open, of whatever thread",
    "_ops/__init__.py:_rows": "the rows that there are; a package's are taken off with their library",
    "_ops/namespaces.py:_packets": "a cache of names, which goes with the op",
    "_ops/namespaces.py:custom": "the ops that there are, by name",
    "_ops/table/ids.pyx:_id_by_name": "the ids of rows, which go with their library",
    "_ops/table/ids.pyx:_python_kernels": "kernels of rows, which go with their library",
    "autograd/engine.py:_live": "numbers of the backwards that run, on whatever thread",
    "autograd/engine.py:_watched": "hooks on tensors until they are removed",
    "autograd/recording.pyx:_methods": "the methods that a profile, which is the process's, has exchanged",
    "autograd/profiler.py:KinetoStepTracker._step_dict": "the steps of a profile, which is the process's",
    "autograd/profiler.py:_is_profiler_enabled": "a profile is the process's, as in PyTorch",
    "autograd/ranges.py:_exchanged": "the entries of functions that a profile, which is the process's, has exchanged",
    "compat/torch/_finder.py:_added": "paths of the importer while torch is ptcore",
    "compat/torch/_finder.py:_given": "modules of the importer while torch is ptcore",
    "compat/torch/_finder.py:_names": "names of the importer while torch is ptcore",
    "cuda/allocator/pools.py:_users": "how many graphs and blocks use a pool: each thread that uses it",
    "cuda/streams.py:captures_events": "captures under way: what any thread records goes to each of them",
    "distributions/kl.py:_KL_MEMOIZE": "a cache, emptied where a rule is registered",
    "jit/capture/rewrite.py:_known": "a cache",
    "jit/_script/types.py:_classes": "the classes that were scripted",
    "library/_custom_op.py:OPDEFS": "the ops that there are, by name",
    "library/_library.py:_defined": "the ops that libraries have defined",
    "library/_library.py:pending": "registrations until their op is defined",
    "monitor.py:_handlers": "handlers until they are unregistered",
    "multiprocessing/_devices.py:_sent": "blocks of devices until a process has them",
    "_memory/segments.py:_late": "segments that are to be let go",
    "_memory/segments.py:_slabs": "segments by name",
    "optim/optimizer.py:_global_step_pre_hooks": "hooks until they are removed",
    "serialization/_constructors.py:_safe": "what files may name, for all threads as in PyTorch",
    "_random.pyx:_held": "generators that a capture on a device keeps",
}


# Contexts in Python, "file:name": why an interrupt inside of their ``__enter__`` or ``__exit__`` leaves no mode on.
IN_PYTHON = {
    "autograd/_tensor_hooks.py:RemovableHandle": "entering changes nothing",
    "autograd/grad_mode.py:set_multithreading_enabled": "changes nothing",
    "autograd/graph.py:_Hooks": "entering changes nothing",
    "autograd/profiler.py:_Emitter": "raises where it is enabled",
    "autograd/profiler.py:profile": "records, and changes nothing of what is computed; it can be stopped again",
    "autograd/profiler.py:record_function": "a range of a profile",
    "backends/mkldnn.py:flags": "changes nothing",
    "backends/nnpack.py:flags": "changes nothing",
    "compat/torch/_contextlib.py:_DecoratorContextManager": "a base of contexts of users",
    "compat/torch/_guards.py:tracing": "changes nothing",
    "compat/torch/_helpers.py:_enable_get_lr_call": "changes nothing",
    "compat/torch/_settings.py:_patched": "settings that ptcore does not read",
    "cuda/allocator/pools.py:use_mem_pool": "where memory comes from; results are the same",
    "cuda/generic.py:Stream": "changes nothing",
    "cuda/graphs.py:graph": "begins a capture, which raises until it is ended",
    "cuda/memory.py:caching_allocator_disabled": "where memory comes from; results are the same",
    "cuda/nvtx.py:range": "a range of a tool",
    "cuda/profiler.py:profile": "tells a tool to record",
    "fx/graph.py:_At": "set where it is made, as in PyTorch: a place in one graph",
    "hub.py:_config": "of sys.path, which the imports inside read and write from Python too",
    "jit/capture/calls.py:_Managed": "a context of the user's, whatever that is",
    "jit/capture/calls.py:Watched": "a count of one capture, which is gone with the exception",
    "jit/_script/calls.py:note_call": "entering changes nothing",
    "jit/_script/expressions.py:at": "of a compiler, which is gone with the exception",
    "jit/_trace.py:_kept_buffers": "entering copies",
    "library/_custom_op.py:set_kernel_enabled": "of one op, by a generator as in PyTorch",
    "library/_library.py:_scoped_library": "entering makes an object",
    "_memory/segments.py:_Release": "entering changes nothing",
    "nn/utils/prune.py:_unchanged_by_errors": "entering copies",
    "profiler/itt.py:range": "raises",
    "profiler/profiler.py:profile": "as that of autograd",
    "utils/hooks.py:RemovableHandle": "entering changes nothing",
    "utils/restart.py:checkpoint_on_signal": "handlers of signals, which are what interrupts",
    "utils/tensorboard.py:SummaryWriter": "entering changes nothing",
}


def contexts_in_python(tree):
    """Names of classes that define ``__enter__``, and of functions of ``contextmanager``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and ENDS & {f.name for f in node.body if isinstance(f, ast.FunctionDef)}:
            yield node.name
        elif isinstance(node, ast.FunctionDef) and node.name not in ENDS and is_context(node):
            yield node.name


@SOURCE_ONLY
@pytest.mark.outer
def test_contexts_that_set_a_mode_are_in_c():
    found = {f"{name}:{one}" for path in sorted(PACKAGE.rglob("*.py"))
             if not (name := path.relative_to(PACKAGE).as_posix()).startswith(("_build/", "examples/"))
             for one in contexts_in_python(ast.parse(path.read_text()))}
    assert found - {*IN_PYTHON} == set(), "subclasses of _state.Mode, or into the table with a reason"
    assert {*IN_PYTHON} - found == set(), "these are gone from the code"


@pytest.mark.parametrize("text", ["class mode:\n    def __enter__(self):\n        pass",
                                  "class mode(Mode):\n    def __exit__(self, *e):\n        super().__exit__(*e)",
                                  "@contextmanager\ndef mode():\n    yield"])
def test_what_is_in_python(text):
    assert [*contexts_in_python(ast.parse(text))] == ["mode"]


def places(tree, here):
    """Where the names of a module come from: name -> (module, name there). Those of the package that it imports are
    others', whether they are values or modules."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "ptcore":
            found |= {a.asname or a.name: (node.module, a.name) for a in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.asname: (a.name.rpartition(".")[0], a.name.rpartition(".")[2]) for a in node.names
                      if a.asname and a.name.startswith("ptcore.")}
    return found | {name: (here, name) for name in bound_in(tree.body)}


def is_context(function):
    return isinstance(function, ast.FunctionDef) and (function.name in ENDS or any(
        "contextmanager" in ast.unparse(d) for d in function.decorator_list))


def bound_in(body):
    """The names that statements bind to values."""
    targets = [target for statement in body for target in (
        statement.targets if isinstance(statement, ast.Assign) else
        [statement.target] if isinstance(statement, ast.AnnAssign) else [])]
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def changes(tree, here="here"):
    """((module, name), what is done) of each change of a module's value, or a class's, by a function."""
    known = places(tree, here)
    classes = {node.name: bound_in(node.body) for node in tree.body if isinstance(node, ast.ClassDef)}
    classes_of = {f: node.name for node in tree.body if isinstance(node, ast.ClassDef) for f in ast.walk(node)}

    def place(node):
        if isinstance(node, ast.Name):
            return known.get(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = node.value.id
            if owner in known:
                return ".".join(known[owner]), node.attr
            owner = classes_of.get(node) if owner == "cls" else owner
            if node.attr in classes.get(owner, ()):
                return here, f"{owner}.{node.attr}"
        return None
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in GROW | SHRINK:
                yield place(node.func.value), "grows" if node.func.attr in GROW else "shrinks"
            targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else (
                [node.target] if isinstance(node, ast.AugAssign) else [])
            for target in targets:
                for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if isinstance(part, ast.Subscript):
                        is_less = isinstance(node, ast.Delete) or isinstance(part.slice, ast.Slice) or (
                            isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Sub))
                        yield place(part.value), ("set in a context" if is_context(function) else
                                                  "shrinks" if is_less else "grows")
                    elif isinstance(part, ast.Attribute) and is_context(function):
                        yield place(part), "set in a context"
            if isinstance(node, ast.Global) and is_context(function):
                for name in node.names:
                    yield (here, name), "set in a context"


def pushed_and_popped(found):
    done = {}
    for where, what in found:
        done.setdefault(where, set()).add(what)
    return {where for where, what in done.items() if where is not None and (
        "set in a context" in what or {"grows", "shrinks"} <= what)}


def found_in(text):
    """Values that are pushed and popped, of a text of Python."""
    return pushed_and_popped(changes(ast.parse(text)))


BOUND = re.compile(r"^(?:cdef (?:public |readonly )?(?:list|dict|set|object) )?(\w+)(?:: \w+)? = "
                   r"(?:\[|\{|set\(|dict\(|list\(|deque\(|\w*Ordered)", re.M)


def found_in_cython(text):
    """The same of a text of Cython."""
    found = set()
    for name in BOUND.findall(text):
        grows = re.search(rf"^[ \t]+.*\b{name}(?:\.(?:{'|'.join(GROW)})\(|\[[^\]\n]+\] \+?= )", text, re.M)
        shrinks = re.search(rf"^[ \t]+.*(?:\b{name}\.(?:{'|'.join(SHRINK)})\(|\bdel {name}\[|\b{name}\[[^\]\n]+\] -= )",
                            text, re.M)
        if grows and shrinks:
            found.add(name)
    return found


def module_of(path):
    return ".".join(("ptcore", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


@SOURCE_ONLY
@pytest.mark.outer
def test_no_module_holds_a_stack():
    found, of_python, files = set(), [], {}
    for path in sorted(PACKAGE.rglob("*")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(("_build/", "examples/")) or path.suffix not in (".py", ".pyx"):
            continue
        files[module_of(path)] = name
        if path.suffix == ".py":
            of_python += changes(ast.parse(path.read_text()), module_of(path))
        else:
            found |= {f"{name}:{one}" for one in found_in_cython(path.read_text())}
    found |= {f"{files[module]}:{name}" for module, name in pushed_and_popped(of_python) if module in files}
    assert found - {*ALLOWED} == set(), "these belong to the thread's state, or into the table with a reason"
    assert {*ALLOWED} - found == set(), "these are gone from the code"


@SOURCE_ONLY
def test_no_counter_of_a_thread_by_its_number():
    """What is kept by the number of a thread stays when that ends, and is then another one's."""
    sources = [path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".pyx", ".pxd", ".pxi")]
    found = {path.relative_to(PACKAGE).as_posix() for path in sources if re.search(
        r"get_ident\(\)\]|PyThread_get_thread_ident|\.get\(get_ident\(\)\)", path.read_text())}
    assert found == {"autograd/engine.py"}         # which takes it off where the backward ends


@pytest.mark.parametrize("text", [
    "hooks = []\ndef enter(x):\n    hooks.append(x)\ndef leave():\n    hooks.pop()",
    "state = {'depth': 0}\nclass cached:\n    def __enter__(self):\n        state['depth'] += 1",
    "count = {'n': 0}\ndef f():\n    count['n'] += 1\ndef g():\n    count['n'] -= 1",
    "on = False\nclass mode:\n    def __enter__(self):\n        global on\n        on = True",
    "on = False\n@contextlib.contextmanager\ndef mode():\n    global on\n    on = True\n    yield\n    on = False",
    "kept = {}\ndef f(k):\n    kept[k] = 1\ndef g(k):\n    del kept[k]",
    "class A:\n    hooks = []\n    def f(x):\n        A.hooks.append(x)\n    @classmethod\n    def g(cls):\n"
    "        cls.hooks.pop()",
    "class mode:\n    on = False\n    def __enter__(self):\n        mode.on = True",
    "from ptcore._ops._record import hooks\ndef f(x):\n    hooks.append(x)\ndef g():\n    hooks.pop()",
    "from ptcore.jit import _compile\nclass stance:\n    def __enter__(self):\n        _compile.stance[0] = 1"])
def test_what_is_found(text):
    assert len(found_in(text)) == 1


def test_what_is_found_in_cython():
    assert found_in_cython("hooks = []\n\ndef f(x):\n    hooks.append(x)\n\ndef g():\n    hooks.pop()\n") == {"hooks"}
    assert found_in_cython("cdef dict _kept = {}\ndef f(k):\n    _kept[k] = 1\n    _kept.pop(k, None)\n") == {"_kept"}
    assert not found_in_cython("cdef dict _rows = {}\ndef f(k):\n    _rows[k] = 1\n")


@pytest.mark.parametrize("text", ["rows = {}\ndef add(k, v):\n    rows[k] = v",
                                  "def f():\n    stack = []\n    stack.append(1)\n    stack.pop()"])
def test_what_may_be(text):
    assert not found_in(text)
