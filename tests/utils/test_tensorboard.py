"""Event files, read by a decoder of this test's own: records and their checksums, messages, PNG."""
import io
import os
import signal
import struct
import subprocess
import sys
import threading
import wave
import zlib

import numpy as np
import pytest

import ptcore as pt
from ptcore.utils import _summaries
from ptcore.utils.tensorboard import SummaryWriter

pytestmark = pytest.mark.core


# -- the decoder ---------------------------------------------------------------------------------

def crc32c(data):
    """CRC-32C from the polynomial as it is written, most significant bit first, over bits that are turned round."""
    polynomial = 0x1EDC6F41
    table = []
    for byte in range(256):
        crc = byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (polynomial if crc >> 31 else 0)) & 0xFFFFFFFF
        table.append(crc)
    turned = [int(f"{byte:08b}"[::-1], 2) for byte in range(256)]
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc << 8 & 0xFFFFFFFF) ^ table[crc >> 24 ^ turned[byte]]
    return int(f"{crc ^ 0xFFFFFFFF:032b}"[::-1], 2)


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17 & 0xFFFFFFFF)) + 0xA282EAD8) % 2**32


def records(data):
    """The complete records of a file, each checked."""
    at = 0
    while at + 12 <= len(data):
        (size, crc), start = struct.unpack_from("<QI", data, at), at + 12
        assert crc == masked(data[at:at + 8])
        if start + size + 4 > len(data):
            return
        body = data[start:start + size]
        assert struct.unpack_from("<I", data, start + size)[0] == masked(body)
        yield body
        at = start + size + 4


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def message(data):
    """{number of a field: list of its values}; what has a length stays bytes."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif key & 7 == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            assert key & 7 == 2
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size
        found.setdefault(key >> 3, []).append(value)
    return found


def files_of(folder):
    """The paths below a folder, in the order in which they were written."""
    found = [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]
    return sorted(found, key=lambda path: int(os.path.basename(path).split(".")[-1]))


def events(path):
    with open(path, "rb") as file:
        return [message(body) for body in records(file.read())]


def values(path):
    """[(step, tag, message of the value)] of a file."""
    found = []
    for event in events(path):
        for summary in event.get(5, []):
            for value in message(summary)[1]:
                value = message(value)
                found.append((event.get(2, [None])[0], value[1][0].decode(), value))
    return found


def tensor(data):
    """(shape, values or texts) of a TensorProto."""
    fields = message(data)
    shape = tuple(message(d)[1][0] for d in message(fields[2][0]).get(2, []))
    kinds = {1: np.float32, 2: np.float64, 9: np.int64, 10: np.bool_, 19: np.float16}
    if fields[1] == [7]:
        return shape, [t.decode() for t in fields[8]]
    return shape, np.frombuffer(fields[4][0], kinds[fields[1][0]]).reshape(shape)


def plugin(value):
    """(name, content) of a value's plugin."""
    fields = message(message(value[9][0])[1][0])
    return fields[1][0].decode(), fields[2][0]


