"""The finder of ``torch`` and its modules.

A path below ``torch`` leads, in this order, to the file that `_paths.TABLE` names, to ptcore's own module of that path,
or to a module for an absent part (`_absent`). Modules of ptcore are returned as they are, under a second name. A path
of the table may lie in a package of ptcore, as ``torch.utils.model_zoo`` does: ``from torch.utils import model_zoo``
asks for ``ptcore.utils.model_zoo``, since the package is ptcore's, and gets the same module.
"""
import functools
import importlib.util
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder

from ptcore.compat.torch import _paths

HERE = "ptcore.compat.torch"
# Additions of the table to packages of ptcore: (package, name there, full name).
_added = []


def is_ours(module):
    """Whether a module is the result of ``import torch`` while the hook is installed."""
    return getattr(getattr(module, "__spec__", None), "origin", None) == _root_file()


def _root_file():
    return __file__.replace("_finder.", "_root.").removesuffix("c")


def target(path):
    """The full name of the module behind ``torch.<path>``, or None. Imports packages above it, but not the module."""
    if path in _paths.TABLE:
        return _paths.TABLE[path]
    if path in _paths.ABSENT or any(part.startswith("_") for part in path.split(".")):
        return None                 # a private name of ptcore has another meaning than PyTorch's
    try:
        return f"ptcore.{path}" if importlib.util.find_spec(f"ptcore.{path}") else None
    except ModuleNotFoundError:
        return None


class _Alias:
    """Loads a module by returning the existing one of another name."""

    def __init__(self, name, path):
        self.name, self.path = name, path

    def create_module(self, spec):
        module = import_module(self.name)
        self.own = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self.own
        _give(module, self.path)
        # Modules imported with their package are found as its attributes, without a finder, so they get additions here.
        for name in [n for n in sys.modules if n.startswith(f"ptcore.{self.path}.")]:
            _give(sys.modules[name], name[len("ptcore."):])
        # A package may hold a function with the name of one of its modules, which a later import would replace by the
        # module.
        prefix = self.name + "."
        for name in [n for n in sys.modules if n.startswith(prefix)]:
            child = name[len(prefix):]
            if "." not in child and vars(module).get(child) is not sys.modules[name]:
                sys.modules.setdefault(f"{_names[self.name]}.{child}", sys.modules[name])
        path = _names.get(self.name, "").partition(".")[2]
        if _paths.is_package(path):
            # A single file here may be a package of PyTorch.
            vars(module).setdefault("__path__", [])
        path += "."
        for below in [p for p in _paths.TABLE if p.startswith(path) and "." not in p[len(path):]]:
            if callable(vars(module).get(below[len(path):])):
                _give(sys.modules.setdefault(f"torch.{below}", import_module(_paths.TABLE[below])), below)


def _one_more(source, name):
    """A name of the table `_more.MORE`; names without a module are absent."""
    if source is not None:
        return getattr(import_module(source), name)
    from ptcore.compat.torch import _absent
    return _absent.one(name)


def _give(module, path):
    """Adds names of PyTorch's module to a module of ptcore: names found elsewhere here, and absent modules."""
    from ptcore.compat.torch._more import MORE
    more, has_modules = MORE.get(path), _paths.is_package(path)
    if more is None and not has_modules:
        return
    if module not in _given:
        before, names, packages = _given[module] = vars(module).get("__getattr__"), {}, []

        def __getattr__(name):
            if name in names:
                return _one_more(*names[name])
            if before is not None:
                try:
                    found = before(name)
                except AttributeError:
                    if name.startswith("__"):
                        raise
                else:
                    if type(found) is type(sys) and packages and found.__name__ == f"{module.__name__}.{name}":
                        import_module(f"torch.{packages[0]}.{name}")
                    return found
            for below in [f"{package}.{name}" for package in packages]:
                if below in _paths.ABSENT or target(below) is not None:
                    return import_module(f"torch.{below}")
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        module.__getattr__ = __getattr__
    _, names, packages = _given[module]
    for source, words in (more or {}).items():
        for name, _, other in (word.partition("=") for word in words.split()):
            names[name] = source, f"torch.{path}.{name}" if source is None else other or name
    if has_modules and path not in packages:
        packages.append(path)


# Module with added names -> (its earlier ``__getattr__``, name -> argument of `_one_more`, its paths as a package).
_given = {}
# Path below torch -> module of an absent part.
_made = {}
# Name of a module of ptcore -> its name below torch.
_names = {}


class _Absent:
    """Makes the module of a part of PyTorch that ptcore lacks."""

    def __init__(self, path):
        self.path = path

    def create_module(self, spec):
        from ptcore.compat.torch import _absent
        if self.path not in _made:
            _made[self.path] = _absent.Missing(f"torch.{self.path}")
        return _made[self.path]

    def exec_module(self, module):
        pass


