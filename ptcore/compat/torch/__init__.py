"""ptcore under the name ``torch``, for the programs of one process.

``install()`` lets ``import torch`` find ptcore; ``python -m ptcore.compat.torch script.py ...`` installs it for an
unchanged program. Modules are the same objects under both names: ``torch.nn is ptcore.nn``. ``torch`` itself is a
separate module, since its ``__version__`` is that of the release whose names ptcore follows.

Parts of PyTorch that ptcore lacks (``torch.distributed``, ``torch.onnx`` and others) can be imported, and raise
NotImplementedError where they are used. Processes started by ``multiprocessing`` or joblib install the name before they
unpickle.

A program begins so::

    from ptcore.compat.torch import install
    install()
    import torch
"""
import sys

from ptcore import _random
from ptcore._dtype import show_as
from ptcore.compat.torch import _finder

__all__ = ["install", "is_installed", "uninstall"]


def install():
    """Lets ``import torch`` find ptcore in this process, and in those that ``multiprocessing`` starts from it.

    The random numbers of the CPU become PyTorch's (``ptcore.random.use``). A second call does nothing.

    Raises
    ------
    RuntimeError
        If PyTorch itself was imported before: the two cannot share a name.
    """
    found = sys.modules.get("torch")
    if found is not None and not _finder.is_ours(found):
        raise RuntimeError("ptcore.compat.torch.install: PyTorch itself is imported already "
                           f"({getattr(found, '__file__', None)}); install before the first import of torch")
    if not is_installed():
        sys.meta_path.insert(0, _finder.finder)
        sys.meta_path.append(_finder.additions)
        _finder.follow_children()
        show_as("torch")
        _finder.finder.kind_before = _random.kind_in_use()
        _random.use_kind("pytorch")


def uninstall():
    """Removes the name ``torch``. Modules that programs have imported stay as they are."""
    if is_installed():
        sys.meta_path.remove(_finder.finder)
        sys.meta_path.remove(_finder.additions)
        _finder.forget_children()
        show_as("ptcore")
        _random.use_kind(_finder.finder.kind_before)
        for name in [n for n in sys.modules if n in ("torch", "functorch") or n.startswith("torch.")]:
            del sys.modules[name]
        _finder.forget_additions()


def is_installed():
    """Whether ``import torch`` finds ptcore."""
    return _finder.finder in sys.meta_path
