"""Saving and loading of tensors nested in plain data, without pickle.

The suffix chooses the format: ``.safetensors`` (through the safetensors
library, imported at first use) or ``.npz`` (NumPy). Both hold named arrays; the
nesting is described by a JSON header, "ptcore" in the metadata of a safetensors
file or the array ``__ptcore__`` (UTF-8 bytes) of an npz file. A header is
``{"version": 1, "root": node}`` where a node is

- null, true, false, an integer, a finite float or a string: itself;
- a list: its nodes;
- an object with one "kind" key: ``{"float": "nan"}``, ``{"tuple": [node, ...]}``,
  ``{"dict": [[node, node], ...]}`` (also "OrderedDict", "Counter"),
  ``{"Size": [int, ...]}``, ``{"dtype": name}``, ``{"device": name}``;
- ``{"tensor": name}``, with "dtype" where the array's own differs (bfloat16 in
  npz, complex128 in safetensors) and "device" where it is not the CPU.

A dictionary with names of arrays as keys is stored under these names, so other
programs read it; a file without a header loads as such a dictionary.
"""

import math
import os
from collections import Counter, OrderedDict
from typing import Any

import ptcore
from ptcore import Tensor

__all__ = ["load", "save"]

_FORMATS = (".safetensors", ".npz")
_HEADER = "__ptcore__"
_MAX_DEPTH = 100
_MAPPINGS = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}
_DTYPES = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 "
    "float16 bfloat16 float32 float64 complex64 complex128"
).split()
_SAFETENSORS_DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}


def save(obj, f) -> None:
    """Save tensors nested in plain data.

    The file appears under its name only when it is complete: an interrupted
    call leaves an older file of that name untouched.

    Parameters
    ----------
    obj : object
        Tensors inside dictionaries, lists and tuples, with numbers, strings,
        None, dtypes, devices and sizes, as the ``state_dict`` of modules,
        optimisers and schedules are. A tensor's values, shape, dtype and device
        are kept; ``requires_grad`` is not, and a tensor that occurs twice is
        stored twice. NumPy scalars are stored as Python numbers.
    f : str or os.PathLike
        Path, ending in ``.safetensors`` or ``.npz``.

    Raises
    ------
    ValueError
        If the suffix names no format, or `obj` contains itself, is nested more
        than 100 levels deep or holds a tensor without memory (``meta``).
    TypeError
        If `obj` holds anything else.
    ImportError
        If the safetensors library is needed and not installed.

    Examples
    --------
    >>> import os, tempfile, ptcore
    >>> path = os.path.join(tempfile.mkdtemp(), "checkpoint.npz")
    >>> ptcore.save({"epoch": 3, "model": {"w": ptcore.ones(2)}}, path)
    >>> ptcore.load(path)["epoch"]
    3
    """
    path, suffix = _path("save", f)
    flat = _Flattener()
    root = flat.node(obj, "", 0)
    metadata = getattr(obj, "_metadata", None)
    header = {"version": 1, "root": root}
    if isinstance(obj, OrderedDict) and metadata is not None:
        header["metadata"] = flat.node(metadata, "_metadata", 0)
    write = _write_npz if suffix == ".npz" else _write_safetensors
    _write_atomically(path, lambda file: write(file, flat.tensors, header))


