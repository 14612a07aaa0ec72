"""Named arrays in ``.npz``, NumPy's archive, written and read without a copy in memory.

The data of entries begin at multiples of 64 bytes, so ``mmap=True`` can map them. What NumPy lacks (bfloat16, float8
and complex32) is stored as unsigned integers with the same bits.
"""

import io
import zipfile
from struct import calcsize, pack

import ptcore
from ptcore._libraries import library
from ptcore.serialization import zip_files
from ptcore.serialization._constructors import DTYPES
from ptcore.serialization.arrays import AS_BITS, HEADER, header_text, parsed, shaped
from ptcore.serialization.files import dense_bytes, exactly, pieces_of, swap_bytes

_ALIGNMENT = 64
_HEAD = 1 << 16     # bytes of an entry within which the array begins
_SLACK = 1 << 28    # bytes that compressed arrays may have even in a small file


def write(file, tensors, header):
    """Writes the named tensors and the header to a file."""
    np = library("numpy")

    text = ptcore.frombuffer(bytearray(header_text(header).encode()), dtype=ptcore.uint8)
    archive = None
    try:
        archive = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        for name, tensor in (*tensors.items(), (HEADER, text)):
            dtype = np.dtype(AS_BITS.get(tensor.dtype.name, tensor.dtype.name))
            info = zipfile.ZipInfo(f"{name}.npy")  # no date, so that equal data give equal files
            named = len(info.filename.encode())
            before = archive.fp.tell() + calcsize(zip_files.LOCAL) + named + 20 + 4  # 20: 64-bit sizes
            filled = -before % _ALIGNMENT
            info.extra = b"FB" + pack("<H", filled) + b"Z" * filled
            with archive.open(info, "w", force_zip64=True) as entry:
                np.lib.format.write_array_header_1_0(entry, {
                    "descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False,
                    "shape": tuple(tensor.shape)})
                for piece in pieces_of(dense_bytes(tensor)):
                    entry.write(piece)
        archive.close()
    except BaseException:
        # An interrupt between `open` and its block leaves the entry open, and close() would raise a ValueError in place
        # of the interrupt. Without a file it does nothing; what is written is dropped by the caller.
        if archive is not None:
            archive.fp = None
        raise


def read(file, source):
    """Tensors by name, header or None, and no metadata."""
    archive = zip_files.Reader(file, 0, file.seek(0, 2), slack=_SLACK)
    if archive.entries and not any(name.endswith(".npy") for name in archive.entries):
        raise ValueError("the archive has no arrays of NumPy: is it a file of PyTorch's?")
    tensors = {name.removesuffix(".npy"): _tensor(archive, name, source) for name in archive.entries}
    if len(tensors) != len(archive.entries):
        raise ValueError("the archive has two arrays of one name")
    header = tensors.pop(HEADER, None)
    if header is not None:
        if header.dtype != ptcore.uint8 or header.dim() != 1:
            raise ValueError("the header is no text")
        header = parsed(_content(archive, HEADER + ".npy").decode())
    return tensors, header, {}


def _content(archive, name):
    """The bytes of an array, or a tensor without data."""
    data = io.BytesIO(archive.read(name))
    _parse(data)
    return data.read()


def _parse(head):
    """(shape, whether columns are contiguous, dtype) from an array's header; the file is left at the data."""
    np = library("numpy")

    version = np.lib.format.read_magic(head)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of NumPy's format")
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        return read_header(head)
    except MemoryError:  # raised by Python's parser for endless signs and brackets
        raise ValueError("the header of an array is nested too deeply") from None


def _tensor(archive, name, source):
    entry = archive.entries[name]
    head = io.BytesIO(archive.read(name) if entry.deflated else archive.head(name, _HEAD))
    shape, by_columns, dtype = _parse(head)
    if dtype.hasobject:
        raise NotImplementedError(f"{name} holds Python objects (a pickle), which are not read")
    if dtype.name not in DTYPES:
        raise NotImplementedError(f"{name} has the dtype {dtype}, which there is not here")
    start = head.tell()

    def readinto():
        if entry.deflated:
            return exactly(head)
        read = archive.readinto(name)
        read(memoryview(bytearray(start)))
        return read

    swapped = not dtype.isnative
    flat = source.take(entry.size - start, readinto, None if entry.deflated or swapped else entry.start + start,
                       dtype.alignment)
    if swapped and not source.meta:
        swap_bytes(flat, getattr(ptcore, dtype.name))
    if by_columns:
        return shaped(flat, dtype.name, shape[::-1]).permute(tuple(range(len(shape))[::-1]))
    return shaped(flat, dtype.name, shape)
