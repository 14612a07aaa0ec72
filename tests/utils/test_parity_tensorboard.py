"""Event files as TensorBoard's own readers see them, beside those of torch's SummaryWriter."""
import os

import numpy as np
import pytest

import ptcore as pt
from ptcore.utils.tensorboard import SummaryWriter

torch = pytest.importorskip("torch")
pytest.importorskip("tensorboard")
pytestmark = pytest.mark.parity

from tensorboard.backend.event_processing import event_accumulator, event_file_loader  # noqa: E402
from tensorboard.compat.proto import event_pb2  # noqa: E402
from tensorboard.plugins.custom_scalar import layout_pb2  # noqa: E402
from tensorboard.plugins.hparams import plugin_data_pb2 as hparams_pb2  # noqa: E402
from tensorboard.util import tensor_util  # noqa: E402
from torch.utils.tensorboard import SummaryWriter as TorchWriter  # noqa: E402

RNG = np.random.default_rng(0)
DATA = RNG.normal(size=(40, 5))
IMAGE = RNG.random((3, 6, 7)).astype(np.float32)
BATCH = RNG.integers(0, 256, (11, 3, 4, 5), np.uint8)
GREY = RNG.integers(0, 256, (6, 7), np.uint8)
LABELS = RNG.integers(0, 2, 200)
PREDICTIONS = RNG.random(200)


def figure(color):
    from matplotlib.figure import Figure
    made = Figure(figsize=(2, 1), facecolor=color)
    made.add_subplot().plot([1, 3, 2])
    return made


CALLS = {
    "scalar": lambda w, lib: [w.add_scalar("a", lib.tensor(0.1) * i, i, walltime=5.0) for i in range(3)],
    "scalar new": lambda w, lib: [w.add_scalar("a", v, 1, new_style=True, double_precision=d)
                                  for v in (0.1, np.float64(3)) for d in (False, True)],
    "scalars": lambda w, lib: w.add_scalars("main/x", {"p": 1.0, "q": 2.0}, 3),
    "tensor": lambda w, lib: [w.add_tensor("t", lib.arange(6).reshape(2, 3)), w.add_tensor("u", lib.ones(2)),
                              w.add_tensor("b", lib.tensor([True, False])), w.add_tensor("d", lib.ones(2).double())],
    "histogram": lambda w, lib: w.add_histogram("h", lib.from_numpy(DATA), 1),
    "histogram auto": lambda w, lib: w.add_histogram("h", DATA, 1, bins="auto"),
    "histogram of integers": lambda w, lib: w.add_histogram("h", lib.arange(100), 1, bins="fd"),
    "histogram of fewer bins": lambda w, lib: [w.add_histogram("h", DATA, m, bins=103, max_bins=m)
                                               for m in (7, 20, 60)],
    "histogram raw": lambda w, lib: w.add_histogram_raw("h", 0, 3, 4, 5, 6, [1.0, 2.0], [3, 1]),
    "image": lambda w, lib: [w.add_image("i", lib.from_numpy(IMAGE), 1),
                             w.add_image("i", IMAGE.transpose(1, 2, 0) * 2 - 0.5, 2, dataformats="HWC"),
                             w.add_image("i", GREY, 3, dataformats="HW"), w.add_image("i", GREY[None], 4)],
    "images": lambda w, lib: [w.add_images("i", lib.from_numpy(BATCH), 1), w.add_images("i", BATCH[:, :1] / 255, 2)],
    "figure": lambda w, lib: [w.add_figure("f", figure("red"), 1), w.add_figure("f", [figure("w"), figure("y")], 2)],
    "audio": lambda w, lib: w.add_audio("s", lib.from_numpy(DATA[:1].clip(-1, 1)), 1, sample_rate=100),
    "text": lambda w, lib: w.add_text("words", "x **y** ü", 4),
    "pr curve": lambda w, lib: [w.add_pr_curve("c", lib.from_numpy(LABELS), lib.from_numpy(PREDICTIONS), 1, n)
                                for n in (127, 10, 300)],
    "weighted pr curve": lambda w, lib: w.add_pr_curve("c", LABELS, PREDICTIONS, 1, 20, weights=PREDICTIONS + 1),
    "pr curve raw": lambda w, lib: w.add_pr_curve_raw("c", *np.arange(24.0).reshape(6, 4), 1, 4),
    "custom scalars": lambda w, lib: w.add_custom_scalars(
        {"A": {"c": ["Multiline", ["x", "y"]], "d": ["Margin", ["p", "q", "r"]]}, "B": {}}),
    "multiline": lambda w, lib: w.add_custom_scalars_multilinechart(["x", "y"], title="t"),
    "margin": lambda w, lib: w.add_custom_scalars_marginchart(["x", "y", "z"], "k"),
    "hparams": lambda w, lib: w.add_hparams({"lr": 0.1, "n": 3, "kind": "a", "none": None, "t": lib.tensor([2.0])},
                                            {"acc": 0.5, "m": 2}, {"kind": ["a", "b"], "n": [3, 4]}, "run", 2),
    "purged": lambda w, lib: w.add_scalar("a", 1.0, 9),
}


