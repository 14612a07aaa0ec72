"""tools/fuzz_files.py: some thousand damaged files now, a million at night; what it reports."""
import importlib.util
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATH = ROOT / "tools" / "fuzz_files.py"

pytestmark = [
    pytest.mark.core, pytest.mark.skipif(not PATH.exists(), reason="needs the source tree"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does"),
]


@pytest.fixture
def fuzz(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("fuzz_files", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RECORD", tmp_path / "FUZZ.md")
    return module


@pytest.mark.parametrize("seed", [0, 1])
def test_damaged_files(fuzz, seed):
    counts, failures = fuzz.run(2000, seed, 1)
    assert failures == []
    assert sum(counts.values()) == 2000
    for kind in ("zip", "stream", "npz", "safetensors", "index"):
        assert counts[f"{kind} CorruptFileError"] > 50
        assert counts[f"{kind} loaded"] > 0
    assert counts["zip UnpicklingError"] + counts["stream UnpicklingError"] > 20


def test_cases_are_the_same_every_time(fuzz, tmp_path):
    import random
    files = fuzz.corpus(tmp_path)
    assert {kind for kind, _ in files} >= {"zip", "stream", "npz"}
    first = [fuzz.mutated(random.Random(f"3/{n}"), files) for n in range(200)]
    assert first == [fuzz.mutated(random.Random(f"3/{n}"), files) for n in range(200)]
    assert len(set(first)) > 190
    assert sum(case in files for case in first) < 20


WORKER = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("fuzz_files", {path!r})
fuzz = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fuzz)
fuzz.SECONDS = 1
inner = fuzz.Loader.load

def load(self, kind, data, **options):
    if not self.loading:
        return inner(self, kind, data, **options)
    import os
    {body}

fuzz.Loader.load = load
first, count, progress = sys.argv[2:5]
fuzz.work(0, int(first), int(count), progress)
"""


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="its address space has no limit")
@pytest.mark.parametrize("body, why", [
    ("raise KeyError('unexpected')", "KeyError"), ("os.abort()", "the process ended with -6"),
    ("os.system('true')", "ran os.system"),
    ("import sys; sys.modules.pop('this', None); import this", "ran import"), ("bytearray(1 << 31)", "more than"),
    ("while True: pass", "more than 1 s"),
])
def test_failures_are_found(fuzz, tmp_path, monkeypatch, body, why):
    """A worker whose load misbehaves from the first case on."""
    script = tmp_path / "worker.py"
    script.write_text(WORKER.format(path=str(PATH), body=body))
    monkeypatch.setattr(fuzz, "__file__", str(script))
    shown = []
    counts, failures = fuzz.run(2, 0, 1, show=shown.append)
    assert [case for case, _ in sorted(failures)] == [0, 1]
    assert all(why in text for _, text in failures)
    assert sum(counts.values()) == 2
    assert shown[-1] == 2
    fuzz.record(2, 0, 1.0, counts, failures)
    fuzz.record(2, 0, 1.0, counts, failures)
    text = fuzz.RECORD.read_text()
    crashes = 2 * ("ended" in why)
    assert text.count(f"2 cases, {crashes} crashes, {2 - crashes} other failures, 1 seconds.") == 2
    assert text.count("# Damaged and hostile files") == 1