def frames(data):
    """[(milliseconds, pixels)] of an unfiltered PNG, animated or not."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    found, at, number, time = [], 8, 0, None
    while at < len(data):
        (size,), kind = struct.unpack_from(">I", data, at), data[at + 4:at + 8]
        assert struct.unpack_from(">I", data, at + 8 + size)[0] == zlib.crc32(data[at + 4:at + 8 + size])
        body, at = data[at + 8:at + 8 + size], at + 12 + size
        if kind in (b"fcTL", b"fdAT"):
            assert struct.unpack_from(">I", body)[0] == number
            number, body = number + 1, body[4:]
        if kind == b"IHDR":
            width, height, depth, color, *rest = struct.unpack(">2I5B", body)
            assert depth == 8 and rest == [0, 0, 0]
        elif kind == b"acTL":
            announced, repeats = struct.unpack(">2I", body)
            assert repeats == 0
        elif kind == b"fcTL":
            *where, time, second, _, _ = struct.unpack(">4I2H2B", body)
            assert where == [width, height, 0, 0] and second == 1000
        elif kind in (b"IDAT", b"fdAT"):
            assert (kind == b"IDAT") == (not found)
            channels = {4: 2, 2: 3, 6: 4}[color]
            rows = np.frombuffer(zlib.decompress(body), np.uint8).reshape(height, 1 + width * channels)
            assert (rows[:, 0] == 0).all()
            found.append((time, rows[:, 1:].reshape(height, width, channels)))
    assert kind == b"IEND"
    assert time is None or announced == len(found)
    return found


def pixels(data):
    """The bytes of an unfiltered PNG."""
    ((time, found),) = frames(data)
    assert time is None
    return found


@pytest.fixture
def written(tmp_path):
    """Calls a function with a writer; returns the values of its file."""
    def write(function):
        with SummaryWriter(tmp_path) as writer:
            function(writer)
        (path,) = files_of(tmp_path)
        return values(path)
    return write


# -- bytes ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("size", [0, 1, 9, 255, 4095, 4096, 4097, 5000, 10_007, 65_536])
def test_checksums(size):
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    assert _summaries.crc32c(data) == crc32c(data)
    assert _summaries.crc32c(bytes(size)) == crc32c(bytes(size))


def test_checksum_of_the_standard():
    """RFC 3720, B.4."""
    assert _summaries.crc32c(b"123456789") == crc32c(b"123456789") == 0xE3069283
    assert _summaries.crc32c(bytes(32)) == 0x8A9136AA


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**31, 2**63 - 1, -1, -2**63])
def test_integers(value):
    (got,) = message(_summaries.integer(7, value))[7]
    assert got == value % 2**64


# -- what is written -----------------------------------------------------------------------------

def test_files(tmp_path):
    with SummaryWriter(tmp_path / "a", filename_suffix=".x", purge_step=7) as writer:
        writer.add_scalar("s", 1, 3, walltime=12.5)
        assert writer.get_logdir() == str(tmp_path / "a")
        writer.close()
        writer.add_scalar("s", 2, 4)                # after close a new file begins
    names = os.listdir(tmp_path / "a")
    assert len(names) == 2 and all(n.startswith("events.out.tfevents.") and n.endswith(".x") for n in names)
    found = sorted((events(tmp_path / "a" / n) for n in names), key=len)
    first, purge, start, scalar = found[1]
    assert first[3] == [b"brain.Event:2"] and first[1][0] > 1.7e9
    assert purge[2] == [7] and start[2] == [7]
    assert message(start[7][0]) == {1: [1]}
    assert scalar[1] == [12.5] and scalar[2] == [3]
    assert len(found[0]) == 2


def test_scalars(written):
    def write(w):
        for i, v in enumerate([1.5, 2, pt.tensor(3.0), pt.tensor([[4]]), np.float32(5), np.array([6.0]), True,
                               pt.tensor(0.5, dtype=pt.bfloat16), 1e300, float("nan")]):
            w.add_scalar("loss", v, i)
        w.add_scalar("new", 0.1, new_style=True)
        w.add_scalar("new", 0.1, -2, new_style=True, double_precision=True)
        for bad in (pt.ones(2), np.ones((2, 2))):
            with pytest.raises(AssertionError, match="one element"):
                w.add_scalar("bad", bad)
        with pytest.raises(NotImplementedError, match="got str"):
            w.add_scalar("bad", "blob")
    found = written(write)
    assert [(s, t) for s, t, _ in found[:10]] == [(i, "loss") for i in range(10)]
    np.testing.assert_equal([v[2][0] for _, _, v in found[:10]], [1.5, 2, 3, 4, 5, 6, 1, 0.5, np.inf, np.nan])
    (step, tag, single), (last, _, double) = found[10:]
    assert (step, last, tag) == (None, 2**64 - 2, "new")
    assert tensor(single[8][0])[1] == np.float32(0.1) and plugin(single) == ("scalars", b"")
    assert tensor(double[8][0])[1] == 0.1


def test_several_scalars(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for step in range(2):
            writer.add_scalars("run/a", {"x": step, "y": -step}, step, walltime=1.0)
    assert sorted(os.listdir(tmp_path))[1:] == ["run_a_x", "run_a_y"]
    found = {os.path.basename(os.path.dirname(p)): values(p) for p in files_of(tmp_path)}
    assert [(s, t, v[2][0]) for s, t, v in found["run_a_y"]] == [(0, "run/a", 0), (1, "run/a", -1)]


@pytest.mark.parametrize("bins", ["tensorflow", "auto", 5, [0, 1, 2, 4]])
def test_histogram(written, bins):
    data = np.random.default_rng(0).normal(1, 1, 500)
    ((_, _, value),) = written(lambda w: w.add_histogram("h", pt.from_numpy(data.reshape(20, 25)), 1, bins))
    fields = message(value[5][0])
    numbers = [fields[i][0] for i in range(1, 6)]
    np.testing.assert_allclose(numbers, [data.min(), data.max(), 500, data.sum(), (data * data).sum()], rtol=1e-14)
    limits, counts = (np.frombuffer(fields[i][0]) for i in (6, 7))
    assert len(limits) == len(counts) and counts[0] == 0 and counts[1] > 0 and counts[-1] > 0
    for i in range(1, len(limits)):
        right = data <= limits[i] if i == len(limits) - 1 and bins != "tensorflow" else data < limits[i]
        assert counts[i] == ((data >= limits[i - 1]) & right).sum()
    inside = 500 if not isinstance(bins, list) else ((data >= 0) & (data <= 4)).sum()
    assert counts.sum() == inside


def test_histogram_of_fewer_bins(written):
    data = np.arange(1000.0)
    ((_, _, value),) = written(lambda w: w.add_histogram("h", data, bins=100, max_bins=30))
    counts = np.frombuffer(message(value[5][0])[7][0])
    limits = np.frombuffer(message(value[5][0])[6][0])
    assert counts.tolist() == [0] + [30] * 33 + [10]
    np.testing.assert_allclose(np.diff(limits), [29.97] * 33 + [9.99])


def test_histograms_that_are_refused(tmp_path):
    with SummaryWriter(tmp_path) as w:
        with pytest.raises(ValueError, match="no element"):
            w.add_histogram("h", pt.ones(0))
        with pytest.raises(ValueError, match="no value lies in a bin"):
            w.add_histogram("h", pt.ones(3), bins=[2.0, 3.0])
        with pytest.raises(ValueError, match="equal lengths, got 2 and 1"):
            w.add_histogram_raw("h", 0, 1, 2, 3, 4, [1, 2], [1])
        for add in (w.add_histogram, w.add_scalar, lambda tag, value: w.add_hparams({tag: value}, {})):
            with pytest.raises(TypeError, match="real numbers, got complex64"):
                add("h", pt.ones(1, dtype=pt.complex64))


def test_images(written):
    rng = np.random.default_rng(0)
    chw = rng.random((3, 4, 5)).astype(np.float32)
    grey = rng.integers(0, 256, (4, 5), np.uint8)
    batch = rng.integers(0, 256, (10, 1, 2, 3), np.uint8)
    rgba = rng.integers(0, 256, (4, 6, 4), np.uint8)

    def write(w):
        w.add_image("a", pt.from_numpy(chw), 0)
        w.add_image("a", chw.transpose(2, 1, 0) * 3 - 1, 1, dataformats="WHC")
        w.add_image("a", grey, 2, dataformats="HW")
        w.add_image("a", rgba, 3, dataformats="HWC")
        w.add_images("a", pt.from_numpy(batch), 4)
        w.add_image("a", rgba[..., :2], 5, dataformats="HWC")
        for shape, letters in (((3, 4), "CHW"), ((3, 4, 5), "CHH"), ((3, 4, 5), "CHX"), ((5, 4, 5), "CHW"),
                               ((1, 4, 4, 5), "NCHW")):
            with pytest.raises(AssertionError, match="add_image"):
                w.add_image("bad", np.zeros(shape), dataformats=letters)
        for shape, letters in (((3, 0, 5), "CHW"), ((0, 3, 4, 5), "NCHW")):
            with pytest.raises(ValueError, match="has no pixel"):
                w.add_image("bad", np.zeros(shape), dataformats=letters)
    found = [message(v[4][0]) for _, _, v in written(write)]
    assert len(found) == 6
    images = [pixels(f[4][0]) for f in found]
    assert [(f[1][0], f[2][0], f[3][0]) for f in found] == [i.shape for i in images]
    assert (images[0] == (chw * np.float32(255)).astype(np.uint8).transpose(1, 2, 0)).all()
    assert (images[1] == ((chw * 3 - 1) * np.float32(255)).clip(0, 255).astype(np.uint8).transpose(1, 2, 0)).all()
    assert (images[2] == grey[:, :, None]).all()
    assert (images[3] == rgba).all()
    want = np.zeros((4, 24), np.uint8)
    for i in range(10):
        want[i // 8 * 2:i // 8 * 2 + 2, i % 8 * 3:i % 8 * 3 + 3] = batch[i, 0]
    assert (images[4] == want[:, :, None]).all()
    assert (images[5] == rgba[..., :2]).all()


def test_videos(written):
    clip = np.random.default_rng(0).integers(0, 256, (2, 5, 3, 4, 6), np.uint8)

    def write(w):
        w.add_video("v", pt.from_numpy(clip), 1, fps=8)
        w.add_video("v", clip[:1, :1] / np.float32(255), 2)
        with pytest.raises(ValueError, match=r"5 dimensions \(N, T, C, H, W\) .* got shape \(5, 3, 4, 6\)"):
            w.add_video("v", clip[0])
        with pytest.raises(ValueError, match="fps must be from"):
            w.add_video("v", clip, fps=0)
    many, one = (frames(message(v[4][0])[4][0]) for _, _, v in written(write))
    assert [time for time, _ in many] == [125] * 5
    for i, (_, picture) in enumerate(many):
        assert (picture == np.concatenate([clip[0, i], clip[1, i]], 2).transpose(1, 2, 0)).all()
    ((time, picture),) = one
    assert time is None and np.abs(picture.astype(int) - clip[0, 0].transpose(1, 2, 0)).max() <= 1


def test_boxes(written):
    pytest.importorskip("PIL")

    def write(w):
        w.add_image_with_boxes("b", pt.zeros(3, 30, 40), pt.tensor([[4., 5, 30, 25]]))
        w.add_image_with_boxes("b", pt.zeros(3, 30, 40), pt.tensor([[4., 5, 30, 25]]), labels=["one"], rescale=2)
        with pytest.raises(ValueError, match="labels must be as many as the boxes, got 2 and 1"):
            w.add_image_with_boxes("b", pt.zeros(3, 30, 40), pt.zeros(1, 4), labels=["a", "b"])
        with pytest.raises(ValueError, match=r"shape \(number, 4\), got \(4,\)"):
            w.add_image_with_boxes("b", pt.zeros(3, 30, 40), pt.zeros(4))
    one, two = (pixels(message(v[4][0])[4][0]) for _, _, v in written(write))
    assert one.shape == (30, 40, 3) and two.shape == (60, 80, 3)
    red = (one == [255, 0, 0]).all(2)
    assert red[5:26, 4].all() and red[5:26, 30].all() and red[5, 4:31].all() and red[25, 4:31].all()
    assert not red[8:22, 8:27].any() and not one[~red].any()
    assert two[30:48, 12:20, 0].any()               # the label


def test_mesh(written):
    points, colors, faces = np.arange(12.0).reshape(1, 4, 3), np.full((1, 4, 3), 200), np.array([[[0, 1, 2]]])

    def write(w):
        w.add_mesh("m", pt.from_numpy(points), colors, faces, {"camera": {"fov": 75}}, 3)
        with pytest.raises(ValueError, match=r"vertex values must have shape \(N, number, 3\), got \(4, 3\)"):
            w.add_mesh("m", points[0])
    found = written(write)
    for (step, tag, value), (name, kind, want) in zip(found, (("VERTEX", 1, points), ("FACE", 2, faces),
                                                              ("COLOR", 3, colors)), strict=True):
        assert (step, tag) == (3, f"m_{name}")
        shape, values_ = tensor(value[8][0])
        assert shape == want.shape and (values_ == want).all()
        plug, content = plugin(value)
        content = message(content)
        assert plug == "mesh" and content[2] == [b"m"] and content[3] == [kind] and content[7] == [2 + 4 + 8]
        assert content[5] == [b'{"camera": {"fov": 75}}'] and content[6] == [bytes(want.shape)]


def test_embeddings(tmp_path):
    pictures = np.random.default_rng(0).integers(0, 256, (3, 1, 2, 4), np.uint8)
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(pt.arange(6.0).reshape(3, 2), ["a", 5, "c\td"], pictures, 7, 'x/"y"')
        writer.add_embedding(np.eye(2), [["a", 1], ["b", 2]], metadata_header=["name", "size"])
        for arguments, text in (((np.eye(2), ["a"]), "metadata must be as many as the points, got 1 and 2"),
                                ((np.ones(3),), r"mat must have 2 dimensions, got shape \(3,\)"),
                                ((np.eye(2), None, np.ones((2, 4))), "label_img must have shape"),
                                ((np.eye(2), None, np.ones((2, 2, 3, 3))), r"got \(2, 2, 3, 3\)"),
                                ((np.eye(2), None, np.ones((2, 3, 3))), r"got \(2, 3, 3\)"),
                                ((np.eye(2), None, np.ones((2, 3, 0, 3))), r"got \(2, 3, 0, 3\)"),
                                ((np.eye(2), [["a"], ["b", "c"]], None, 0, "t", ["n"]), "equal lengths")):
            with pytest.raises(AssertionError, match=text):
                writer.add_embedding(*arguments)
    text = (tmp_path / "projector_config.pbtxt").read_text().splitlines()
    place = "00007/x%2F%22y%22"
    assert text == [
        rf'embeddings {{ tensor_name: "x/\"y\":00007" tensor_path: "{place}/tensors.tsv" '
        f'metadata_path: "{place}/metadata.tsv" '
        f'sprite {{ image_path: "{place}/sprite.png" single_image_dim: 4 single_image_dim: 2 }} }}',
        'embeddings { tensor_name: "default:00000" tensor_path: "00000/default/tensors.tsv" '
        'metadata_path: "00000/default/metadata.tsv" }']
    assert (tmp_path / place / "tensors.tsv").read_text() == "0.0\t1.0\n2.0\t3.0\n4.0\t5.0\n"
    assert (tmp_path / place / "metadata.tsv").read_text() == "a\n5\nc d\n"
    assert (tmp_path / "00000/default/metadata.tsv").read_text() == "name\tsize\na\t1\nb\t2\n"
    sprite = pixels((tmp_path / place / "sprite.png").read_bytes())
    want = np.zeros((4, 8), np.uint8)
    for i in range(3):
        want[i // 2 * 2:i // 2 * 2 + 2, i % 2 * 4:i % 2 * 4 + 4] = pictures[i, 0]
    assert (sprite == want[:, :, None]).all()


def test_tags_and_texts_that_are_none(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for call, text in ((lambda: writer.add_scalar(5, 1), "tag must be a str, got int"),
                           (lambda: writer.add_histogram(None, np.ones(2)), "tag must be a str, got NoneType"),
                           (lambda: writer.add_text("a", 5), "text_string must be a str, got int")):
            with pytest.raises(TypeError, match=text):
                call()


def test_figures(written):
    plt = pytest.importorskip("matplotlib.pyplot")
    before = plt.get_fignums()

    def write(w):
        made = [plt.figure(figsize=(2, 1), dpi=50, facecolor=c) for c in ("red", "blue")]
        w.add_figure("f", made[0], 1, close=False)
        w.add_figure("f", made, 2)
    one, two = (pixels(message(v[4][0])[4][0]) for _, _, v in written(write))
    assert one.shape == (50, 100, 3) and (one == [255, 0, 0]).all()
    assert two.shape == (50, 200, 3) and (two[:, :100] == one).all() and (two[:, 100:] == [0, 0, 255]).all()
    assert plt.get_fignums() == before


def test_text_and_sound(written):
    sound = np.linspace(-2, 2, 50)

    def write(w):
        w.add_text("notes", "a *b* ü", 1)
        w.add_audio("beep", pt.from_numpy(sound).reshape(1, 50), 2, sample_rate=8000)
    (_, tag, note), (_, _, beep) = written(write)
    assert tag == "notes/text_summary" and plugin(note) == ("text", b"")
    assert tensor(note[8][0]) == ((1,), ["a *b* ü"])
    fields = message(beep[6][0])
    assert (fields[1], fields[2], fields[3], fields[5]) == ([8000.0], [1], [50], [b"audio/wav"])
    with wave.open(io.BytesIO(fields[4][0])) as read:
        assert read.getframerate() == 8000
        assert (np.frombuffer(read.readframes(50), "<i2") == (sound.clip(-1, 1) * 32767).astype(int)).all()


@pytest.mark.parametrize("value", [pt.arange(6.0).reshape(2, 3), pt.tensor([True, False]), pt.tensor(3),
                                   pt.ones(2, dtype=pt.float16)])
def test_tensors(written, value):
    ((_, _, found),) = written(lambda w: w.add_tensor("t", value))
    shape, got = tensor(found[8][0])
    assert shape == tuple(value.shape) and got.dtype == value.numpy().dtype and (got == value.numpy()).all()


def test_pr_curve(written):
    labels, predictions = pt.tensor([0, 1, 1, 0, 1]), pt.tensor([0.1, 0.4, 0.8, 0.6, 1.0])
    ((_, _, found),) = written(lambda w: w.add_pr_curve("c", labels, predictions, num_thresholds=6))
    assert plugin(found)[0] == "pr_curves" and message(plugin(found)[1]) == {2: [6]}
    _, (tp, fp, tn, fn, precision, recall) = tensor(found[8][0])
    assert tp.tolist() == [3, 3, 3, 2, 2, 1] and fp.tolist() == [2, 1, 1, 1, 0, 0]
    assert (tp + fn == 3).all() and (fp + tn == 2).all()
    np.testing.assert_allclose(precision, tp / (tp + fp))
    np.testing.assert_allclose(recall, tp / 3)


def test_custom_scalars(written):
    layout = {"A": {"one": ["Multiline", ["x", "y"]]}, "B": {"two": ["Margin", ["v", "low", "high"]]}}
    ((_, tag, found),) = written(lambda w: w.add_custom_scalars(layout))
    assert tag == "custom_scalars__config__" and plugin(found)[0] == "custom_scalars"
    first, second = map(message, message(message(found[8][0])[8][0])[2])
    assert first[1] == [b"A"] and second[1] == [b"B"]
    assert message(message(first[2][0])[2][0]) == {1: [b"x", b"y"]}
    assert message(message(message(second[2][0])[3][0])[1][0]) == {1: [b"v"], 2: [b"low"], 3: [b"high"]}


def test_hyperparameters(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.1, "n": 3, "kind": "a", "flag": True, "np": np.bool_(False), "none": None,
                            "t": pt.tensor([2.0])}, {"acc": 0.5}, {"kind": ["a", "b"]}, run_name="r", global_step=1)
        for bad in ({"lr": [1]}, {"lr": ["x"]}, {"other": [1.0]}, {"lr": 0.1}):
            with pytest.raises(TypeError, match="must be a list of values"):
                writer.add_hparams({"lr": 0.1}, {}, bad)
        with pytest.raises(ValueError, match="got list"):
            writer.add_hparams({"lr": []}, {})
        for several in (pt.ones(3), pt.ones(0)):
            with pytest.raises(ValueError, match="one element, got shape"):
                writer.add_hparams({"lr": several}, {})
        with pytest.raises(ValueError, match="got complex"):
            writer.add_hparams({"lr": np.complex64(1)}, {})
        with pytest.raises(TypeError, match="must be dictionaries"):
            writer.add_hparams([], {})
    (path,) = files_of(tmp_path / "r")
    found = {tag: value for _, tag, value in values(path)}
    assert list(found) == [*(f"_hparams_/{t}" for t in ("experiment", "session_start_info", "session_end_info")), "acc"]
    data = {tag: message(plugin(value)[1]) for tag, value in found.items() if tag != "acc"}
    started = [message(d) for d in message(data["_hparams_/session_start_info"][3][0])[1]]
    assert {f[1][0]: message(f[2][0]) for f in started} == {
        b"lr": {2: [0.1]}, b"n": {2: [3.0]}, b"kind": {3: [b"a"]}, b"flag": {4: [1]}, b"np": {4: [0]}, b"t": {2: [2.0]}}
    experiment = message(data["_hparams_/experiment"][2][0])
    assert [(message(i)[1][0], message(i)[4][0]) for i in experiment[4]] == [
        (b"lr", 3), (b"n", 3), (b"kind", 1), (b"flag", 2), (b"np", 2), (b"t", 3)]
    assert [message(v) for v in message(message(experiment[4][2])[5][0])[1]] == [{3: [b"a"]}, {3: [b"b"]}]
    assert message(message(experiment[5][0])[1][0]) == {2: [b"acc"]}
    assert message(data["_hparams_/session_end_info"][4][0]) == {1: [1]}


def test_what_is_not_there_says_so(tmp_path):
    with SummaryWriter(tmp_path) as writer, pytest.raises(NotImplementedError, match=r"^add_onnx_graph: "):
        writer.add_onnx_graph("x", None)


class Branches(pt.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = pt.nn.Sequential(pt.nn.Linear(3, 4), pt.nn.ReLU(inplace=True))
        self.head = pt.nn.Linear(4, 2)
        self.register_buffer("scale", pt.ones(4))

    def forward(self, x, more=None):
        y = self.body(x) * self.scale
        y[0] = pt.zeros(4)
        y.add_(self.body(more["z"]))
        return {"out": self.head(y), "parts": [y.sum(), x]}


def test_graph(tmp_path, capsys):
    """Nodes come after their inputs, are named by modules, and have the shapes of their results."""
    model = Branches()
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, (pt.ones(5, 3), {"z": pt.ones(5, 3)}), verbose=True)
    assert "Branches/Linear[head]/linear" in capsys.readouterr().out
    (path,) = files_of(tmp_path)
    (event,) = [e for e in events(path) if 4 in e]
    nodes = [message(n) for n in message(event[4][0])[1]]
    names = [n[1][0].decode() for n in nodes]
    inputs = {name: [i.decode() for i in n.get(3, [])] for name, n in zip(names, nodes)}
    shapes = {}
    for name, n in zip(names, nodes):
        sizes = message(message(message(n[5][0])[2][0])[1][0])[7]
        shapes[name] = [tuple(message(d)[1][0] for d in message(s).get(2, [])) for s in sizes]
    assert len(set(names)) == len(names)
    for k, name in enumerate(names):
        assert all(i in names[:k] for i in inputs[name]), name
    body = "Branches/Sequential[body]"
    assert inputs["Branches/Linear[head]/linear"] == [
        "Branches/add", "Branches/Linear[head]/weight", "Branches/Linear[head]/bias"]
    assert inputs["Branches/add"] == ["Branches/setitem", f"{body}/ReLU[1]/relu_1"]
    assert inputs["Branches/setitem"] == ["Branches/mul", "Branches/zeros"]
    assert inputs["Branches/mul"] == [f"{body}/ReLU[1]/relu", "Branches/scale"]
    assert inputs[f"{body}/Linear[0]/linear_1"][0] == "input/1" and inputs["output/2"] == ["input/0"]
    assert shapes[f"{body}/Linear[0]/weight"] == [(4, 3)] and shapes["Branches/Linear[head]/linear"] == [(5, 2)]
    assert shapes["Branches/sum"] == [()] and shapes["output/1"] == [()]
    # The model is left as it was, also where it fails.
    with SummaryWriter(tmp_path) as writer:
        for wrong, error in ((None, ValueError), (pt.ones(5, 2), RuntimeError)):
            with pytest.raises(error):
                writer.add_graph(model, wrong)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    model.body(pt.ones(1, 3)).sum().backward()
    assert model.body[0].weight.grad is not None


# -- the thread ----------------------------------------------------------------------------------

def test_queue(tmp_path):
    """Events wait until there are more than max_queue, or for flush."""
    with SummaryWriter(tmp_path, max_queue=5) as writer:
        (path,) = files_of(tmp_path)
        for i in range(5):
            writer.add_scalar("s", i, i)
        assert values(path) == []
        writer.flush()
        assert len(values(path)) == 5
    assert not [t for t in threading.enumerate() if t.name == "ptcore-event-file"]


def test_queue_of_none(tmp_path):
    with SummaryWriter(tmp_path, max_queue=0) as writer:
        for i in range(100):
            writer.add_scalar("s", i, i)
    assert [s for s, _, _ in values(files_of(tmp_path)[0])] == list(range(100))


def test_many_threads(tmp_path):
    with SummaryWriter(tmp_path, max_queue=3) as writer:
        def add(k):
            for i in range(50):
                writer.add_scalar(f"t{k}", i, i)
        threads = [threading.Thread(target=add, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    found = values(files_of(tmp_path)[0])
    for k in range(4):
        assert [s for s, t, _ in found if t == f"t{k}"] == list(range(50))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is always full")
def test_errors_of_the_disk(tmp_path):
    """An error of the thread comes out of the next call, and nobody waits for ever."""
    writer = SummaryWriter(tmp_path, max_queue=0)
    (file,) = writer._files.values()
    file._file.close()
    file._file = open("/dev/full", "wb", buffering=0)
    writer.add_scalar("s", 1)
    for call in (writer.flush, lambda: writer.add_scalar("s", 2), writer.flush, writer.close):
        with pytest.raises(OSError, match="No space left"):
            call()
    assert not file._thread.is_alive()
    assert file._file.closed


def test_dropped_writer_is_closed(tmp_path):
    writer = SummaryWriter(tmp_path)
    writer.add_scalar("s", 1)
    del writer
    assert len(values(files_of(tmp_path)[0])) == 1


PROGRAM = """
import os, sys
import numpy as np
from ptcore.utils.tensorboard import SummaryWriter
w = SummaryWriter(sys.argv[1], max_queue=10)
if sys.argv[2] == "exit":
    w.add_scalar("s", 1, 1)