def _spec(name, path, found):
    """The spec of an existing module, or of an absent one; notes additions to packages of ptcore."""
    package, _, child = path.rpartition(".")
    holder = sys.modules.get(f"torch.{package}" if name.startswith("torch.") else name.rpartition(".")[0])
    if package and holder is not None and (found is None or found != f"{holder.__name__}.{child}"):
        if child not in vars(holder):
            _added.append((holder, child, name))
    if found is None:
        return ModuleSpec(name, _Absent(path), is_package=True)
    if name.startswith("torch."):
        _names.setdefault(found, name)
    own = importlib.util.find_spec(found)
    spec = ModuleSpec(name, _Alias(found, path), origin=own.origin,
                      is_package=own.submodule_search_locations is not None)
    if spec.submodule_search_locations is not None:
        spec.submodule_search_locations[:] = own.submodule_search_locations
    return spec


class Additions:
    """At the end of ``sys.meta_path``: finds the additions of the table to packages of ptcore."""

    def find_spec(self, name, path=None, target_module=None):
        head, _, rest = name.partition(".")
        if head != "ptcore" or "." not in rest:
            return None
        above, _, child = name.rpartition(".")
        # The second is for modules that serve one of PyTorch's under another name.
        for found in (rest, f"{_names[above]}.{child}".partition(".")[2] if above in _names else ""):
            if found in _paths.TABLE or found in _paths.ABSENT:
                return _spec(name, found, _paths.TABLE.get(found))
        return None


class Finder:
    """At the front of ``sys.meta_path``: finds ``torch``, its submodules and its distribution."""

    def find_spec(self, name, path=None, target_module=None):
        head, _, rest = name.partition(".")
        if head == "torch":
            return self._find(name, rest) if rest else self._root()
        if name == "functorch":
            return ModuleSpec(name, _Alias(f"{HERE}._functorch", "_functorch.make_functional"))
        if name in STARTERS:
            return _spawn_spec(name, path)
        return None

    @staticmethod
    def _root():
        import ptcore
        spec = importlib.util.spec_from_file_location("torch", _root_file(),
                                                      submodule_search_locations=list(ptcore.__path__))
        return spec

    def _find(self, name, path):
        found = target(path)
        if found is not None:
            return _spec(name, path, found)
        if path in _paths.ABSENT:
            return _spec(name, path, None)
        # A file of ptcore must not be loaded a second time under torch's name.
        if any(PathFinder.find_spec(name, [place]) for place in getattr(sys.modules.get(name.rpartition(".")[0]),
                                                                        "__path__", ())):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

    def find_distributions(self, context=None):
        """The distribution ``torch``, for ``importlib.metadata``."""
        name = getattr(context, "name", None)
        if name is None or name.lower() == "torch":
            from ptcore.compat.torch import _distribution
            yield _distribution.Torch()

    def invalidate_caches(self):
        pass


finder, additions = Finder(), Additions()


def forget_additions():
    """Removes the table's additions from ptcore's packages."""
    for package, child, name in _added:
        vars(package).pop(child, None)
        sys.modules.pop(name, None)
    for module, (before, *_) in _given.items():
        if before is None:
            del module.__getattr__
        else:
            module.__getattr__ = before
    _added.clear()
    _given.clear()
    _names.clear()


# -- child processes -----------------------------------------------------------------------------------------

# Modules that prepare data for a new process: of the standard library, of joblib's processes, and of a copy that
# pickles more. Each is changed when it is imported; none is imported by this code.
STARTERS = ("multiprocessing.spawn", "joblib.externals.loky.backend.spawn", "loky.backend.spawn", "multiprocess.spawn")


class _Install:
    """Installs the hook in a child process when it is unpickled, as a part of the first data."""

    def __reduce__(self):
        places = [p for p in sys.path if isinstance(p, str)]
        text = (f"import sys\nsys.path += [p for p in {places!r} if p not in sys.path]\n"
                f"import {HERE}\n{HERE}.install()")
        return exec, (text, {})


def _preparation(standard):
    """A module's ``get_preparation_data`` that adds the hook to its result."""
    @functools.wraps(standard)
    def prepare(name, *args, **kwargs):
        data = standard(name, *args, **kwargs)
        data["ptcore_compat_torch"] = _Install()
        if name == "ignore":
            # The fork server would import the main file before it forks, but a main file with ``import torch`` must
            # wait.
            data.pop("init_main_from_path", None)
        return data

    prepare.standard = standard
    return prepare


def _patch(starter):
    if not hasattr(starter.get_preparation_data, "standard"):
        starter.get_preparation_data = _preparation(starter.get_preparation_data)


def _spawn_spec(name, path):
    """The spec of a starter module, whose loader changes it after the import."""
    spec = PathFinder.find_spec(name, path)
    if spec is not None:
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            if finder in sys.meta_path:
                _patch(module)

        spec.loader.exec_module = exec_module
    return spec


def follow_children():
    """Lets processes started from now on install the hook."""
    for name in STARTERS:
        if name in sys.modules:
            _patch(sys.modules[name])


def forget_children():
    """Undoes `follow_children`."""
    for name in STARTERS:
        starter = sys.modules.get(name)
        if starter is not None and hasattr(starter.get_preparation_data, "standard"):
            starter.get_preparation_data = starter.get_preparation_data.standard
