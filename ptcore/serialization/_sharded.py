"""Tensors spread over several ``.safetensors`` files, with an index as Hugging Face's libraries write it.

The index is ``{"metadata": {"total_size": bytes, "ptcore": header}, "weight_map": {name of tensor: name of file}}``;
the files lie beside it. The index is replaced last, and files of an older index are never overwritten: so the index on
the disk and its files fit together even if a call is interrupted.
"""

import json
import os
import re

from ptcore._atomic import remove_left, write_atomically
from ptcore.serialization import safetensors_files
from ptcore.serialization.arrays import header_text, parsed
from ptcore.serialization.files import Source

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def _bytes_of(size):
    """A number of bytes, given as an int or as text with a unit."""
    if isinstance(size, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]I?B|)\s*", size.upper())
        number = int(float(found[1]) * _UNITS[found[2]]) if found else 0
    else:
        is_whole = not isinstance(size, bool) and (hasattr(size, "__index__") or (
            isinstance(size, float) and size.is_integer()))
        number = int(size) if is_whole else 0
    if number < 1:
        raise ValueError(f"save: max_shard_size must be a positive number of bytes or a text as '5GB', got {size!r}")
    return number


def write(path, tensors, header, most):
    """Writes one file, or several with an index if the tensors need more than `most` bytes."""
    where, base = os.path.split(path[:-len(".safetensors")])
    folder = os.path.realpath(where)
    old = _left(path + ".index.json", folder, base)
    nbytes = {name: tensor.numel() * tensor.element_size() for name, tensor in tensors.items()}
    total = sum(nbytes.values())
    if most is None or total <= _bytes_of(most):
        write_atomically(path, lambda file: safetensors_files.write(
            file, tensors, {"format": "pt", "ptcore": header_text(header)}))
        _remove([path + ".index.json", *old])
        return
    most = _bytes_of(most)
    remove_left(folder, f".{base}-")  # files of interrupted calls, under another tag
    shards, used = [[]], 0
    for name in tensors:
        if shards[-1] and used + nbytes[name] > most:
            shards.append([])
            used = 0
        shards[-1].append(name)
        used += nbytes[name]
    plain = [os.path.join(folder, f"{base}-{i + 1:05}-of-{len(shards):05}.safetensors") for i in range(len(shards))]
    tag = f"-t{os.urandom(4).hex()}" if any(map(os.path.lexists, plain)) else ""
    weight_map = {}
    written = []
    try:
        for i, names in enumerate(shards):
            file_name = f"{base}{tag}-{i + 1:05}-of-{len(shards):05}.safetensors"
            shard = {name: tensors[name] for name in names}
            write_atomically(os.path.join(folder, file_name),
                             lambda file, shard=shard: safetensors_files.write(file, shard, {"format": "pt"}))
            written.append(os.path.join(folder, file_name))
            weight_map.update(dict.fromkeys(names, file_name))
    except BaseException:  # no index will name these files
        _remove(written)
        raise
    index = {"metadata": {"total_size": total, "ptcore": header_text(header)}, "weight_map": weight_map}
    write_atomically(path + ".index.json", lambda file: file.write(json.dumps(index, indent=2).encode()))
    _remove([path, *old])


def _left(index, folder, base):
    """The files of earlier saves under the same name: those that its index lists, and those with its names, of a call
    that was killed, that no index lists. A model of another name may have a file such as base-20261130-00001-of-00002.
    """
    names, number = re.escape(base), r"-\d{5}-of-\d{5}\.safetensors"
    own, others = set(), set()
    for entry in os.scandir(folder):
        if entry.name.endswith(".safetensors.index.json"):
            (own if entry.name == os.path.basename(index) else others).update(_files_of(entry.path))
    found = {name for name in os.listdir(folder) if re.fullmatch(f"{names}(-t[0-9a-f]{{8}})?{number}", name)} - others
    found |= {name for name in own if re.fullmatch(f"{names}(-t?[0-9a-f]{{8}})?{number}", name)}
    return [os.path.join(folder, name) for name in found]


def _files_of(index):
    """The files that an index lists; none if it is damaged."""
    try:
        with open(index, encoding="utf-8") as file:
            files = json.load(file)["weight_map"].values()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    return [name for name in files if type(name) is str]


def _remove(paths):
    """Removes files of an earlier save that had another number of files."""
    for path in paths:
        if os.path.lexists(path):
            os.unlink(path)


def read(file, mapped, meta):
    """The result of :func:`safetensors_files.read` for an open index."""
    index = parsed(file.read().decode())
    metadata, weight_map = dict(index.get("metadata") or {}), index["weight_map"]
    header = metadata.pop("ptcore", None)
    shards = {}
    for name, shard in weight_map.items():
        if type(shard) is not str or shard in ("", ".", "..") or re.search(r"[/\\\0]", shard):
            raise ValueError(f"the index names a file outside its folder: {shard!r}")
        shards.setdefault(shard, set()).add(name)
    tensors = dict.fromkeys(weight_map)
    for shard, wanted in shards.items():
        try:
            part = open(os.path.join(os.path.dirname(file.name), shard), "rb", buffering=8192)
        except OSError as error:
            raise ValueError(f"a file that the index lists cannot be read: {error}") from None
        with part:
            found, _, _ = safetensors_files.read(part, Source(part, mapped, meta), wanted)
        if found.keys() != wanted:
            raise ValueError(f"{shard} lacks tensors that the index lists: {sorted(wanted - found.keys())[:3]}")
        tensors.update(found)
    return tensors, None if header is None else parsed(header), metadata
