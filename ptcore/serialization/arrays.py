"""Nested data around named tensors, for the formats that hold nothing else: ``.npz`` and ``.safetensors``.

The nesting is described by a JSON header, "ptcore" in the metadata of a safetensors file or the array ``__ptcore__``
(UTF-8 bytes) of an npz file. A header is ``{"version": 1, "root": node}`` where a node is

- null, true, false, an integer, a finite float or a string: itself;
- a list: its nodes;
- an object with one "kind" key: ``{"float": "nan"}``, ``{"tuple": [node, ...]}``,
  ``{"dict": [[node, node], ...]}`` (also "OrderedDict", "Counter"),
  ``{"Size": [int, ...]}``, ``{"dtype": name}``, ``{"device": name}``;
- ``{"tensor": name}``, with "dtype" where the array's own differs (``AS_BITS`` in
  npz, ``AS_PAIRS`` in safetensors) and "device" where it is not the CPU.

A dictionary with names of arrays as keys is stored under these names, so other
programs read it; a file without a header loads as such a dictionary.
"""

import json
import math
from collections import Counter, OrderedDict

import ptcore
from ptcore import Tensor
from ptcore.serialization._constructors import DTYPES
from ptcore.serialization.files import MAX_DEPTH, Collisions

HEADER = "__ptcore__"
# Dtypes that a format stores as another one: npz as the same bits, safetensors as pairs of real numbers.
AS_BITS = {"bfloat16": "uint16", "complex32": "uint32", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8",
           "float8_e4m3fnuz": "uint8", "float8_e5m2fnuz": "uint8", "float8_e8m0fnu": "uint8"}
AS_PAIRS = {"complex128": "float64", "complex32": "float16"}
_RESERVED = (HEADER, "__metadata__")
_MAPPINGS = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}


def _name_of(dtype):
    return str(dtype).rpartition(".")[2]


def describe(obj):
    """The dictionary of the tensors in `obj`, and the header that describes their places."""
    flat = _Flattener()
    header = {"version": 1, "root": flat.node(obj, "", 0)}
    metadata = getattr(obj, "_metadata", None)
    if isinstance(obj, OrderedDict) and metadata is not None:
        header["metadata"] = flat.node(metadata, "_metadata", 0)
    return flat.tensors, header


def restore(tensors, header, metadata, place):
    """The saved object, with its tensors moved by ``place(tensor, saved device)``; without a header, the tensors."""
    if header is None:
        result = OrderedDict((name, place(tensor, "cpu")) for name, tensor in tensors.items())
        result.metadata = metadata
        return result
    if not isinstance(header, dict) or header.get("version") != 1:
        raise ValueError("unknown version of the header")
    build = _Builder(tensors, place)
    result = build.value(header["root"])
    if "metadata" in header:
        result._metadata = build.value(header["metadata"])
    return result


def shaped(flat, dtype, shape):
    """A tensor of bytes as a tensor of a dtype, given by name, and of the shape that a file claims."""
    dtype, count = getattr(ptcore, dtype), 1
    if type(shape) not in (list, tuple) or any(type(n) is not int or not 0 <= n < 1 << 63 for n in shape):
        raise ValueError("a shape is no list of numbers")
    for n in shape:
        count *= n
    if count * dtype.itemsize != flat.numel():
        raise ValueError(f"an array has {flat.numel()} bytes, its shape and dtype need {count * dtype.itemsize}")
    return flat.view(dtype).view(tuple(shape))


class _Flattener:
    """Turns nested data into a tree of JSON nodes and a dictionary of tensors."""

    def __init__(self):
        self.tensors = {}
        self._open = set()

    def node(self, value, path, depth):
        """The node of `value`, whose path below the root is `path`."""
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
        base = name = (path or "data").replace("\0", "_")  # a NUL would end the name in an archive
        tries = 1
        while name in self.tensors or name in _RESERVED:
            name = f"{base}#{tries}"
            tries += 1
        self.tensors[name] = tensor.detach()
        node = {"tensor": name, "dtype": _name_of(tensor.dtype)}
        if tensor.device.type != "cpu":
            node["device"] = str(tensor.device)
        return node


def _typed(tensor, dtype):
    """`tensor` with the dtype that the header names; formats store some dtypes as another one of the same bits."""
    stored = _name_of(tensor.dtype)
    if dtype is None or dtype == stored:
        return tensor
    if AS_PAIRS.get(dtype) == stored:
        if tensor.shape[-1:] != (2,):
            raise ValueError(f"{dtype} needs a last size of 2, got {tensor.shape}")
        return ptcore.view_as_complex(tensor)
    if AS_BITS.get(dtype) == stored:
        return tensor.view(getattr(ptcore, dtype))
    raise ValueError(f"expected an array of {dtype}, got {stored}")


class _Builder:
    """Turns a tree of JSON nodes back into data. A tensor that the header names several times is one object."""

    def __init__(self, tensors, place):
        self._tensors, self._place, self._placed = tensors, place, {}
        self._collisions = Collisions()

    def _tensor(self, name, dtype, device):
        if name not in self._tensors:
            raise ValueError(f"the header names the tensor {name!r}, which there is not")
        key = name, dtype, device
        if key not in self._placed:
            self._placed[key] = self._place(_typed(self._tensors[name], dtype), device)
        return self._placed[key]

    def value(self, node):
        """The value of a node."""
        if isinstance(node, list):
            return [self.value(n) for n in node]
        if not isinstance(node, dict):
            return node
        if "tensor" in node:
            return self._tensor(node["tensor"], node.get("dtype"), node.get("device", "cpu"))
        ((kind, content),) = node.items()
        if kind == "float" and content in ("nan", "inf", "-inf"):
            return float(content)
        if kind == "tuple":
            return tuple(self.value(n) for n in content)
        if kind in _MAPPINGS:
            mapping = _MAPPINGS[kind]()
            for key, item in content:
                key = self.value(key)
                if type(key) in (tuple, int):
                    self._collisions.add(id(mapping), key)
                mapping[key] = self.value(item)
            return mapping
        if kind == "Size" and all(type(n) is int for n in content):
            return ptcore.Size(content)
        if kind == "dtype" and content in DTYPES:
            return getattr(ptcore, content)
        if kind == "device":
            return ptcore.device(content)
        raise ValueError(f"unknown entry {kind!r} in the header")


def header_text(header):
    """The text of a header in a file."""
    return json.dumps(header, allow_nan=False, separators=(",", ":"))


def parsed(text):
    """Parses JSON of a file; refuses repeated keys and NaN, which JSON does not have."""
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)


def _unique(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("two entries of one name in JSON")
    return found


def _refused(word):
    raise ValueError(f"{word} in JSON")
