"""Settings of saving and loading, against torch."""
import mmap
import zipfile
import zlib

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity
LIBS = (pt, torch)


def test_checksums(tmp_path):
    for lib in LIBS:
        options = lib.serialization
        assert options.get_crc32_options() is True
        path = tmp_path / lib.__name__
        data = lib.arange(1000)
        for wanted in (False, True):
            options.set_crc32_options(wanted)
            try:
                assert options.get_crc32_options() is wanted
                lib.save({"x": data}, path)
            finally:
                options.set_crc32_options(True)
            with zipfile.ZipFile(path) as archive:
                (info,) = [i for i in archive.infolist() if i.filename.endswith("data/0")]
            assert (info.CRC == zlib.crc32(data.numpy().tobytes())) is wanted
            for reader in LIBS:
                assert reader.load(path)["x"].tolist() == data.tolist()


def test_byte_order(tmp_path):
    """Of an archive that does not name its own."""
    numbers, path = np.arange(3, dtype="int32"), tmp_path / "file"
    pt.save(pt.tensor(numbers.byteswap()), path, _disable_byteorder_record=True)        # torch writes it all the same
    for lib in LIBS:
        options = lib.serialization
        assert options.get_default_load_endianness() is None
        try:
            options.set_default_load_endianness(options.LoadEndianness.BIG)
            assert options.get_default_load_endianness() is options.LoadEndianness.BIG
            assert lib.load(path).tolist() == [0, 1, 2]
            for other in (options.LoadEndianness.LITTLE, options.LoadEndianness.NATIVE, None):
                options.set_default_load_endianness(other)
                assert lib.load(path).tolist() == numbers.byteswap().tolist()
        finally:
            options.set_default_load_endianness(None)
        with pytest.raises(TypeError):
            options.set_default_load_endianness("big")
        assert [(e.name, e.value) for e in options.LoadEndianness] == [("NATIVE", 1), ("LITTLE", 2), ("BIG", 3)]


def test_maps(tmp_path):
    for lib in LIBS:
        options, path = lib.serialization, tmp_path / lib.__name__
        lib.save({"x": lib.zeros(1000)}, path)
        assert options.get_default_mmap_options() == mmap.MAP_PRIVATE
        lib.load(path, mmap=True)["x"].fill_(1)
        assert not lib.load(path)["x"].any()
        with options.set_default_mmap_options(mmap.MAP_SHARED):
            assert options.get_default_mmap_options() == mmap.MAP_SHARED
            lib.load(path, mmap=True)["x"].fill_(2)
        assert options.get_default_mmap_options() == mmap.MAP_PRIVATE
        with zipfile.ZipFile(path) as archive:
            name = next(n for n in archive.namelist() if n.endswith("data/0"))
            offset = archive.getinfo(name).header_offset
        assert np.float32(2).tobytes() * 1000 in path.read_bytes()[offset:]
        options.set_default_mmap_options(mmap.MAP_SHARED)
        options.set_default_mmap_options(mmap.MAP_PRIVATE)
        with pytest.raises(ValueError, match="MAP_PRIVATE"):
            options.set_default_mmap_options(99)


def test_without_data(tmp_path):
    for lib in LIBS:
        path, empty = tmp_path / lib.__name__, tmp_path / f"{lib.__name__}_empty"
        data = {"x": lib.arange(5000) + 7, "y": lib.ones(2, 3).t()}
        lib.save(data, path)
        with lib.serialization.skip_data():
            lib.save(data, empty)
            got = lib.load(path)
        assert got["x"].shape == (5000,) and got["x"].dtype is lib.int64 and got["y"].stride() == (1, 3)
        assert (np.arange(5000) + 7).tobytes() in path.read_bytes()
        assert (np.arange(5000) + 7).tobytes() not in empty.read_bytes()
        # torch writes the name of the file into each entry, and so the longer one
        assert abs(empty.stat().st_size - path.stat().st_size) <= (lib is torch) * 256
        for reader in LIBS:
            with reader.serialization.skip_data():
                got = reader.load(empty)
            assert got["x"].shape == (5000,) and got["y"].stride() == (1, 3)
        if lib is pt:
            assert torch.load(empty)["x"].tolist() == [0] * 5000
        assert lib.load(path)["x"].tolist() == data["x"].tolist()
