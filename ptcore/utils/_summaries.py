"""The parts of TensorBoard's event files as bytes: fields of messages, summaries, records with checksums.

A message is the concatenation of its fields. The first functions make a field each: its number and type, then the
value. The others make a ``Summary`` of one value; the numbers of fields are those of TensorBoard's .proto files. A
record is the length, its checksum, the data and their checksum.
"""
import functools
import io
import itertools
import json
import math
import os
import struct
import urllib.parse
import zlib

import ptcore
from ptcore._atomic import write_atomically
from ptcore._libraries import library

np = library("numpy")

__all__ = ["audio", "boxes", "crc32c", "custom_scalars", "double", "embedding", "figures", "histogram",
           "histogram_raw", "hparams", "image", "integer", "length", "mesh", "packed", "pr_curve", "pr_curve_raw",
           "record", "scalar", "single", "tensor", "text", "video"]

_POLYNOMIAL = 0x82F63B78                # Castagnoli's, reflected
_SHORT = 4096                           # with fewer bytes, a table and a loop are quicker than NumPy


def _varint(value):
    """An integer with seven bits a byte, lowest first; negative numbers as 64 bits."""
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(field, value):
    """An int, bool or enum."""
    return _varint(field << 3) + _varint(int(value))


def double(field, value):
    """A number of 64 bits."""
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def single(field, value):
    """A number of 32 bits; values out of range become infinite."""
    try:
        data = struct.pack("<f", value)
    except OverflowError:
        data = struct.pack("<f", math.copysign(math.inf, value))
    return _varint(field << 3 | 5) + data


def length(field, data):
    """Text, bytes or a message."""
    if isinstance(data, str):
        data = data.encode()
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def packed(field, values):
    """Numbers of 64 bits, repeated."""
    return length(field, struct.pack(f"<{len(values)}d", *values))


def record(data):
    """One record of a TFRecord file."""
    size = struct.pack("<Q", len(data))
    return b"".join((size, _masked(size), data, _masked(data)))


def _masked(data):
    """A checksum in TFRecord's form, rotated and offset, since data may contain checksums themselves."""
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


@functools.cache
def _table():
    table = []
    for crc in range(256):
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


def _on(crc, data):
    table = _table()
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc


def crc32c(data):
    """CRC-32C.

    Long data are cut into about as many rows as a row has bytes, and all rows are processed together. The state is
    linear over bits: the state after a row is that of the row alone, from zero, plus the previous state advanced by a
    row of zeros. The advance of each of the 32 bits is found by 32 more rows.
    """
    crc, data = 0xFFFFFFFF, memoryview(data)
    if len(data) >= _SHORT:
        table = np.array(_table(), np.uint32)
        width = math.isqrt(len(data))
        rows = len(data) // width
        columns = np.zeros((width, rows + 32), np.uint8)
        columns[:, :rows] = np.frombuffer(data[:rows * width], np.uint8).reshape(rows, width).T
        state = np.zeros(rows + 32, np.uint32)
        state[rows:] = 1 << np.arange(32, dtype=np.uint32)
        for column in columns:
            state = table[(state ^ column) & 255] ^ state >> 8
        state = state.tolist()
        bits = state[rows:]
        for own in state[:rows]:
            for i in range(32):
                if crc >> i & 1:
                    own ^= bits[i]
            crc = own
        data = data[rows * width:]
    return _on(crc, data) ^ 0xFFFFFFFF


_DTYPES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8, "int64": 9,
           "bool": 10, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23}
_STRING = 7


def array_of(value, complex_too=False):
    """NumPy array of a tensor, an array or a number; bfloat16 as float32."""
    if isinstance(value, ptcore.Tensor):
        value = value.detach().cpu()
        value = (value.float() if value.dtype == ptcore.bfloat16 else value).numpy()
    elif np.isscalar(value) and not isinstance(value, str):
        value = np.array([value])
    elif not isinstance(value, np.ndarray):
        raise NotImplementedError("SummaryWriter: expected a tensor, an array or a number, got "
                                  f"{type(value).__name__}")
    if value.dtype.kind == "c" and not complex_too:
        raise TypeError(f"SummaryWriter: expected real numbers, got {value.dtype}; only add_tensor takes complex ones")
    return value


