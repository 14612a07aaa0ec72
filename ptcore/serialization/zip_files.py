"""Zip archives in PyTorch's layout, written and read byte by byte.

An entry is stored, not deflated. Its data begin at a multiple of 64 bytes, filled up by an extra field "FB"; sizes and
checksum follow in a data descriptor. PyTorch computes the place of data from exactly this layout. The reader trusts
nothing: entries with equal names, outside of the file or overlapping are refused before a byte is read, and the size of
inflated data is bounded by a multiple of the file's.
"""

import zlib
from struct import calcsize, pack, unpack_from

from ptcore.serialization._options import get_crc32_options

LOCAL, _CENTRAL = "<4s5H3I2H", "<4s6H3I5H2I"
_END, _END64, _LOCATOR64 = "<4s4H2IH", "<4sQ2H2I4Q", "<4sIQI"
_MOST32 = 0xFFFFFFFF
_FLAGS = 0x0808  # names are UTF-8, sizes follow the data
_ALIGNMENT = 64
_GROWTH = 64  # largest ratio of inflated bytes to bytes of the file


class Writer:
    """Appends entries to a file."""

    def __init__(self, file):
        self._file, self._at, self._entries = file, 0, []

    def _write(self, data):
        self._file.write(data)
        self._at += len(data)

    def add(self, name, size, pieces):
        """An entry of `size` bytes that come in pieces."""
        name, header = name.encode(), self._at
        sizes = pack("<QQ", size, size) if size >= _MOST32 else b""
        offset = pack("<Q", header) if header >= _MOST32 else b""
        extra = pack("<2H", 1, len(sizes + offset)) + sizes + offset if sizes or offset else b""
        filled = -(header + calcsize(LOCAL) + len(name) + len(extra) + 4) % _ALIGNMENT
        padding = b"FB" + pack("<H", filled) + b"Z" * filled
        self._write(pack(LOCAL, b"PK\3\4", 0, _FLAGS, 0, 0, 0, 0, 0, 0, len(name), len(extra) + len(padding))
                    + name + extra + padding)
        crc = 0
        for piece in pieces:
            if get_crc32_options():
                crc = zlib.crc32(piece, crc)
            self._write(piece)
        if size:
            self._write(pack("<4sIQQ" if extra else "<4s3I", b"PK\7\10", crc, size, size))
        self._entries.append((name, crc, size, header, extra))

    def close(self):
        """The directory at the end."""
        start, n = self._at, len(self._entries)
        for name, crc, size, header, extra in self._entries:
            size, header = min(size, _MOST32), min(header, _MOST32)
            self._write(pack(_CENTRAL, b"PK\1\2", 0, 0, _FLAGS, 0, 0, 0, crc, size, size, len(name), len(extra), 0, 0,
                             0, 0, header) + name + extra)
        size, end = self._at - start, self._at
        self._write(pack(_END64, b"PK\6\6", 44, 0x031E, 45, 0, 0, n, n, size, start)
                    + pack(_LOCATOR64, b"PK\6\7", 0, end, 1)
                    + pack(_END, b"PK\5\6", 0, 0, min(n, 0xFFFF), min(n, 0xFFFF), size, min(start, _MOST32), 0))


class Entry:
    """The place of an entry's data: `start`, `packed` bytes in the file, and `size` bytes inflated."""

    def __init__(self, header, packed, size, crc, deflated):
        self.header, self.packed, self.size, self.crc, self.deflated = header, packed, size, crc, deflated


