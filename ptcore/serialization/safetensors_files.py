"""Named tensors in ``.safetensors``: the size of a JSON header (8 bytes), the header, the bytes of the tensors.

The header gives for each name the dtype, the shape and the range of its bytes; ``__metadata__`` holds texts. Bytes are
little-endian and without gaps. complex128 and complex32, which the format lacks, are stored as pairs of real numbers.
"""

import json
import sys

from ptcore.serialization.arrays import AS_PAIRS, parsed, shaped
from ptcore.serialization.files import dense_bytes, exactly, pieces_of, swap_bytes

_NAMES = {
    "bool": "BOOL", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "int8": "I8", "int16": "I16",
    "int32": "I32", "int64": "I64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "complex64": "C64", "complex128": "F64", "complex32": "F16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0",
}  # fmt: skip
_DTYPES = {name: dtype for dtype, name in _NAMES.items() if dtype not in AS_PAIRS}
_ABSENT = ("F6_E2M3", "F6_E3M2", "F4")
_MOST = 100_000_000     # most bytes of a header, as in the format's own library
_ALIGNMENT = 64


def _alignment(dtype):
    return dtype.itemsize // (2 if dtype.is_complex else 1)


def write(file, tensors, metadata):
    """Writes the named tensors and a dictionary of texts to a file."""
    header, at = {"__metadata__": metadata}, 0
    # The widest dtype first, so that every element is aligned to its size.
    order = sorted(tensors, key=lambda name: -_alignment(tensors[name].dtype))
    for name in order:
        tensor = tensors[name]
        shape = [*tensor.shape, 2] if tensor.dtype.name in AS_PAIRS else list(tensor.shape)
        end = at + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _NAMES[tensor.dtype.name], "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    if len(text) > _MOST:
        raise ValueError(f"save: names and nesting need a header of {len(text)} bytes, .safetensors has {_MOST}")
    file.write(len(text).to_bytes(8, "little") + text)
    for name in order:
        flat = dense_bytes(tensors[name])
        if sys.byteorder == "big":
            flat = flat.clone()
            swap_bytes(flat, tensors[name].dtype)
        for piece in pieces_of(flat):
            file.write(piece)


def read(file, source, wanted=None):
    """Tensors by name (only the `wanted` ones if given), header or None, and the other metadata."""
    size = file.seek(0, 2)
    file.seek(0)
    n = int.from_bytes(file.read(8), "little")
    begin = 8 + n
    if n & 0xFFFFFFFF == 0x04034B50:
        raise ValueError("it is a zip archive: a file of PyTorch's or of NumPy's, whose name has to say so")
    if begin > size or n > _MOST:
        raise ValueError(f"a header of {n} bytes in a file of {size}")
    entries = parsed(file.read(n).decode())
    if type(entries) is not dict:
        raise ValueError("the header is no object")
    metadata = entries.pop("__metadata__", None) or {}
    if type(metadata) is not dict or any(type(text) is not str for text in metadata.values()):
        raise ValueError("the metadata are no texts")
    end, tensors = 0, {}
    places = {name: _place(name, entry) for name, entry in entries.items()}
    for first, last in sorted(places.values()):
        if first != end or last < first:
            raise ValueError("tensors lie over each other, or there is a gap between them")
        end = last
    if begin + end != size:
        raise ValueError(f"its tensors end at {begin + end}, the file at {size}")
    for name, (first, last) in places.items():
        if wanted is None or name in wanted:
            tensors[name] = _tensor(file, source, name, entries[name], begin + first, last - first)
    header = metadata.pop("ptcore", None)
    return tensors, None if header is None else parsed(header), metadata


def _place(name, entry):
    if type(entry) is not dict or type(entry.get("data_offsets")) is not list:
        raise ValueError(f"the entry {name[:200]!r} of the header is damaged")
    place = tuple(entry["data_offsets"])
    if len(place) != 2 or any(type(n) is not int or not 0 <= n < 1 << 63 for n in place):
        raise ValueError(f"the entry {name[:200]!r} of the header is damaged")
    return place


def _tensor(file, source, name, entry, start, nbytes):
    import ptcore

    stored, shape = entry.get("dtype"), entry.get("shape")
    if stored in _ABSENT:
        raise NotImplementedError(f"{name[:200]!r} has the dtype {stored}, which there is not here")
    if type(stored) is not str or stored not in _DTYPES:
        raise ValueError(f"{name[:200]!r} has an unknown dtype")
    dtype = getattr(ptcore, _DTYPES[stored])

    def readinto():
        file.seek(start)
        return exactly(file)

    swapped = sys.byteorder == "big" and dtype.itemsize > 1
    flat = source.take(nbytes, readinto, None if swapped else start, _alignment(dtype))
    if swapped and not source.meta:
        swap_bytes(flat, dtype)
    return shaped(flat, dtype.name, shape)
