"""The GPT example: it learns a text, goes on from a checkpoint, writes, explains bad input."""

import math

import pytest

import ptcore as pt

pytestmark = pytest.mark.core

for package in ("tqdm", "matplotlib"):
    pytest.importorskip(package)

from ptcore.examples import gpt  # noqa: E402

SMALL = "--layers 1 --heads 2 --width 32 --length 16 --batch-size 8 --every 20".split()
SHORT = ["--characters", "40", "--samples", "2", "--prompt", "abc"]


def run(folder, *extra):
    return gpt.main(["--output", str(folder), "--quiet", *SMALL, *SHORT, *extra])


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("abcdefgh " * 400, encoding="utf-8")
    return ["--text", str(path)]


def test_learns_what_repeats(tmp_path, text, capsys):
    result = run(tmp_path, *text, "--steps", "80", "--lr", "0.01")
    assert result["loss"] < 0.5 < math.log(9)  # that of guessing
    assert result["history"]["step"] == [20, 40, 60, 80]
    assert (tmp_path / "gpt.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    samples = (tmp_path / "gpt.txt").read_text().split("\n\n--------\n\n")
    assert [len(s.rstrip("\n")) >= 42 for s in samples] == [True, True]
    assert all(s.startswith("abcdefgh") for s in samples)
    assert "bits a character" in capsys.readouterr().out


def test_goes_on_and_writes_from_a_checkpoint(tmp_path, text):
    first = run(tmp_path, *text, "--steps", "20")
    before = (tmp_path / "gpt.txt").read_text()
    second = run(tmp_path, *text, "--steps", "40", "--resume")
    assert second["history"]["step"] == [20, 40]
    assert second["history"]["validation"][0] == first["history"]["validation"][0]
    assert second["loss"] < first["loss"]
    after = (tmp_path / "gpt.txt").read_text()
    run(tmp_path, "--sample-only")
    assert (tmp_path / "gpt.txt").read_text() == after != before


def test_compiled_loses_the_same(tmp_path, text):
    short = (*text, "--steps", "20", "--dropout", "0.1")
    assert run(tmp_path, *short, "--compile")["loss"] == run(tmp_path, *short)["loss"]


def test_threads_do_not_change_the_result(tmp_path, text):
    before = pt.get_num_threads()
    try:
        losses = [
            run(tmp_path, *text, "--steps", "5", "--threads", n)["loss"] for n in "12"
        ]
    finally:
        pt.set_num_threads(before)
    assert losses[0] == losses[1]


def test_the_text_it_finds():
    text = gpt.load_text()
    assert len(text) > 100_000
    vocabulary = gpt.Vocabulary.of(text)
    assert 60 < len(vocabulary) < 200
    number = vocabulary.encode(text[:1000])
    assert vocabulary.decode(number.tolist()) == text[:1000]
    rare = len(vocabulary) - 1
    assert vocabulary.encode("\N{SNOWMAN}").tolist() == [rare]


def test_windows_are_runs_and_their_successors():
    windows = gpt.Windows(pt.arange(10), 4)
    assert len(windows) == 6
    runs, targets = windows[5]
    assert (runs.tolist(), targets.tolist()) == ([5, 6, 7, 8], [6, 7, 8, 9])
    with pytest.raises(ValueError, match="3 characters hold no window of 4"):
        gpt.Windows(pt.arange(3), 4)


def test_no_position_sees_what_comes_later():
    pt.manual_seed(0)
    model = gpt.GPT(11, length=8, layers=2, heads=2, width=16, dropout=0.0)
    numbers = pt.randint(11, (3, 8))
    logits = model(numbers)
    changed = numbers.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 11
    assert pt.equal(model(changed)[:, :5], logits[:, :5])
    assert not pt.equal(model(changed)[:, 5:], logits[:, 5:])
    assert logits.shape == (3, 8, 11)


@pytest.mark.parametrize(
    "bad",
    [
        ["--steps", "0"],
        ["--prompt", ""],
        ["--temperature", "0"],
        ["--device", "toaster"],
    ],
)
def test_bad_options_are_named(bad, tmp_path, capsys):
    with pytest.raises(SystemExit):
        run(tmp_path, *bad)
    assert bad[0] in capsys.readouterr().err
