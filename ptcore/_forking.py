"""Forks while other threads import: the package's first uses import files, and so do other libraries.

A child of a fork has the forking thread alone. The locks of modules that other threads were importing are never given
up there, and the modules stay as they were at that moment. So a fork waits for these imports, for some seconds at
most, as they may wait for the forking thread. The child then forgets what was left unfinished, and imports it again.
"""
import _thread
import sys
import time

from ptcore._libraries import renew

# Modules that take a lock before forks and release it in the parent: one that was imported while this fork waited only
# releases it.
LOCKS = {"logging": "_lock", "concurrent.futures.thread": "_global_shutdown_lock"}
LONGEST = 10.0                      # seconds for which a fork waits
BOOTSTRAP = "<frozen importlib._bootstrap>"


def _imported_by(frame):
    """The names of the modules that a thread is importing."""
    names = set()
    while frame is not None:
        code = frame.f_code
        if code.co_filename == BOOTSTRAP and code.co_name == "_find_and_load":
            names.add(frame.f_locals.get("name"))
        frame = frame.f_back
    return names


def wait_for_imports(longest=LONGEST):
    """Waits until no other thread imports a module.

    Returns
    -------
    bool
        False if ``longest`` seconds were not enough.
    """
    own = _thread.get_ident()
    if _imported_by(sys._getframe()):
        longest = min(longest, 1.0)             # the others may wait for what this thread imports
    end = None
    while any([_imported_by(frame) for thread, frame in sys._current_frames().items() if thread != own]):
        now = time.monotonic()
        end = now + longest if end is None else end
        if now > end:
            return False
        time.sleep(0.0005)
    return True


def before_fork():
    """What a fork waits for."""
    absent = [name for name in LOCKS if name not in sys.modules]
    wait_for_imports()
    for name in absent:
        module = sys.modules.get(name)
        if module is not None and not module.__spec__._initializing:
            getattr(module, LOCKS[name]).acquire()


def forget_unfinished():
    """Forgets, in the child of a fork, modules and locks of imports that the threads of the parent had begun."""
    renew()
    own = _imported_by(sys._getframe())
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__dict__", {}).get("__spec__")
        if getattr(spec, "_initializing", False) and name not in own:
            del sys.modules[name]
    bootstrap = sys.modules["importlib._bootstrap"]
    locks, me = getattr(bootstrap, "_module_locks", {}), _thread.get_ident()
    for name, reference in list(locks.items()):
        lock = reference()
        if getattr(lock, "owner", None) not in (None, me):
            locks.pop(name, None)