def load(f, map_location=None) -> Any:
    """Load what :func:`save` wrote, or the named arrays of a foreign file.

    Parameters
    ----------
    f : str or os.PathLike
        Path, ending in ``.safetensors`` or ``.npz``.
    map_location : device, str or dict, optional
        Where to put the tensors: one device for all, or a dictionary from the
        name of the saved device to another; by default where they were.

    Returns
    -------
    object
        Of the same structure as was saved. For a file without a header an
        ``OrderedDict`` of tensors, whose attribute ``metadata`` holds the text
        metadata of a safetensors file.

    Raises
    ------
    ValueError
        If the suffix names no format, or the file is truncated or not valid.
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
    path, suffix = _path("load", f)
    locate = _locator(map_location)
    read = _read_npz if suffix == ".npz" else _read_safetensors
    if suffix == ".safetensors":
        _import_safetensors()
    with open(path, "rb") as file:
        try:
            arrays, header, metadata = read(file)
            if header is None:
                result = OrderedDict(
                    (name, _tensor(entry)) for name, entry in arrays.items()
                )
                result.metadata = metadata
            else:
                result = _unflatten(header, arrays)
        except Exception as error:
            raise ValueError(
                f"load: {path} is truncated or not a valid {suffix} file: {error}"
            ) from error
    return _place(result, header, locate)


def _path(op, f):
    if not isinstance(f, (str, os.PathLike)):
        raise TypeError(f"{op}: f must be a path, got {type(f).__name__}")
    path = os.fspath(f)
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in _FORMATS:
        raise ValueError(
            f"{op}: the suffix of the path must be one of {', '.join(_FORMATS)}, "
            f"got {suffix!r} in {path}"
        )
    return path, suffix


def _name_of(dtype):
    return str(dtype).rpartition(".")[2]


class _Flattener:
    """Turns nested data into a tree of JSON nodes and a dictionary of tensors."""

    def __init__(self):
        self.tensors = {}
        self._open = set()

    def node(self, value, path, depth):
        """Node of `value`, which stands at `path` below the root."""
        if value is None or type(value) in (bool, int, str):
            return value
        if isinstance(value, Tensor):
            return self._tensor(value, path)
        cls = type(value)
        if cls.__module__ == "numpy" and hasattr(value, "dtype") and not value.shape:
            value = value.item()
            cls = type(value)
            if cls in (bool, int, str):
                return value
        if isinstance(value, float):
            value = float(value)
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, ptcore.Size):
            return {"Size": list(value)}
        if isinstance(value, ptcore.dtype):
            return {"dtype": _name_of(value)}
        if isinstance(value, ptcore.device):
            return {"device": str(value)}
        if cls in (list, tuple) or cls in _MAPPINGS.values():
            return self._container(value, cls, path, depth)
        where = f" at {path!r}" if path else ""
        raise TypeError(
            "save: only tensors, numbers, strings, None, dictionaries, lists and "
            f"tuples can be saved, got {cls.__name__}{where}"
        )

    def _container(self, value, cls, path, depth):
        if id(value) in self._open:
            raise ValueError(f"save: the {cls.__name__} at {path!r} contains itself")
        if depth >= _MAX_DEPTH:
            raise ValueError(
                f"save: data may be nested {_MAX_DEPTH} levels deep at most"
            )
        self._open.add(id(value))

        def below(key, item):
            return self.node(item, f"{path}.{key}" if path else str(key), depth + 1)

        if cls in (list, tuple):
            nodes = [below(i, item) for i, item in enumerate(value)]
            node = nodes if cls is list else {"tuple": nodes}
        else:
            for key in value:
                if isinstance(key, Tensor):
                    raise TypeError(
                        f"save: a key of the {cls.__name__} at {path!r} is a tensor"
                    )
            pairs = [
                [self.node(key, path, depth + 1), below(key, item)]
                for key, item in value.items()
            ]
            node = {cls.__name__: pairs}
        self._open.remove(id(value))
        return node

    def _tensor(self, tensor, path):
        if tensor.is_meta:
            raise ValueError(
                f"save: the tensor at {path!r} is on meta and has no values"
            )
        base = name = path or "data"
        tries = 1
        while name in self.tensors or name == _HEADER:
            name = f"{base}#{tries}"
            tries += 1
        self.tensors[name] = tensor.detach()
        node = {"tensor": name, "dtype": _name_of(tensor.dtype)}
        if tensor.device.type != "cpu":
            node["device"] = str(tensor.device)
        return node


def _array(tensor):
    """Contiguous NumPy array of `tensor`; bfloat16 as uint16 of the same bits."""
    import numpy as np

    tensor = tensor.cpu().contiguous()
    if tensor.dtype == ptcore.bfloat16:
        tensor = tensor.view(ptcore.uint16)
    return np.ascontiguousarray(tensor.numpy()).reshape(tuple(tensor.shape))


def _tensor(entry, dtype=None):
    """Tensor of an entry of a file, checked to be of `dtype` where that is given.

    An entry is an array and the name of the dtype that its bits mean.
    """
    import numpy as np

    array, stored = entry
    if dtype == "complex128" and stored == "float64":
        if array.shape[-1:] != (2,):
            raise ValueError(f"complex128 needs a last size of 2, got {array.shape}")
        array = np.ascontiguousarray(array).view(np.complex128)[..., 0]
    elif dtype == "bfloat16" and stored == "uint16":
        stored = dtype
    elif dtype is not None and dtype != stored:
        raise ValueError(f"expected an array of {dtype}, got {stored}")
    if stored not in _DTYPES:
        raise ValueError(f"unsupported dtype {stored}")
    array = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
    tensor = ptcore.from_numpy(array)
    return tensor.view(ptcore.bfloat16) if stored == "bfloat16" else tensor


def _locator(map_location):
    """Function from the name of the saved device to the one to load to."""
    if map_location is None:
        return lambda saved: saved
    if isinstance(map_location, dict):
        table = {str(k): str(v) for k, v in map_location.items()}
        return lambda saved: table.get(saved, saved)
    if isinstance(map_location, (str, ptcore.device)):
        device = str(ptcore.device(map_location))
        return lambda saved: device
    raise TypeError(
        "load: map_location must be a device, a str, a dict or None, got "
        f"{type(map_location).__name__}"
    )


class _Placed:
    """A tensor read from a file and the device it was saved from."""

    def __init__(self, tensor, device):
        self.tensor, self.device = tensor, device


def _unflatten(header, arrays):
    """The saved object, with `_Placed` in place of tensors."""
    if not isinstance(header, dict) or header.get("version") != 1:
        raise ValueError("unknown version of the header")
    result = _value(header["root"], arrays)
    if "metadata" in header:
        result._metadata = _value(header["metadata"], arrays)
    return result


def _value(node, arrays):
    if isinstance(node, list):
        return [_value(n, arrays) for n in node]
    if not isinstance(node, dict):
        return node
    if "tensor" in node:
        tensor = _tensor(arrays[node["tensor"]], node.get("dtype"))
        return _Placed(tensor, node.get("device", "cpu"))
    ((kind, content),) = node.items()
    if kind == "float":
        return float(content)
    if kind == "tuple":
        return tuple(_value(n, arrays) for n in content)
    if kind in _MAPPINGS:
        mapping = _MAPPINGS[kind]()
        for key, item in content:
            mapping[_value(key, arrays)] = _value(item, arrays)
        return mapping
    if kind == "Size":
        return ptcore.Size(content)
    if kind == "dtype" and content in _DTYPES:
        return getattr(ptcore, content)
    if kind == "device":
        return ptcore.device(content)
    raise ValueError(f"unknown entry {kind!r} in the header")


def _place(value, header, locate):
    """`value` with its tensors on their devices."""
    if isinstance(value, _Placed):
        device = locate(value.device)
        return value.tensor if device == "cpu" else value.tensor.to(device)
    if header is None and isinstance(value, Tensor):
        device = locate("cpu")
        return value if device == "cpu" else value.to(device)
    if isinstance(value, dict):
        for key in value:
            value[key] = _place(value[key], header, locate)
        return value
    if type(value) is list:
        return [_place(v, header, locate) for v in value]
    if type(value) is tuple:
        return tuple(_place(v, header, locate) for v in value)
    return value


def _write_atomically(path, write):
    """Call ``write(file)`` on a file that takes the name `path` when complete."""
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with open(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    if os.name == "posix":  # the new name is on the disk once the folder is
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _header_text(header):
    import json

    return json.dumps(header, allow_nan=False, separators=(",", ":"))


def _write_npz(file, tensors, header):
    import zipfile

    import numpy as np

    entries = {name: _array(tensor) for name, tensor in tensors.items()}
    entries[_HEADER] = np.frombuffer(_header_text(header).encode(), np.uint8)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in entries.items():
            info = zipfile.ZipInfo(f"{name}.npy")  # no time: equal data, equal bytes
            with archive.open(info, "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def _read_npz(file):
    import json
    import zipfile

    import numpy as np

    arrays = {}
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            with archive.open(info) as entry:
                array = np.lib.format.read_array(entry, allow_pickle=False)
                if entry.read(1):
                    raise ValueError(f"{info.filename} is longer than its array")
            arrays[info.filename.removesuffix(".npy")] = array, array.dtype.name
    header = arrays.pop(_HEADER, None)
    if header is not None:
        header = json.loads(header[0].astype(np.uint8, casting="equiv").tobytes())
    return arrays, header, {}


def _import_safetensors():
    try:
        import safetensors
    except ImportError as error:
        raise ImportError(
            "the safetensors library is needed for .safetensors files: pip install "
            "ptcore[files] (.npz files need nothing)"
        ) from error
    return safetensors


def _write_safetensors(file, tensors, header):
    _import_safetensors()
    import safetensors.numpy

    arrays = {}
    for name, tensor in tensors.items():
        array = _array(tensor)
        if tensor.dtype == ptcore.bfloat16:
            import ml_dtypes

            array = array.view(ml_dtypes.bfloat16)
        elif tensor.dtype == ptcore.complex128:
            array = array.reshape(*array.shape, 1).view("float64")
        arrays[name] = array
    file.write(
        safetensors.numpy.save(arrays, metadata={"ptcore": _header_text(header)})
    )


def _read_safetensors(file):
    import json

    import numpy as np

    data = file.read()
    entries = _import_safetensors().deserialize(data)  # checks sizes and offsets
    size = int.from_bytes(data[:8], "little")
    metadata = dict(json.loads(data[8 : 8 + size]).get("__metadata__", {}))
    arrays = {}
    for name, entry in entries:
        dtype = _SAFETENSORS_DTYPES.get(entry["dtype"])
        if dtype is None:
            raise ValueError(f"{name} has the unsupported dtype {entry['dtype']}")
        bits = np.dtype("uint16" if dtype == "bfloat16" else dtype).newbyteorder("<")
        array = np.frombuffer(entry["data"], bits).reshape(entry["shape"])
        arrays[name] = array, dtype
    header = metadata.pop("ptcore", None)
    return arrays, None if header is None else json.loads(header), metadata
