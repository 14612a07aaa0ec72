"""Saving and loading of tensors nested in plain data.

The suffix chooses the format: ``.safetensors``, ``.npz`` (NumPy), or for any other suffix PyTorch's format, which torch
reads and whose files are read here without torch. Nothing in a file is run: the package has its own reader of pickles,
which accepts a fixed list of names.
"""

import io
import os
from typing import Any

import ptcore
from ptcore._atomic import write_atomically
from ptcore._errors import DeviceError
from ptcore.serialization._constructors import (
    add_safe_globals,
    allow_pickle,
    clear_safe_globals,
    get_safe_globals,
    pickle_is_allowed,
    safe_globals,
)
from ptcore.serialization._options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    register_package,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from ptcore.serialization.files import CallerError, CorruptFileError, Source, placer
from ptcore.storage import TypedStorage

#: The types of ``map_location`` and of file names, for annotations that programs evaluate.
MAP_LOCATION = object
FILE_LIKE = object

DEFAULT_PROTOCOL = 2                # protocol of pickles in files

__all__ = ["CorruptFileError", "LoadEndianness", "TypedStorage", "add_safe_globals", "allow_pickle",
           "clear_safe_globals", "get_crc32_options", "get_default_load_endianness", "get_default_mmap_options",
           "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load", "register_package", "safe_globals", "save",
           "set_crc32_options", "set_default_load_endianness", "set_default_mmap_options", "skip_data"]

_INDEX = ".safetensors.index.json"


def save(obj, f, pickle_module=None, pickle_protocol=2, _use_new_zipfile_serialization=True,
         _disable_byteorder_record=False, *, max_shard_size=None) -> None:
    """Save tensors nested in plain data.

    A file appears under its name only when it is complete and on the disk: an interrupted call leaves an older file of
    that name untouched.

    Parameters
    ----------
    obj : object
        Tensors inside dictionaries, lists and tuples, with numbers, strings, None, dtypes, devices and sizes, as the
        ``state_dict`` of modules, optimisers and schedules are. NumPy scalars are stored as Python numbers.
        In PyTorch's format also whole modules, optimisers, schedules and datasets, and objects of plain classes, which
        ``load(..., weights_only=False)`` makes again.

        In PyTorch's format tensors that share memory share it again when they are loaded; strides, ``requires_grad``
        and Parameters are kept, NumPy arrays, sets and bytes may be among them. In the other formats a tensor's
        values, shape, dtype and device are kept, and a tensor that occurs twice is stored twice.
    f : str, os.PathLike or file
        Path. The suffixes ``.safetensors`` and ``.npz`` choose these formats; for any other suffix, and for an open
        file, the format is PyTorch's.
    pickle_module : module, optional
        Only :mod:`pickle` is taken, and not used: pickles are written by own code.
    pickle_protocol : int, default: 2
        From 2 to 5: what PyTorch's files claim to be. Their opcodes are those of protocol 2 all the same.
    max_shard_size : int or str, optional
        For ``.safetensors``: the most bytes of tensors in one file, as ``"5GB"`` or a number. If they need more, they
        are written to several files ``name-00001-of-00002.safetensors`` and so on, with an index
        ``name.safetensors.index.json`` that :func:`load` takes.
    _use_new_zipfile_serialization : bool, default: True
        False writes the layout of before PyTorch 1.6.
    _disable_byteorder_record : bool, default: False
        True leaves out the entry of an archive that names the byte order.

    Raises
    ------
    ValueError
        If `obj` is nested more than 100 levels deep, or, in the formats with a suffix, contains itself or holds a
        tensor without memory (``meta``).
    TypeError
        If `obj` holds anything else.

    Examples
    --------
    >>> import os, tempfile, ptcore
    >>> path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")
    >>> ptcore.save({"epoch": 3, "model": {"w": ptcore.ones(2)}}, path)
    >>> ptcore.load(path)["epoch"]
    3
    """
    path, suffix = _place_of("save", f)
    if pickle_module is not None and getattr(pickle_module, "__name__", None) != "pickle":
        raise ValueError(f"save: pickle_module must be pickle or None, got {pickle_module!r}")
    if type(pickle_protocol) is not int or not 2 <= pickle_protocol <= 5:
        raise ValueError(f"save: pickle_protocol must be in [2, 5], got {pickle_protocol!r}")
    if max_shard_size is not None and suffix != ".safetensors":
        raise ValueError("save: max_shard_size is for .safetensors files")
    if suffix in (".npz", ".safetensors"):
        from ptcore.serialization import _npz, _sharded
        from ptcore.serialization import arrays as _arrays

        tensors, header = _arrays.describe(obj)
        if suffix == ".npz":
            write_atomically(path, lambda file: _npz.write(file, tensors, header))
        else:
            _sharded.write(path, tensors, header, max_shard_size)
        return
    from ptcore.serialization import _torch

    layout = _torch.write_zip if _use_new_zipfile_serialization else _torch.write_stream

    def write(file):
        layout(file, obj, pickle_protocol, not _disable_byteorder_record)

    if path is None:
        write_open(f, write)
    else:
        write_atomically(path, write)


