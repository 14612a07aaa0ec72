"""The Hogwild example: processes that share weights learn together."""

import pytest

import ptcore.multiprocessing as mp

pytestmark = [pytest.mark.core, pytest.mark.timeout(120)]

for package in ("sklearn", "tqdm", "matplotlib"):
    pytest.importorskip(package)

from ptcore.examples import hogwild  # noqa: E402

METHODS = [m for m in ("fork", "spawn") if m in mp.get_all_start_methods()]


def run(folder, *extra):
    return hogwild.main(["--output", str(folder), "--quiet", *extra])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.outer
def test_four_processes_learn_together(method, tmp_path, capsys):
    """Each takes all its steps on the weights of all."""
    result = run(tmp_path, "--epochs", "3", "--start-method", method)
    assert result["steps"] == 4 * 3 * 90
    assert result["accuracy"] > 0.85  # chance is 0.1
    assert all(line[-1] < line[0] < 2.5 for line in result["losses"])
    assert (tmp_path / "hogwild.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert "equal predictions" in capsys.readouterr().out


@pytest.mark.slow
def test_accuracy(tmp_path):
    result = run(tmp_path)
    assert result["accuracy"] >= 0.95
    assert result["status"] == 0
