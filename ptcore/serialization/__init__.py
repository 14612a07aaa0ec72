"""Saving and loading of tensors nested in plain data.

The suffix chooses the format: ``.safetensors`` (through the safetensors library, imported at first use), ``.npz``
(NumPy), anything else PyTorch's, which torch reads and whose files are read here without it. Nothing in a file is run:
pickles are read by a reader of their own that knows a fixed list of names.
"""

import os
from typing import Any

import ptcore
from ptcore._errors import DeviceError, OutOfMemoryError
from ptcore.serialization._constructors import (
    TypedStorage,
    add_safe_globals,
    allow_pickle,
    clear_safe_globals,
    get_safe_globals,
    pickle_is_allowed,
    safe_globals,
)
from ptcore.serialization._files import CallerError, CorruptFileError, placer, write_atomically

__all__ = ["CorruptFileError", "TypedStorage", "add_safe_globals", "allow_pickle", "clear_safe_globals",
           "get_safe_globals", "load", "safe_globals", "save"]

_INDEX = ".safetensors.index.json"


def save(obj, f, *, max_shard_size=None, _use_new_zipfile_serialization=True) -> None:
    """Save tensors nested in plain data.

    A file appears under its name only when it is complete and on the disk: an interrupted call leaves an older file of
    that name untouched.

    Parameters
    ----------
    obj : object
        Tensors inside dictionaries, lists and tuples, with numbers, strings, None, dtypes, devices and sizes, as the
        ``state_dict`` of modules, optimisers and schedules are. NumPy scalars are stored as Python numbers.

        In PyTorch's format tensors that share memory share it again when they are loaded; strides, ``requires_grad``
        and Parameters are kept, NumPy arrays, sets and bytes may be among them. In the other formats a tensor's
        values, shape, dtype and device are kept, and a tensor that occurs twice is stored twice.
    f : str, os.PathLike or file
        Path; ``.safetensors`` and ``.npz`` at its end choose these formats, all else is PyTorch's, and so is what is
        written to a file that is open.
    max_shard_size : int or str, optional
        For ``.safetensors``: the most bytes of tensors in one file, as ``"5GB"`` or a number. If they need more, they
        are written to several files ``name-00001-of-00002.safetensors`` and so on, with an index
        ``name.safetensors.index.json`` that :func:`load` takes.
    _use_new_zipfile_serialization : bool, default: True
        False writes the layout of before PyTorch 1.6.

    Raises
    ------
    ValueError
        If `obj` contains itself or is nested more than 100 levels deep, or, in the formats with a suffix, holds a
        tensor without memory (``meta``).
    TypeError
        If `obj` holds anything else.
    ImportError
        If the safetensors library is needed and not installed.

    Examples
    --------
    >>> import os, tempfile, ptcore
    >>> path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")
    >>> ptcore.save({"epoch": 3, "model": {"w": ptcore.ones(2)}}, path)
    >>> ptcore.load(path)["epoch"]
    3
    """
    path, suffix = _place_of("save", f)
    if max_shard_size is not None and suffix != ".safetensors":
        raise ValueError("save: max_shard_size is for .safetensors files")
    if suffix in (".npz", ".safetensors"):
        from ptcore.serialization import _arrays, _sharded

        tensors, header = _arrays.describe(obj)
        if suffix == ".npz":
            write_atomically(path, lambda file: _arrays.write_npz(file, tensors, header))
        else:
            _sharded.write(path, tensors, header, max_shard_size)
        return
    from ptcore.serialization import _torch

    write = _torch.write_zip if _use_new_zipfile_serialization else _torch.write_stream
    if path is None:
        write(f, obj)
        f.flush()
    else:
        write_atomically(path, lambda file: write(file, obj))


