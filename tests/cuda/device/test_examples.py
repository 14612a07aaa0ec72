"""The examples with ``--device cuda``, shortened: they learn, and lose what they lose on the CPU."""
import importlib

import pytest

import ptcore

for package in ("sklearn", "tqdm", "matplotlib"):
    pytest.importorskip(package)

from ptcore.examples import digits, gpt  # noqa: E402

GPT = "--layers 1 --heads 2 --width 16 --length 8 --batch-size 4 --every 5 --steps 10 --lr 0.02 --characters 5 " \
      "--samples 1 --prompt a --quiet"


def test_gpt(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("abcdefgh " * 200, encoding="utf-8")
    losses = []
    for device in ("cuda", "cpu"):
        folder = tmp_path / device
        result = gpt.main([*GPT.split(), "--text", str(text), "--output", str(folder), "--device", device])
        losses.append(result["history"]["validation"])
        assert (folder / "gpt.png").exists()
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert losses[0][-1] < losses[0][0]


def test_digits(tmp_path):
    means = []
    for device in ("cuda", "cpu"):
        result = digits.main(["--output", str(tmp_path), "--quiet", "--device", device, "--seeds", "0", "--epochs", "1",
                              "--width", "4", "--batch-size", "32", "--dropout", "0",
                              "--shift", "0"])          # the device would draw other numbers than the CPU
        assert result["same"]
        means.append(result["mean"])
    assert means[0] > 0.4               # chance is 0.1
    assert means[0] == pytest.approx(means[1], abs=0.02)


@pytest.mark.parametrize("name, arguments, numbers", [
    ("vae", "--epochs 1 --width 16 --hidden 2 --batch-size 512 --draws 5", ("elbo", "bound")),
    ("pendulum", "--iterations 1 --pendulums 4 --epochs 1 --batch-size 400 --width 8 --episodes 8", ("mean_return",)),
    ("ode", "--steps 3 --length 3 --width 8 --batch-size 8 --trajectories 2", ("inside",)),
    ("heat", "--steps 3 --polish 1 --points 16 --width 8 --layers 2", ("error",)),
    ("regression", "--steps 3 --points 50 --held 200 --width 8", ("nll", "coverage", "constant"))])
def test_with_stated_results(name, arguments, numbers, tmp_path, monkeypatch):
    """The generators of both devices give the same numbers from the same seed, so results are the same."""
    example, found = importlib.import_module(f"ptcore.examples.{name}"), []
    train = example.train
    monkeypatch.setattr(example, "train", lambda *args: ptcore.manual_seed(1) and train(*args))
    for device in ("cuda", "cpu"):
        result = example.main([*arguments.split(), "--quiet", "--device", device, "--plot", str(tmp_path / "a.png")])
        found.append([result[key] for key in numbers])
    assert found[0] == pytest.approx(found[1], rel=0.01)