def _summary(tag, value, plugin=None, content=b""):
    """A summary of one value under a tag, with the name and data of a plugin if there is one."""
    if not isinstance(tag, str):
        raise TypeError(f"SummaryWriter: tag must be a str, got {type(tag).__name__}")
    data = length(1, tag) + value
    if plugin is not None:
        data += length(9, length(1, length(1, plugin) + length(2, content)))
    return length(1, data)


def _shape(sizes):
    return length(2, b"".join(length(2, integer(1, n)) for n in sizes))


def _tensor(array):
    if array.dtype.name not in _DTYPES:
        raise ValueError(f"add_tensor: unsupported dtype {array.dtype}")
    data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return length(8, integer(1, _DTYPES[array.dtype.name]) + _shape(array.shape) + length(4, data))


def _string(data, sizes=()):
    return length(8, integer(1, _STRING) + _shape(sizes) + length(8, data))


def scalar(tag, value, new_style=False, double_precision=False):
    """A number."""
    array = array_of(value).squeeze()
    if array.ndim != 0:
        raise AssertionError(f"add_scalar: scalar_value must hold one element, got shape {array.shape}")
    value = float(array)
    if not new_style:
        return _summary(tag, single(2, value))
    with np.errstate(over="ignore"):
        return _summary(tag, _tensor(np.array(value, np.float64 if double_precision else np.float32)), "scalars")


def tensor(tag, value):
    """A tensor as it is."""
    return _summary(tag, _tensor(array_of(value, complex_too=True)), "tensor")


@functools.cache
def _default_bins():
    """TensorFlow's bins, whose limits grow by a tenth, on both sides of zero."""
    limits, v = [], 1e-12
    while v < 1e20:
        limits.append(v)
        v *= 1.1
    return np.array([-v for v in reversed(limits)] + [0.0] + limits)


def histogram(tag, values, bins, max_bins=None):
    """Counts of values in bins, as NumPy's ``histogram`` finds them."""
    values = array_of(values).astype(float).reshape(-1)
    if values.size == 0:
        raise ValueError("add_histogram: values has no element")
    tensorflow = isinstance(bins, str) and bins == "tensorflow"
    counts, limits = np.histogram(values, bins=_default_bins() if tensorflow else bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        counts = np.add.reduceat(counts, np.arange(0, len(counts), step))
        limits = np.append(limits[:-1:step], limits[-1])
    filled = np.flatnonzero(counts)
    if filled.size == 0:
        raise ValueError("add_histogram: no value lies in a bin")
    # a bin is identified by its right limit, so an empty bin precedes the first
    start, end = filled[0], filled[-1] + 1
    counts = counts[start - 1:end] if start > 0 else np.concatenate([[0], counts[:end]])
    return histogram_raw(tag, values.min(), values.max(), len(values), values.sum(), values.dot(values),
                         limits[start:end + 1].tolist(), counts.tolist())


def histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts):
    """A histogram from given counts."""
    numbers = b"".join(double(i, v) for i, v in enumerate((min, max, num, sum, sum_squares), 1))
    return _summary(tag, length(5, numbers + packed(6, bucket_limits) + packed(7, bucket_counts)))


def _to_hwc(array, dataformats):
    """Images as (height, width, channels); several as one grid with eight in a row; one channel as three."""
    letters = dataformats.upper()
    if len(set(letters)) != len(letters):
        raise AssertionError(f"add_image: dataformats must name each dimension once, got {dataformats!r}")
    if array.ndim != len(letters):
        raise AssertionError(f"add_image: dataformats {dataformats!r} names {len(letters)} dimensions, the image has "
                             f"shape {array.shape}")
    order = {4: "NHWC", 3: "HWC", 2: "HW"}.get(len(letters), "")
    if sorted(order) != sorted(letters):
        raise AssertionError(f"add_image: dataformats must be made of NCHW, CHW or HW, got {dataformats!r}")
    array = array.transpose([letters.index(c) for c in order])
    if array.ndim == 2:
        array = array[:, :, None]
    if array.shape[-1] == 1:
        array = np.repeat(array, 3, axis=-1)
    if 0 in array.shape:
        raise ValueError(f"add_image: the image has no pixel, its shape is {array.shape}")
    if array.ndim == 4:
        if array.shape[-1] != 3:
            raise AssertionError(f"add_images: images must have 1 or 3 channels, got {array.shape[-1]}")
        array = _grid(array, min(len(array), 8))
    return array


