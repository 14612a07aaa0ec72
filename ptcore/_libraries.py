"""Imports of other libraries at their first use."""
import _thread
import os
import sys
from importlib import import_module

_one_at_a_time, _importer = _thread.allocate_lock(), [None]     # the thread that imports now


def renew():
    """Gives the child of a fork a lock that no thread of its parent holds."""
    global _one_at_a_time
    _one_at_a_time, _importer[0] = _thread.allocate_lock(), None


def library(name):
    """A module of another library, such as NumPy, which is imported at its first use.

    Python runs handlers of signals in the main thread, and they may raise, as that of Ctrl-C does. An import of NumPy
    that was interrupted so cannot be made again in the process. So another thread imports, and the main thread waits.
    """
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        return module
    if _thread.get_ident() == _importer[0]:
        return import_module(name)
    failed, done = [], _thread.allocate_lock()

    def run():
        try:
            with _one_at_a_time:        # modules of one library that import each other
                _importer[0] = _thread.get_ident()
                try:
                    import_module(name)
                finally:
                    _importer[0] = None
        except BaseException as error:
            failed.append(error)
        finally:
            done.release()
    done.acquire()
    try:
        _thread.start_new_thread(run, ())       # threading's own start can be interrupted while it holds a lock
    except RuntimeError:                # no thread can be started, as at the end of the process
        return import_module(name)
    done.acquire()
    if failed:
        raise failed.pop()              # kept in the list, the error and this frame would keep each other alive
    return sys.modules[name]


def extension(*names):
    """The first of these extension modules of a package that there is, without the modules of the folders between the
    two, if it can do without them.

    ``scipy.fft``, for one, imports 200 modules; the extension module behind it needs NumPy alone.
    """
    from importlib.util import find_spec, module_from_spec, spec_from_file_location
    for name in names:
        if name in sys.modules:
            return sys.modules[name]
        package, *folders, file = name.split(".")
        try:
            folder = os.path.join(find_spec(package).submodule_search_locations[0], *folders)
            found = [x for x in os.listdir(folder) if x.startswith(file + ".") and x.endswith((".so", ".pyd"))]
            library(package)            # its __init__ sets up the bundled libraries
            for x in found:
                spec = spec_from_file_location(name, os.path.join(folder, x))
                module = module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
        except (ImportError, OSError, AttributeError):
            continue
    for name in names[:-1]:
        try:
            return library(name)
        except ImportError:
            continue
    return library(names[-1])
