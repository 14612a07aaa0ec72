"""Files put together from opcodes, as no writer would write them."""
import io
import pickle
import struct
import zipfile

import ptcore as pt


def saved(obj, **options):
    file = io.BytesIO()
    pt.save(obj, file, **options)
    file.seek(0)
    return file


def round_trip(obj, stream=False, **options):
    return pt.load(saved(obj, _use_new_zipfile_serialization=not stream), **options)


def archive(data, storages=(), deflated=False, **more):
    """An archive around a pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED) as out:
        for name, content in {"data.pkl": data, "version": b"3\n", **more}.items():
            out.writestr(f"a/{name}", content)
        for key, content in enumerate(storages):
            out.writestr(f"a/data/{key}", content)
    file.seek(0)
    return file


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def number(value):
    return b"\x8a\x09" + value.to_bytes(9, "little", signed=True)


def storage(kind="FloatStorage", key="0", size=4):
    return b"(" + text("storage") + f"ctorch\n{kind}\n".encode() + text(key) + text("cpu") + number(size) + b"tQ"


def tensor(size=(4,), stride=(1,), offset=0, **options):
    shape = b"".join(b"(" + b"".join(map(number, numbers)) + b"t" for numbers in (size, stride))
    return (b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage(**options) + number(offset) + shape
            + b"\x89ccollections\nOrderedDict\n)RtR")


def load_pickle(body, storages=(b"\0" * 16,)):
    return pt.load(archive(b"\x80\x02" + body + b".", storages))


def old_stream(body, *storages, itemsize=4):
    """A stream as PyTorch wrote it before 1.6; the storages are pairs of a key and bytes."""
    head = [pickle.dumps(part, protocol=2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})]
    parts = [*head, b"\x80\x02" + body + b".", pickle.dumps([key for key, _ in storages], protocol=2)]
    for _, data in storages:
        parts += [struct.pack("<q", len(data) // itemsize), data]
    return io.BytesIO(b"".join(parts))