def _grid(images, columns, rows=0):
    """NHWC images as one grid; empty cells are black."""
    n, h, w, c = images.shape
    rows = max(rows, -(-n // columns))
    grid = np.zeros((rows * columns, h, w, c), images.dtype)
    grid[:n] = images
    return grid.reshape(rows, columns, h, w, c).swapaxes(1, 2).reshape(rows * h, columns * w, c)


_COLORS = {2: 4, 3: 2, 4: 6}            # PNG's codes for grey and alpha, colours, colours and alpha


def _png(*frames, fps=1):
    """The PNG file of an image of bytes with 2 to 4 channels; several images make an animated PNG, which repeats."""
    height, width, channels = frames[0].shape
    if channels not in _COLORS:
        raise AssertionError(f"add_image: an image must have 1 to 4 channels, got {channels}")

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    parts = [b"\x89PNG\r\n\x1a\n",
             chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, _COLORS[channels], 0, 0, 0))]
    if len(frames) > 1:
        parts.append(chunk(b"acTL", struct.pack(">2I", len(frames), 0)))
    number = itertools.count()          # sequence numbers of the animation's chunks
    for i, pixels in enumerate(frames):
        rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row begins with the code of its filter, none
        rows[:, 1:] = pixels.reshape(height, width * channels)
        data = zlib.compress(rows)
        if len(frames) > 1:
            parts.append(chunk(b"fcTL", struct.pack(">5I2H2B", next(number), width, height, 0, 0,
                                                    max(round(1000 / fps), 1), 1000, 0, 0)))
        parts.append(chunk(b"fdAT", struct.pack(">I", next(number)) + data) if i else chunk(b"IDAT", data))
    return b"".join((*parts, chunk(b"IEND", b"")))


def _pixels(array, dataformats):
    """An image as bytes, from bytes or from numbers from 0 to 1."""
    scale = 1 if array.dtype == np.uint8 else 255
    return (_to_hwc(array, dataformats).astype(np.float32) * scale).clip(0, 255).astype(np.uint8)


def _images(tag, *frames, fps=1):
    height, width, channels = frames[0].shape
    return _summary(tag, length(4, integer(1, height) + integer(2, width) + integer(3, channels)
                                     + length(4, _png(*frames, fps=fps))))


def image(tag, value, dataformats):
    """An image of bytes, or of numbers from 0 to 1."""
    return _images(tag, _pixels(array_of(value), dataformats))


def video(tag, value, fps):
    """Several videos side by side."""
    array = array_of(value)
    if array.ndim != 5 or 0 in array.shape:
        raise ValueError(f"add_video: vid_tensor must have 5 dimensions (N, T, C, H, W) and a pixel, got shape "
                         f"{array.shape}")
    if not 0.02 <= fps <= 1000:
        raise ValueError(f"add_video: fps must be from 0.02 to 1000, got {fps}")
    return _images(tag, *(_pixels(array[:, t], "NCHW") for t in range(array.shape[1])), fps=fps)


def boxes(tag, value, box_tensor, dataformats, rescale, labels):
    """An image with a red frame around each box, and a label in its lower left corner."""
    from PIL import Image, ImageDraw

    where = array_of(box_tensor)
    if where.ndim != 2 or where.shape[1] != 4:
        raise ValueError(f"add_image_with_boxes: box_tensor must have shape (number, 4), got {where.shape}")
    if labels is not None and len(labels) != len(where):
        raise ValueError(f"add_image_with_boxes: labels must be as many as the boxes, got {len(labels)} and "
                         f"{len(where)}")
    picture = Image.fromarray(_pixels(array_of(value), dataformats))
    draw = ImageDraw.Draw(picture)
    for i, (left, top, right, bottom) in enumerate(where.tolist()):
        draw.line([(left, top), (left, bottom), (right, bottom), (right, top), (left, top)], fill="red", width=2)
        if labels is not None:
            draw.rectangle(draw.textbbox((left, bottom), str(labels[i]), anchor="lb"), fill="red")
            draw.text((left, bottom), str(labels[i]), fill="black", anchor="lb")
    if rescale != 1:
        size = int(picture.width * rescale), int(picture.height * rescale)
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    return _images(tag, np.asarray(picture))


