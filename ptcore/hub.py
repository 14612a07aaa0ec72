"""Models of a folder with a ``hubconf.py``, by the names of ``torch.hub``. Nothing is downloaded.

``list``, ``help`` and ``load`` read local folders (``source="local"``). ``load_state_dict_from_url`` loads files that
are already in the folder of checkpoints.
"""
import contextlib
import importlib.util
import os
import re
import sys
from urllib.parse import urlparse

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_folder = None
_CONFIG = "hubconf.py"
#: Matches the checksum in the name of a file.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")


def get_dir():
    """The folder of models and checkpoints: set by `set_dir`, ``$TORCH_HOME/hub``, or ``torch/hub`` in the cache."""
    return os.path.join(_get_torch_home(), "hub") if _folder is None else _folder


def _get_torch_home():
    """``$TORCH_HOME``, or ``torch`` in the folder of caches."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def set_dir(d):
    """Sets the folder that `get_dir` returns.

    Parameters
    ----------
    d : str or path
    """
    global _folder
    _folder = os.path.expanduser(d)


def _refuse(name, what):
    return NotImplementedError(f"hub.{name}: ptcore downloads nothing; {what}")


@contextlib.contextmanager
def _config(name, repo_or_dir, source):
    """The module ``hubconf``. Its folder is searched for modules until the block ends, since functions import as well.
    """
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise _refuse(name, f"get {repo_or_dir!r} yourself and pass its folder with source=\"local\"")
    folder = os.path.abspath(os.path.expanduser(repo_or_dir))
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location(_CONFIG, os.path.join(folder, _CONFIG))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for package in getattr(module, "dependencies", ()):
            if importlib.util.find_spec(package) is None:
                raise RuntimeError(f"Missing dependencies: {package}")
        yield module
    finally:
        if folder in sys.path:          # what it imports may have removed it
            sys.path.remove(folder)


def _entry(module, name):
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def list(github, force_reload=False, skip_validation=False, trust_repo="check", verbose=True, *, source="local"):
    """The names of the models of a folder.

    Parameters
    ----------
    github : str
        The folder.
    force_reload, skip_validation, trust_repo, verbose
        For downloads; not used.
    source : {"local"}
    """
    with _config("list", github, source if os.path.isdir(os.path.expanduser(github)) else "github") as module:
        return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo="check", *, source="local"):
    """The docstring of a model of a folder.

    Parameters
    ----------
    github : str
        The folder.
    model : str
    force_reload, skip_validation, trust_repo
        For downloads; not used.
    source : {"local"}
    """
    with _config("help", github, source if os.path.isdir(os.path.expanduser(github)) else "github") as module:
        return _entry(module, model).__doc__


def load(repo_or_dir, model, *args, source="github", trust_repo="check", force_reload=False, verbose=True,
         skip_validation=False, **kwargs):
    """The result of a function of a folder's ``hubconf.py``.

    Parameters
    ----------
    repo_or_dir : str
        The folder.
    model : str
        The name of the function.
    *args, **kwargs
        Its arguments.
    source : {"local"}
        ``"github"`` raises NotImplementedError.
    trust_repo, force_reload, verbose, skip_validation
        For downloads; not used.
    """
    with _config("load", repo_or_dir, source.lower()) as module:
        return _entry(module, model)(*args, **kwargs)


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Raises NotImplementedError: ptcore downloads nothing."""
    raise _refuse("download_url_to_file", f"put the file of {url} at {dst} yourself")


def load_state_dict_from_url(url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None,
                             weights_only=True):
    """The state dict of a file in the folder of checkpoints, found by its name in ``url``.

    Parameters
    ----------
    url : str
    model_dir : str, optional
        By default ``checkpoints`` in `get_dir`.
    map_location
        As of `load`.
    weights_only : bool, optional
        As of `load`. True by default, where PyTorch has False: no file is unpickled unless the caller asks for it.
    progress : bool, optional
        Not used.
    check_hash : bool, optional
        Whether the name's part behind the last ``-`` must be the beginning of the file's SHA256.
    file_name : str, optional
        The name, if it is another.

    Raises
    ------
    NotImplementedError
        If the file is not there: ptcore downloads nothing.
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    path = os.path.join(folder, file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(path):
        raise _refuse("load_state_dict_from_url", f"put the file of {url} at {path} yourself")
    if check_hash:
        _check_hash(path)
    from ptcore.serialization import load as read
    return read(path, map_location=map_location, weights_only=weights_only)


def _check_hash(path):
    import hashlib
    import re
    prefix = re.search(r"-([a-f0-9]*)\.", os.path.basename(path))
    if prefix is None:
        return
    with open(path, "rb") as f:
        digest = hashlib.file_digest(f, "sha256").hexdigest()
    if not digest.startswith(prefix[1]):
        raise RuntimeError(f'invalid hash value (expected "{prefix[1]}", got "{digest}")')