def write_open(f, write):
    """Calls ``write`` with an open file, and makes sure that all of the data reach it."""
    if isinstance(f, io.RawIOBase):  # its ``write`` may take a part of the data
        buffered = io.BufferedWriter(f)
        try:
            write(buffered)
        finally:
            buffered.detach()
    else:
        write(f)
        if hasattr(f, "flush"):
            f.flush()


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, encoding="utf-8", errors="strict",
         fix_imports=True) -> Any:
    """Load a file of :func:`save` or ``torch.save``, or the named arrays of another program.

    Parameters
    ----------
    f : str, os.PathLike or file
        Path, with a suffix as for :func:`save`, or ``.safetensors.index.json`` for tensors spread over several files;
        or an open file in PyTorch's format, which is read from its present position on.
    map_location : device, str, dict or function, optional
        Where to put the tensors: one device for all; a dictionary from the name of the saved device to another; or a
        function of (storage on the CPU, name of the saved device) that returns a storage, a device, or None for the
        saved one. By default they are put where they were.
    pickle_module : module, optional
        :mod:`pickle` is the same as ``weights_only=False``. The ``Unpickler`` of another module reads the file only
        after :func:`allow_pickle`.
    weights_only : bool, default: True
        False also makes objects of classes of modules that the program has imported: modules (``nn.Module``, PyTorch's
        own classes among them), optimizers, schedules and datasets, dataclasses and other plain classes, named tuples,
        enums, subclasses of dict and list. An object gets its attributes; no function that the file names is called,
        neither ``__init__`` nor ``__setstate__``. What a loaded object does when it is called is the caller's risk.

        After :func:`allow_pickle`, or with the environment variable ``PTCORE_ALLOW_PICKLE=1``, Python's unpickler reads
        the file instead, which runs whatever code the file names.
    mmap : bool, default: False
        For a path: the tensors are mapped over the file and read when they are used. Writing to them does not change
        the file, and the file may be replaced or removed (but not truncated). Checksums are not compared. Arrays that
        are compressed, of foreign byte order, or unaligned in the file are read as usual; PyTorch's files of before 1.6
        are refused.
    encoding : str, default: "utf-8"
        Of texts in files that Python 2 wrote; "bytes" leaves them bytes.
    errors : str, default: "strict"
        What happens to bytes of such texts that are not valid, as for :meth:`bytes.decode`.
    fix_imports : bool, default: True
        Whether names of Python 2's modules in pickles of protocol 2 mean those of Python 3.

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
        If the file names a class or a function that is not on the list, see :func:`add_safe_globals`; with
        ``weights_only=False``, a class whose objects are not made.
    NotImplementedError
        If it holds what there is not here: quantised, sparse and nested tensors, TorchScript.
    RuntimeError
        If a tensor was saved on a device that is not here, or an unpickler is not allowed.
    FileNotFoundError
        If there is no such file.

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
    meta = isinstance(map_location, (str, ptcore.device)) and ptcore.device(map_location).type == "meta"
    if suffix is None:
        objects, module = _unpickling(weights_only, pickle_module)
        if mmap and path is None:
            raise ValueError("load: mmap needs a path, not an open file")
        from ptcore.serialization import _torch

        texts = {"encoding": encoding, "errors": errors, "fix_imports": fix_imports}
        options = _torch.Options(place, meta, bool(mmap), module, texts, objects)
        return _read_torch("load", f, path, lambda file: _torch.read(file, options), module is None)
    from ptcore.serialization import _npz, _sharded, safetensors_files
    from ptcore.serialization import arrays as _arrays

    with _opened(path) as file:
        try:
            if suffix == _INDEX:
                found = _sharded.read(file, mmap, meta)
            else:
                found = (_npz if suffix == ".npz" else safetensors_files).read(file, Source(file, mmap, meta))
            return _arrays.restore(*found, place)
        except Exception as error:
            _fail("load", error, path, suffix)
        except CallerError as error:
            raise error.error from None


def get_unsafe_globals_in_checkpoint(f) -> list:
    """The names in a file of PyTorch's format for which :func:`load` would refuse it. Nothing is made or run.

    Parameters
    ----------
    f : str, os.PathLike or file
        As for :func:`load`.

    Returns
    -------
    list of str
        Each ``module.name``, in the order of the file.

    Raises
    ------
    CorruptFileError
        If the file is truncated, damaged or none of PyTorch's.

    Examples
    --------
    >>> import argparse, io, ptcore
    >>> file = io.BytesIO()
    >>> with ptcore.serialization.safe_globals([argparse.Namespace]):
    ...     ptcore.save({"args": argparse.Namespace(lr=0.1), "w": ptcore.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> ptcore.serialization.get_unsafe_globals_in_checkpoint(file)
    ['argparse.Namespace']
    """
    op = "get_unsafe_globals_in_checkpoint"
    path, suffix = _place_of(op, f)
    if suffix is not None:
        return []
    from ptcore.serialization import _torch

    return _read_torch(op, f, path, _torch.read_names)


def _unpickling(weights_only, module):
    """(whether objects are made, the module whose unpickler runs what the file names, or None) for a call of load."""
    import pickle

    if weights_only is None:
        forced = os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in ("1", "y", "yes", "true")
        weights_only = module is None and not forced
    if weights_only:
        if module is not None:
            raise RuntimeError("load: pickle_module unpickles more than weights, weights_only=True excludes it")
        return False, None
    if pickle_is_allowed():
        return True, pickle if module is None else module
    if module not in (None, pickle):
        raise RuntimeError(
            f"load: the unpickler of {module.__name__} runs whatever code the file names. If you trust it, call "
            "ptcore.serialization.allow_pickle(True) or set PTCORE_ALLOW_PICKLE=1; without it, weights_only=False "
            "makes objects of the classes that the program has imported, and runs nothing")
    return True, None


def _opened(path):
    """Opens a file for reading. Python 3.14's default buffer has 128 KiB, of which a caller may need little."""
    return open(path, "rb", buffering=8192)


def _read_torch(op, f, path, read, safe=True):
    """Returns ``read(file)`` for a file in PyTorch's format; errors name the file."""
    from ptcore.serialization import _torch

    file = _torch.seekable(f) if path is None else _opened(path)
    name = getattr(file, "name", None) if path is None else path
    try:
        return read(file)
    except Exception as error:
        _fail(op, error, name, "PyTorch", safe)
    except CallerError as error:
        raise error.error from None
    finally:
        if path is not None:
            file.close()


def _fail(op, error, name, kind, safe=True):
    """Raises, within its handler, an exception of a reader as the caller sees it."""
    import pickle

    if isinstance(error, (DeviceError, MemoryError, OSError)):  # these errors are not about the file
        raise
    if isinstance(error, NotImplementedError) or (safe and isinstance(error, pickle.UnpicklingError)):
        raise type(error)(f"{op}: {name}: {error}" if name else f"{op}: {error}") from error
    raise CorruptFileError(f"{op}: {name or 'the file'} is truncated or not a valid {kind} file: {error}") from error


def _place_of(op, f):
    """The path of `f` and its suffix. An open file has no path, and PyTorch's format has no suffix."""
    if not isinstance(f, (str, os.PathLike)):
        if not hasattr(f, "write" if op == "save" else "read"):
            raise TypeError(f"{op}: f must be a path or a file, got {type(f).__name__}")
        if isinstance(f, io.TextIOBase):
            raise TypeError(f"{op}: f must be a file that is open in binary mode, got a {type(f).__name__} of text")
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