def read(folder):
    """{folder below it: events} by TensorBoard's loader of plain events."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            loader = event_file_loader.RawEventFileLoader(os.path.join(where, name))
            events = [event_pb2.Event.FromString(data) for data in loader.Load()]
            found.setdefault(os.path.relpath(where, folder), []).extend(events)
    return found


def decoded(content, plugin):
    kinds = {"hparams": hparams_pb2.HParamsPluginData}
    return kinds[plugin].FromString(content) if plugin in kinds else content


def png(data):
    import io

    from PIL import Image
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGBA")).tolist()


def plain(event):
    """Everything of an event that both writers must agree on, with images and tensors decoded."""
    out = [event.step, event.file_version, str(event.session_log), event.wall_time == 5.0]
    for value in event.summary.value:
        meta = value.metadata.plugin_data
        kind = value.WhichOneof("value")
        data = getattr(value, kind) if kind else None
        if kind == "image":
            data = (data.height, data.width, data.colorspace, png(data.encoded_image_string))
        elif kind == "tensor":
            array = tensor_util.make_ndarray(data)
            data = str(array.dtype), array.shape, array.tolist()
            if meta.plugin_name == "custom_scalars":
                data = layout_pb2.Layout.FromString(array.item())
        elif kind == "histo":
            data = [data.min, data.max, data.num, data.sum, data.sum_squares, *data.bucket_limit, *data.bucket]
        out += [value.tag, meta.plugin_name, decoded(meta.content, meta.plugin_name), kind, data]
    return out


@pytest.mark.parametrize("call", CALLS)
def test_same_events(tmp_path, call):
    found = []
    for name, writer, lib in (("ours", SummaryWriter, pt), ("torch", TorchWriter, torch)):
        with writer(str(tmp_path / name), purge_step=7 if call == "purged" else None) as w:
            CALLS[call](w, lib)
        found.append({where: [plain(e) for e in events] for where, events in read(tmp_path / name).items()})
    ours, theirs = found
    assert sum(map(len, ours.values())) > len(ours)
    assert ours.keys() == theirs.keys()
    for where in ours:
        assert ours[where] == theirs[where]


def test_accumulator(tmp_path):
    """TensorBoard's own view of a run, one that was resumed with purge_step among them."""
    with SummaryWriter(tmp_path) as w:
        for i in range(5):
            w.add_scalar("loss", 1 / (1 + i), i)
        w.add_histogram("h", pt.from_numpy(DATA), 1)
        w.add_image("i", pt.from_numpy(IMAGE), 1)
        w.add_text("t", "hello", 1)
    with SummaryWriter(tmp_path, purge_step=3) as w:
        for i in range(3, 6):
            w.add_scalar("loss", 100.0 + i, i)
    accumulator = event_accumulator.EventAccumulator(str(tmp_path), size_guidance={"tensors": 0})
    accumulator.Reload()
    tags = accumulator.Tags()
    assert tags["scalars"] == ["loss"] and tags["histograms"] == ["h"] and tags["images"] == ["i"]
    assert tags["tensors"] == ["t/text_summary"]
    assert [(s.step, round(s.value, 4)) for s in accumulator.Scalars("loss")] == [
        (0, 1), (1, 0.5), (2, 0.3333), (3, 103), (4, 104), (5, 105)]
    assert accumulator.Histograms("h")[0].histogram_value.num == DATA.size
    assert (accumulator.Images("i")[0].height, accumulator.Images("i")[0].width) == (6, 7)


def test_cut_off_file(tmp_path):
    """What a killed process leaves: TensorBoard reads the whole records."""
    with SummaryWriter(tmp_path) as w:
        for i in range(10):
            w.add_text("t", "word " * 50, i)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-40])
    loader = event_file_loader.EventFileLoader(str(path))
    assert [e.step for e in loader.Load() if e.summary.value] == list(range(9))


def test_graphs_have_the_same_layers(tmp_path):
    """TensorBoard reads the graph, and finds in it as many calls of each layer's function as in PyTorch's."""
    found = {}
    for lib, writer in ((pt, SummaryWriter), (torch, TorchWriter)):
        nn = lib.nn
        model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Sequential(nn.Flatten(), nn.Linear(144, 5), nn.ReLU()),
                              nn.Linear(5, 2), nn.Tanh())
        folder = os.path.join(tmp_path, lib.__name__)
        with writer(folder) as w:
            w.add_graph(model, lib.ones(2, 1, 8, 8))
        graph = event_accumulator.EventAccumulator(folder).Reload().Graph()
        if lib is pt:
            names = {node.name for node in graph.node}
            assert all(i in names for node in graph.node for i in node.input)
        found[lib.__name__] = [sum(node.op == f"aten::{name}" for node in graph.node)
                               for name in ("relu", "linear", "flatten", "tanh")]
        found[lib.__name__].append(sum(node.op in ("aten::conv2d", "aten::_convolution") for node in graph.node))
    assert found["ptcore"] == found["torch"] == [2, 2, 1, 1, 1]
