"""The benchmark for a card runs: every workload once, at sizes that say nothing of speed."""
import importlib.util
import json
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "gpu.py"


@pytest.mark.skipif(not SCRIPT.exists(), reason="needs the source tree")
def test_runs(tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("gpu_benchmark", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = tmp_path / "found.json"
    assert module.main(["--against", "--small", "--json", str(found)]) is False
    rows = json.loads(found.read_text())["rows"]
    assert len(rows) == len(module.WORKLOADS) > 20
    assert all(row["milliseconds"][0] > 0 for row in rows)
    assert "| training step" in capsys.readouterr().out
    assert "torch" not in sys.modules
