"""Named arrays in ``.npz`` (NumPy) and ``.safetensors`` (the safetensors library, imported at first use).

Both hold named arrays; the nesting is described by a JSON header, "ptcore" in the metadata of a safetensors file or
the array ``__ptcore__`` (UTF-8 bytes) of an npz file. A header is ``{"version": 1, "root": node}`` where a node is

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
from collections import Counter, OrderedDict

import ptcore
from ptcore import Tensor
from ptcore.serialization._constructors import DTYPES
from ptcore.serialization._files import MAX_DEPTH

_HEADER = "__ptcore__"
_MAPPINGS = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}
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


def _name_of(dtype):
    return str(dtype).rpartition(".")[2]


def describe(obj):
    """The dictionary of the tensors in `obj`, and the header that says where they stand."""
    flat = _Flattener()
    header = {"version": 1, "root": flat.node(obj, "", 0)}
    metadata = getattr(obj, "_metadata", None)
    if isinstance(obj, OrderedDict) and metadata is not None:
        header["metadata"] = flat.node(metadata, "_metadata", 0)
    return flat.tensors, header


def restore(arrays, header, metadata, place):
    """The saved object, its tensors put where ``place(tensor, saved device)`` says; without a header the arrays."""
    if header is None:
        result = OrderedDict((name, place(_tensor(entry), "cpu")) for name, entry in arrays.items())
        result.metadata = metadata
        return result
    if not isinstance(header, dict) or header.get("version") != 1:
        raise ValueError("unknown version of the header")
    result = _value(header["root"], arrays, place)
    if "metadata" in header:
        result._metadata = _value(header["metadata"], arrays, place)
    return result


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
        if depth >= MAX_DEPTH:
            raise ValueError(
                f"save: data may be nested {MAX_DEPTH} levels deep at most"
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
    if stored not in DTYPES:
        raise ValueError(f"unsupported dtype {stored}")
    array = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
    tensor = ptcore.from_numpy(array)
    return tensor.view(ptcore.bfloat16) if stored == "bfloat16" else tensor


def _value(node, arrays, place):
    if isinstance(node, list):
        return [_value(n, arrays, place) for n in node]
    if not isinstance(node, dict):
        return node
    if "tensor" in node:
        return place(_tensor(arrays[node["tensor"]], node.get("dtype")), node.get("device", "cpu"))
    ((kind, content),) = node.items()
    if kind == "float":
        return float(content)
    if kind == "tuple":
        return tuple(_value(n, arrays, place) for n in content)
    if kind in _MAPPINGS:
        mapping = _MAPPINGS[kind]()
        for key, item in content:
            mapping[_value(key, arrays, place)] = _value(item, arrays, place)
        return mapping
    if kind == "Size":
        return ptcore.Size(content)
    if kind == "dtype" and content in DTYPES:
        return getattr(ptcore, content)
    if kind == "device":
        return ptcore.device(content)
    raise ValueError(f"unknown entry {kind!r} in the header")


def header_text(header):
    """The header as it stands in a file."""
    import json

    return json.dumps(header, allow_nan=False, separators=(",", ":"))


def write_npz(file, tensors, header):
    """Writes the named tensors and the header to a file."""
    import zipfile

    import numpy as np

    entries = {name: _array(tensor) for name, tensor in tensors.items()}
    entries[_HEADER] = np.frombuffer(header_text(header).encode(), np.uint8)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in entries.items():
            info = zipfile.ZipInfo(f"{name}.npy")  # no time: equal data, equal bytes
            with archive.open(info, "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def read_npz(file):
    """Arrays with the names of their dtypes, header or None, and no metadata."""
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
        header = json.loads(header[0].astype(np.uint8, casting="equiv").tobytes().decode())
    return arrays, header, {}


def import_safetensors():
    """The library, or an error that says how to get it."""
    try:
        import safetensors
    except ImportError as error:
        raise ImportError(
            "the safetensors library is needed for .safetensors files: pip install "
            "ptcore[files] (.npz files need nothing)"
        ) from error
    return safetensors


def write_safetensors(file, tensors, metadata):
    """Writes the named tensors and a dictionary of texts to a file."""
    import_safetensors()
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
    file.write(safetensors.numpy.save(arrays, metadata=metadata))


def read_safetensors(file):
    """Arrays with the names of their dtypes, header or None, and the other metadata."""
    import json

    import numpy as np

    data = file.read()
    entries = import_safetensors().deserialize(data)  # checks sizes and offsets
    size = int.from_bytes(data[:8], "little")
    metadata = dict(json.loads(data[8 : 8 + size].decode()).get("__metadata__", {}))
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