def mesh(tag, vertices, colors, faces, config):
    """A summary for each of the vertices, the triangles between them and their colours."""
    parts = [(kind, name, array_of(value).astype(np.float32)) for kind, name, value in
             ((1, "VERTEX", vertices), (2, "FACE", faces), (3, "COLOR", colors)) if value is not None]
    for _, name, array in parts:
        if array.ndim != 3 or array.shape[-1] != 3:
            raise ValueError(f"add_mesh: {name.lower()} values must have shape (N, number, 3), got {array.shape}")
    known = sum(1 << kind for kind, _, _ in parts)
    found = []
    for kind, name, array in parts:
        about = (length(2, tag) + integer(3, kind) + length(5, json.dumps(config or {}, sort_keys=True))
                 + length(6, b"".join(map(_varint, array.shape))) + integer(7, known))
        found.append(_summary(f"{tag}_{name}", _tensor(array), "mesh", about))
    return found


def embedding(folder, tag, step, values, metadata, header, pictures):
    """Writes points with their labels and pictures below a folder; returns the entry of the projector's list."""
    place = f"{step:05d}/{urllib.parse.quote(tag, safe=' ')}"
    points = array_of(values)
    if points.ndim != 2:
        raise AssertionError(f"add_embedding: mat must have 2 dimensions, got shape {points.shape}")
    for what, given in (("metadata", metadata), ("label_img", pictures)):
        if given is not None and len(given) != len(points):
            raise AssertionError(f"add_embedding: {what} must be as many as the points, got {len(given)} and "
                                 f"{len(points)}")
    name = json.dumps(f"{tag}:{step:05d}", ensure_ascii=False)
    entry = [f"tensor_name: {name}", f'tensor_path: "{place}/tensors.tsv"']
    files = {"tensors.tsv": "".join("\t".join(map(str, row)) + "\n" for row in points.tolist()).encode()}
    if metadata is not None:
        rows = [[m] for m in metadata] if header is None else [header, *metadata]
        if len({len(row) for row in rows}) > 1:
            raise AssertionError("add_embedding: metadata_header and each of metadata must have equal lengths")
        lines = ("\t".join(" ".join(str(cell).split()) for cell in row) for row in rows)
        files["metadata.tsv"] = "".join(line + "\n" for line in lines).encode()
        entry.append(f'metadata_path: "{place}/metadata.tsv"')
    if pictures is not None:
        array = array_of(pictures)
        if array.ndim != 4 or array.shape[1] not in (1, 3) or 0 in array.shape:
            raise AssertionError(f"add_embedding: label_img must have shape (N, 1 or 3, H, W), got {array.shape}")
        side = math.isqrt(len(array) - 1) + 1
        tiles = np.broadcast_to(array.transpose(0, 2, 3, 1), (len(array), *array.shape[2:], 3))
        files["sprite.png"] = _png(_pixels(_grid(tiles, side, side), "HWC"))
        entry.append(f'sprite {{ image_path: "{place}/sprite.png" single_image_dim: {array.shape[3]} '
                     f'single_image_dim: {array.shape[2]} }}')
    where = os.path.join(folder, place)
    os.makedirs(where, exist_ok=True)
    for file, data in files.items():
        write_atomically(os.path.join(where, file), lambda out, data=data: out.write(data))
    return f"embeddings {{ {' '.join(entry)} }}\n"


def figures(figure, close):
    """Pixels of a matplotlib figure, or of several of the same size, in CHW or NCHW order."""
    import matplotlib.pyplot as plt
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if isinstance(figure, list):
        return np.stack([figures(f, close) for f in figure])
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[:, :, :3]
    if close:
        plt.close(figure)
    return pixels.transpose(2, 0, 1)