class Reader:
    """The entries of an archive.

    Parameters
    ----------
    file : file
    begin, size : int
        Where the archive begins in the file, and its bytes.
    slack : int
        Number of bytes that inflated data may have in addition to the multiple of the file's size.
    """

    def __init__(self, file, begin, size, slack=0):
        self._file, self._begin, self.size = file, begin, size
        self.entries = {}
        start, nbytes, number = self._directory()
        self._read_directory(self._at(start, nbytes), number)
        end, total = 0, 0
        for name, entry in sorted(self.entries.items(), key=lambda item: item[1].header):
            if entry.header < end:
                raise ValueError("entries of the archive lie over each other")
            fixed = self._at(entry.header, calcsize(LOCAL))
            magic, _, flags, method, _, _, _, _, _, n_name, n_extra = unpack_from(LOCAL, fixed)
            entry.start = entry.header + len(fixed) + n_name + n_extra
            end = entry.start + entry.packed
            if (magic != b"PK\3\4" or flags & 1 or method != 8 * entry.deflated or end > start
                    or self._at(entry.header + len(fixed), n_name) != name.encode()):
                raise ValueError(f"the entry {name} of the archive is damaged")
            total += entry.size
        if total > _GROWTH * size + slack:
            raise ValueError(f"the archive of {size} bytes would expand to {total}")
        # Without checksums, which PyTorch can be told to omit, all are 0.
        self._checked = any(entry.crc for entry in self.entries.values())

    def _at(self, start, n):
        if start < 0 or start + n > self.size:
            raise ValueError("the archive is cut off")
        self._file.seek(self._begin + start)
        data = self._file.read(n)
        if len(data) != n:
            raise ValueError("the archive is cut off")
        return data

    def _directory(self):
        """Begin, bytes and number of entries of the directory."""
        tail = self._at(max(self.size - 66000, 0), min(self.size, 66000))
        at = tail.rfind(b"PK\5\6")
        if at < 0 or at + calcsize(_END) > len(tail):
            raise ValueError("the archive has no directory: it is cut off")
        _, disk, _, _, number, nbytes, start, _ = unpack_from(_END, tail, at)
        end = self.size - len(tail) + at
        place = end - calcsize(_LOCATOR64)
        if place >= 0:
            locator = self._at(place, calcsize(_LOCATOR64))
            if locator[:4] == b"PK\6\7":
                end = unpack_from(_LOCATOR64, locator)[2]
                magic, _, _, _, disk, _, _, number, nbytes, start = unpack_from(
                    _END64, self._at(end, calcsize(_END64)))
                if magic != b"PK\6\6":
                    raise ValueError("the directory of the archive is damaged")
        if disk or start + nbytes != end:
            raise ValueError("the directory of the archive is damaged")
        return start, nbytes, number

    def _read_directory(self, data, number):
        at = 0
        while at < len(data):
            if at + calcsize(_CENTRAL) > len(data):
                raise ValueError("the directory of the archive is cut off")
            (magic, _, _, flags, method, _, _, crc, packed, size, n_name, n_extra, n_comment, _, _, _,
             header) = unpack_from(_CENTRAL, data, at)
            at += calcsize(_CENTRAL)
            end = at + n_name + n_extra
            if magic != b"PK\1\2" or flags & 1 or method not in (0, 8) or end + n_comment > len(data):
                raise ValueError("the directory of the archive is damaged")
            name = data[at:at + n_name].decode()
            large = _large(data[at + n_name:end])
            size, packed, header = (large(v) if v == _MOST32 else v for v in (size, packed, header))
            at = end + n_comment
            if name in self.entries:
                raise ValueError(f"the archive has two entries {name}")
            if method == 0 and size != packed:
                raise ValueError(f"the entry {name} of the archive is damaged")
            self.entries[name] = Entry(header, packed, size, crc, method == 8)
        if len(self.entries) != number:
            raise ValueError("the directory of the archive is damaged")

    def head(self, name, n):
        """At most `n` bytes from the beginning of a stored entry, without a check."""
        entry = self.entries[name]
        return self._at(entry.start, min(entry.size, n))

    def read(self, name):
        """The bytes of an entry."""
        entry = self.entries[name]
        data = self._at(entry.start, entry.packed)
        if entry.deflated:
            inflate = zlib.decompressobj(-15)
            data = inflate.decompress(data, max(entry.size, 1))
            if len(data) != entry.size or (not inflate.eof and inflate.decompress(inflate.unconsumed_tail, 1)):
                raise ValueError(f"the entry {name} of the archive is damaged")
        self._check(name, entry, zlib.crc32(data))
        return data

    def _check(self, name, entry, crc):
        if self._checked and crc != entry.crc:
            raise ValueError(f"the checksum of {name} is wrong")

    def readinto(self, name):
        """A function (memoryview) that gives the next bytes of an entry, and compares the checksum at the end."""
        entry = self.entries[name]
        if entry.deflated:
            data, at = memoryview(self.read(name)), 0

            def inflated(view):
                nonlocal at
                view[:] = data[at:at + len(view)]
                at += len(view)

            return inflated
        left, crc = entry.size, 0
        self._file.seek(self._begin + entry.start)

        def stored(view):
            nonlocal left, crc
            got = 0
            while got < len(view):
                n = self._file.readinto(view[got:])
                if not n:
                    raise ValueError("the archive is cut off")
                got += n
            crc = zlib.crc32(view, crc)
            left -= got
            if not left:
                self._check(name, entry, crc)

        return stored


def _large(extra):
    """A function that gives the 64-bit numbers of a zip64 field one by one."""
    at = 0
    values = b""
    while at + 4 <= len(extra):
        kind, n = unpack_from("<2H", extra, at)
        if kind == 1:
            values = extra[at + 4:at + 4 + n]
        at += 4 + n
    numbers = iter(unpack_from(f"<{len(values) // 8}Q", values))

    return lambda saved: next(numbers, saved)