elif sys.argv[2] == "fork":
    child = os.fork()
    if child == 0:
        try:
            w.add_scalar("s", 1, 1)
        except RuntimeError as error:
            w.close()
            with SummaryWriter(sys.argv[1] + "/child") as own:
                own.add_scalar("s", 2, 2)
            os._exit(7 if "make another one" in str(error) else 8)
    w.add_scalar("s", 3, 3)
    w.close()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
else:
    print("ready", flush=True)
    values = np.arange(1000.0)
    for i in range(10**9):
        w.add_scalar("s", i, i)
        w.add_histogram("h", values + i, i)
        if i == 200:
            w.flush()
            print("go", flush=True)
"""


def run(tmp_path, how):
    command = [sys.executable, "-P", "-c", PROGRAM, str(tmp_path), how]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_written_when_python_ends(tmp_path):
    process = run(tmp_path, "exit")
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert [s for s, _, _ in values(files_of(tmp_path)[0])] == [1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child(tmp_path):
    process = run(tmp_path, "fork")
    process.communicate(timeout=60)
    assert process.returncode == 0
    steps = {os.path.basename(os.path.dirname(p)): [s for s, _, _ in values(p)] for p in files_of(tmp_path)}
    assert steps == {"child": [2], tmp_path.name: [3]}


@pytest.mark.counts
@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_killed_in_the_middle(tmp_path):
    process = run(tmp_path, "kill")
    assert process.stdout.readline() == "ready\n"
    assert process.stdout.readline() == "go\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    found = values(files_of(tmp_path)[0])
    assert len(found) >= 402
    assert [(s, t) for s, t, _ in found] == [(i // 2, "sh"[i % 2]) for i in range(len(found))]