def audio(tag, value, sample_rate):
    """Sound of one channel with values from -1 to 1; values outside are clipped."""
    import wave

    array = array_of(value).squeeze()
    if array.ndim != 1:
        raise AssertionError(f"add_audio: snd_tensor must have one dimension that is not 1, got shape {array.shape}")
    array = (array.clip(-1, 1) * np.iinfo(np.int16).max).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(sample_rate)
        out.writeframes(array.tobytes())
    return _summary(tag, length(6, single(1, sample_rate) + integer(2, 1) + integer(3, len(array))
                                     + length(4, file.getvalue()) + length(5, "audio/wav")))


def text(tag, value):
    """A text in Markdown."""
    if not isinstance(value, str):
        raise TypeError(f"add_text: text_string must be a str, got {type(value).__name__}")
    return _summary(f"{tag}/text_summary", _string(value.encode(), (1,)), "text")


def pr_curve(tag, labels, predictions, num_thresholds=127, weights=None):
    """Precision and recall at evenly spaced thresholds."""
    labels, predictions = array_of(labels).astype(np.float64), array_of(predictions)
    n = min(num_thresholds, 127)
    weights = 1.0 if weights is None else array_of(weights)
    bucket = np.int32(np.floor(predictions * (n - 1)))
    positive, negative = (np.histogram(bucket, n, (0, n - 1), weights=share * weights)[0]
                          for share in (labels, 1 - labels))
    tp, fp = (np.cumsum(counts[::-1])[::-1] for counts in (positive, negative))
    tn, fn = fp[0] - fp, tp[0] - tp
    least = 1e-7
    return pr_curve_raw(tag, tp, fp, tn, fn, tp / np.maximum(least, tp + fp), tp / np.maximum(least, tp + fn), n)


def pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, num_thresholds=127):
    """A curve from given counts."""
    data = np.stack([array_of(v) for v in (tp, fp, tn, fn, precision, recall)]).astype(np.float32)
    return _summary(tag, _tensor(data), "pr_curves", integer(2, min(num_thresholds, 127)))


def custom_scalars(layout):
    """A page of charts of several scalars."""
    categories = []
    for category, charts in layout.items():
        made = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError(f"add_custom_scalars: a Margin chart has 3 tags, got {len(tags)}")
                content = length(3, length(1, b"".join(length(i, t) for i, t in enumerate(tags, 1))))
            else:
                content = length(2, b"".join(length(1, t) for t in tags))
            made.append(length(2, length(1, title) + content))
        categories.append(length(2, length(1, category) + b"".join(made)))
    return _summary("custom_scalars__config__", _string(b"".join(categories)), "custom_scalars")


def _value(v):
    """(the field of a ``google.protobuf.Value``, hparams' name of the type)"""
    if isinstance(v, str):
        return length(3, v), 1
    if isinstance(v, (bool, np.bool_)):
        return integer(4, v), 2
    if isinstance(v, ptcore.Tensor):
        if v.numel() != 1:
            raise ValueError(f"add_hparams: a Tensor must hold one element, got shape {tuple(v.shape)}")
        v = float(array_of(v).item())
    if isinstance(v, (int, float, np.integer, np.floating)):
        return double(2, v), 3
    raise ValueError(f"add_hparams: a value must be an int, float, str, bool or Tensor, got {type(v).__name__}")


def hparams(values, metrics, domains):
    """The three summaries of the page of hyperparameters: the experiment, the session's start and its end."""
    for name, d in domains.items():
        if name not in values or not isinstance(d, list) or not all(isinstance(v, type(values[name])) for v in d):
            raise TypeError(f"add_hparams: hparam_domain_discrete[{name!r}] must be a list of values of the type of "
                            f"hparam_dict[{name!r}]")
    infos, started = b"", b""
    for name, v in values.items():
        if v is None:
            continue
        data, kind = _value(v)
        started += length(1, length(1, name) + length(2, data))
        info = length(1, name) + integer(4, kind)
        if name in domains:
            info += length(5, b"".join(length(1, _value(v)[0]) for v in domains[name]))
        infos += length(4, info)
    infos += b"".join(length(5, length(1, length(2, tag))) for tag in metrics)
    success = integer(1, 1)
    return [_summary(f"_hparams_/{tag}", b"", "hparams", length(field, data)) for tag, field, data in (
        ("experiment", 2, infos), ("session_start_info", 3, started), ("session_end_info", 4, success))]
