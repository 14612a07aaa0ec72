"""Forks while other threads import files of this package, of Python, NumPy or SciPy, as their first uses do.

A child of a fork has the forking thread alone. The locks of modules that other threads were importing are never given
up there, and the modules stay as they were at that moment. So a fork waits for these imports, for some seconds at
most, as they may wait for the forking thread. The child then forgets what was left unfinished, and imports it again.
Modules of the user's program are not forgotten: one that runs the program would run it again.
"""
import _thread
import sys
import time

from ptcore._libraries import renew

# Modules that take a lock before forks and release it in the parent: one that was imported while this fork waited only
# releases it.
LOCKS = {"logging": "_lock", "concurrent.futures.thread": "_global_shutdown_lock"}
LIBRARIES = {"ptcore", "numpy", "scipy", "ml_dtypes", *sys.stdlib_module_names}
LONGEST = 10.0                      # seconds for which a fork waits
BOOTSTRAP, LOADERS = "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>"


class _Fork(_thread._local):
    """What a thread notes of its fork: two may fork at the same moment.

    ``unfinished``: the modules that it waited for in vain.
    """
    unfinished = frozenset()


_fork = _Fork()


def _imported_by(frame):
    """The names of the modules that a thread is importing, from the inside to the outside."""
    names = []
    while frame is not None:
        code = frame.f_code
        if code.co_filename == BOOTSTRAP and code.co_name == "_find_and_load":
            names.append(frame.f_locals.get("name"))
        elif code.co_filename == LOADERS and code.co_name in ("create_module", "exec_module"):
            # an extension may be loaded without an import, as the one with BLAS is
            made = frame.f_locals.get("module") or frame.f_locals.get("spec")
            names.append(getattr(made, "__name__", None) or getattr(made, "name", None))
        frame = frame.f_back
    return names


def _is_of_library(name):
    return type(name) is str and name.partition(".")[0] in LIBRARIES


def _by_others():
    """What other threads import: modules of the libraries, and what those import."""
    frames, found = sys._current_frames(), set()
    frames.pop(_thread.get_ident())     # of this function: a local variable would keep it, and all its callers, alive
    while frames:
        names = _imported_by(frames.popitem()[1])
        while names and not _is_of_library(names[-1]):
            names.pop()
        found.update(names)
    return found


def wait_for_imports(longest=LONGEST):
    """Waits until no other thread imports a library.

    Returns
    -------
    set of str
        The modules that other threads still import after ``longest`` seconds.
    """
    if _imported_by(sys._getframe()):
        longest = min(longest, 1.0)             # the others may wait for what this thread imports
    end = None
    while found := _by_others():
        now = time.monotonic()
        end = now + longest if end is None else end
        if now > end:
            break
        time.sleep(0.0005)
    return found


def before_fork():
    """What a fork waits for."""
    absent = [name for name in LOCKS if name not in sys.modules]
    _fork.unfinished = frozenset()      # where an interrupt ends the wait, none of the last fork's
    _fork.unfinished = wait_for_imports()
    for name in absent:
        module = sys.modules.get(name)
        if module is not None and not module.__spec__._initializing:
            getattr(module, LOCKS[name]).acquire()


def forget_unfinished():
    """Forgets, in the child of a fork, libraries that threads of the parent were importing, and all locks of theirs."""
    renew()
    own, unfinished = _imported_by(sys._getframe()), _fork.unfinished
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__dict__", {}).get("__spec__")
        if getattr(spec, "_initializing", False) and name not in own and (name in unfinished or _is_of_library(name)):
            del sys.modules[name]
    bootstrap = sys.modules["importlib._bootstrap"]
    locks, me = getattr(bootstrap, "_module_locks", {}), _thread.get_ident()
    for name, reference in list(locks.items()):
        lock = reference()
        if getattr(lock, "owner", None) not in (None, me):
            locks.pop(name, None)