def load(f, map_location=None, *, weights_only=None, mmap=None, encoding="utf-8") -> Any:
    """Load what :func:`save` or ``torch.save`` wrote, or the named arrays of another program.

    Parameters
    ----------
    f : str, os.PathLike or file
        Path, ending as for :func:`save`, or in ``.safetensors.index.json`` for what is spread over several files; or a
        file with PyTorch's format that is open, which is read from where it stands.
    map_location : device, str, dict or function, optional
        Where to put the tensors: one device for all; a dictionary from the name of the saved device to another; or a
        function of (storage on the CPU, name of the saved device) that returns a storage, a device, or None for the
        saved one. By default they are put where they were.
    weights_only : bool, default: True
        False unpickles what no list of names holds, which runs the code that the file names. It raises unless
        :func:`allow_pickle` or the environment variable ``PTCORE_ALLOW_PICKLE=1`` allows that.
    mmap : bool, default: False
        For PyTorch's archives at a path: the tensors lie over the file, which is read as they are used. Writing to
        them does not change it. Checksums are not compared.
    encoding : str, default: "utf-8"
        Of texts in files that Python 2 wrote; "bytes" leaves them bytes.

    Returns
    -------
    object
        Of the same structure as was saved. For an ``.npz`` or ``.safetensors`` file without a header an ``OrderedDict``
        of tensors, whose attribute ``metadata`` holds the text metadata of a safetensors file.

    Raises
    ------
    CorruptFileError
        If the file is truncated, damaged or made to do harm: a RuntimeError and a ValueError.
    pickle.UnpicklingError
        If the file names a class or a function that is not on the list; see :func:`add_safe_globals`.
    NotImplementedError
        If it holds what there is not here: quantised, sparse and nested tensors, TorchScript.
    RuntimeError
        If a tensor was saved on a device that is not here, or `weights_only` is False and pickles are not allowed.
    FileNotFoundError
        If there is no such file.
    ImportError
        If the safetensors library is needed and not installed.

    Examples
    --------
    >>> import os, tempfile, ptcore
    >>> path = os.path.join(tempfile.mkdtemp(), "x.npz")
    >>> ptcore.save([ptcore.arange(2), "a"], path)
    >>> ptcore.load(path)[0].tolist()
    [0, 1]
    """
    path, suffix = _place_of("load", f)
    place = placer(map_location)
    if suffix is None:
        return _load_torch(f, path, map_location, place, weights_only is not False, bool(mmap), encoding)
    if mmap:
        raise ValueError("load: mmap is for PyTorch's files")
    from ptcore.serialization import _arrays, _sharded

    if suffix != ".npz":
        _arrays.import_safetensors()
    read = {".npz": _arrays.read_npz, ".safetensors": _arrays.read_safetensors, _INDEX: _sharded.read}[suffix]
    with open(path, "rb") as file:
        try:
            return _arrays.restore(*read(file), place)
        except CallerError as error:
            raise error.error from None
        except (DeviceError, OutOfMemoryError, FileNotFoundError):
            raise
        except Exception as error:
            raise _corrupt(path, suffix, error) from error


def _load_torch(f, path, map_location, place, weights_only, mmap, encoding):
    import pickle

    from ptcore.serialization import _torch

    if not weights_only and not pickle_is_allowed():
        raise RuntimeError(
            "load: weights_only=False runs whatever code the file names. If you trust it, call "
            "ptcore.serialization.allow_pickle(True) or set PTCORE_ALLOW_PICKLE=1; to allow single classes and "
            "functions, keep weights_only=True and use ptcore.serialization.add_safe_globals")
    if mmap and path is None:
        raise ValueError("load: mmap needs a path, not an open file")
    meta = isinstance(map_location, (str, ptcore.device)) and ptcore.device(map_location).type == "meta"
    options = _torch.Options(place, meta, mmap, weights_only, encoding)
    file = _torch.seekable(f) if path is None else open(path, "rb")
    name = getattr(file, "name", "the file") if path is None else path
    try:
        return _torch.read(file, options)
    except CallerError as error:
        raise error.error from None
    except (DeviceError, MemoryError, OSError):
        raise
    except Exception as error:
        if isinstance(error, NotImplementedError) or (weights_only and isinstance(error, pickle.UnpicklingError)):
            raise type(error)(f"load: {name}: {error}") from error
        raise _corrupt(name, "PyTorch", error) from error
    finally:
        if path is not None:
            file.close()


def _corrupt(name, kind, error):
    return CorruptFileError(f"load: {name} is truncated or not a valid {kind} file: {error}")


def _place_of(op, f):
    """The path of `f` and the suffix that names a format: no path for an open file, no suffix for PyTorch's."""
    if not isinstance(f, (str, os.PathLike)):
        if not hasattr(f, "write" if op == "save" else "read"):
            raise TypeError(f"{op}: f must be a path or a file, got {type(f).__name__}")
        return None, None
    path = os.fspath(f)
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    lower = os.path.basename(path).lower()
    for suffix in (".npz", ".safetensors", _INDEX):
        if lower.endswith(suffix) and lower != suffix:
            if op == "save" and suffix == _INDEX:
                raise ValueError("save: an index is written beside the files it lists: name the .safetensors file")
            return path, suffix
    return path, None
