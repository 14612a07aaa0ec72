"""The digits example: it learns, it reproduces itself, it explains what it lacks."""

import builtins

import pytest

import ptcore as pt

for package in ("sklearn", "tqdm", "matplotlib"):
    pytest.importorskip(package)

from ptcore.examples import digits  # noqa: E402


def run(folder, *extra):
    return digits.main(["--output", str(folder), "--quiet", *extra])


def test_short_run(tmp_path, capsys):
    result = run(tmp_path, "--seeds", "0", "--epochs", "3")
    assert result["mean"] > 0.9  # chance is 0.1
    assert result["same"]
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert set(pt.load(tmp_path / "digits.npz")) == {
        "model", "optimizer", "seed", "options",
    }  # fmt: skip
    printed = capsys.readouterr().out
    assert "mean test accuracy" in printed
    assert "equal predictions" in printed


def test_threads_do_not_change_the_result(tmp_path):
    before = pt.get_num_threads()
    try:
        digests = [
            run(tmp_path, "--seeds", "1", "--epochs", "1", "--threads", str(n))[
                "digest"
            ]
            for n in (1, 2)
        ]
    finally:
        pt.set_num_threads(before)
    assert digests[0] == digests[1]
    assert run(tmp_path, "--seeds", "2", "--epochs", "1")["digest"][2] != digests[0][1]


def test_compiled_trains_the_same_weights(tmp_path):
    short = ("--seeds", "0", "--epochs", "1", "--width", "8")
    assert run(tmp_path, *short, "--compile")["digest"] == run(tmp_path, *short)["digest"]


def test_split_is_stratified_and_fixed():
    import numpy as np

    train, test = digits.load_data()
    assert (len(train), len(test)) == (1437, 360)
    counts = np.bincount(test.tensors[1].numpy())
    assert counts.min() >= 34
    assert counts.max() <= 37
    assert float(train.tensors[0].max()) == 1.0


def test_shifted_moves_each_image_by_itself():
    import numpy as np

    pt.manual_seed(0)
    images = pt.rand(50, 1, 8, 8)
    moved = digits.shifted(images, 1).numpy()
    padded = np.pad(images.numpy(), [(0, 0), (0, 0), (1, 1), (1, 1)])
    found = set()
    for image, wide in zip(moved[:, 0], padded[:, 0], strict=True):
        fits = [
            (i, j)
            for i in range(3)
            for j in range(3)
            if np.array_equal(image, wide[i : i + 8, j : j + 8])
        ]
        assert len(fits) == 1
        found.update(fits)
    assert len(found) == 9


def test_cross_validation_keeps_to_the_training_part(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        digits, "train", lambda data, *_: seen.append(data) or (len(data),)
    )
    monkeypatch.setattr(digits, "accuracy", lambda model, held: len(held) / 1437)
    result = run(tmp_path, "--cross-validate")
    assert result["cross_validation"] == pytest.approx(0.2)
    assert {len(data) for data in seen} == {1149, 1150}
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_accuracy(tmp_path):
    """The number that the example exists for; chosen without the test part."""
    result = run(tmp_path)
    assert result["mean"] >= 0.985
    assert result["status"] == 0


@pytest.mark.parametrize("device", ["toaster", "cuda:77"])
def test_absent_device_is_named(device, tmp_path, capsys):
    with pytest.raises(SystemExit):
        run(tmp_path, "--device", device)
    assert device.partition(":")[0] in capsys.readouterr().err


@pytest.mark.parametrize("package", ["sklearn", "tqdm", "matplotlib"])
def test_missing_extra_is_named(package, tmp_path, monkeypatch):
    original = builtins.__import__

    def fails(name, *args, **kwargs):
        if name.partition(".")[0] == package:
            raise ImportError(f"No module named {name!r}")
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", fails)
    with pytest.raises(SystemExit, match=r"pip install ptcore\[examples\]"):
        run(tmp_path, "--seeds", "0", "--epochs", "1")
