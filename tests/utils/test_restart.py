"""Runs that are killed or told to stop, and go on: equal results, whole files, exit codes. Real processes and signals.

PTCORE_TEST_KILLS says how many runs are killed (the nightly run asks for 100).
"""
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ptcore as pt
from ptcore.utils import _random_states
from ptcore.utils.data import DataLoader
from ptcore.utils.restart import Restart, checkpoint_on_signal

PROGRAM = Path(__file__).with_name("restart_run.py")
pytestmark = pytest.mark.counts
KILLS = int(os.environ.get("PTCORE_TEST_KILLS", "4"))
STEPS = 24
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")


def start(folder, *options):
    return subprocess.Popen([sys.executable, "-P", str(PROGRAM), str(folder), *map(str, options)], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


def finish(process):
    """(exit status, the rest of the output)"""
    text, _ = process.communicate(timeout=120)
    return process.returncode, text.splitlines()


def digest_of(lines):
    (found,) = [line.split()[1] for line in lines if line.startswith("digest")]
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A function that gives the digest of a run that nobody stops."""
    known = {}

    def digest(*options):
        if options not in known:
            code, lines = finish(start(tmp_path_factory.mktemp("whole"), *options))
            assert code == 0
            assert lines[0] == "resumed False at epoch 0 step 0"
            assert [line for line in lines if line.startswith("step")] == [f"step {i}" for i in range(STEPS)]
            known[options] = digest_of(lines)
        return known[options]
    return digest


def with_workers():
    """The options of a run whose loader has workers; skips where loaders have none."""
    try:
        pt.utils.data.DataLoader(range(2), num_workers=1)
    except ValueError as error:
        pytest.skip(str(error))
    return "--workers", 2


@POSIX
@pytest.mark.parametrize("trial", [*range(KILLS), "workers"])
def test_killed_at_random(whole, tmp_path, trial):
    """SIGKILL twice, a little after a random step: somewhere in the next step or in a save."""
    options = with_workers() if trial == "workers" else ()
    rng = random.Random(f"kill {trial}")
    resumed = []
    for _ in range(2):
        process = start(tmp_path, *options)
        last = f"step {rng.randrange(STEPS)}"
        lines = []
        for line in process.stdout:
            lines.append(line.strip())
            if lines[-1] == last:
                break
        process.kill()
        finish(process)
        resumed.append(lines[0])
    code, lines = finish(start(tmp_path, *options))
    assert code == 0
    assert digest_of(lines) == whole(*options)
    assert resumed[0] == "resumed False at epoch 0 step 0"


@POSIX
@pytest.mark.parametrize("when", ["before", "middle", "after"])
def test_killed_in_a_save(whole, tmp_path, when):
    code, lines = finish(start(tmp_path, "--die", 3, when))
    assert code == -signal.SIGKILL
    names = sorted(os.listdir(tmp_path))
    left = [n for n in names if n.endswith(".tmp")]
    assert len(left) == (when != "after")
    files = [n for n in names if n.endswith(".npz")]
    assert files == [f"checkpoint-{i:08d}.npz" for i in range(3 if when == "after" else 2)]
    for name in files:
        assert pt.load(tmp_path / name)["version"] == 1
    code, lines = finish(start(tmp_path))
    assert code == 0
    assert lines[0].endswith("epoch 0 step 6" if when == "after" else "epoch 0 step 4"), lines[0]
    assert digest_of(lines) == whole()
    names = os.listdir(tmp_path)
    assert len(names) == 2 and all(n.endswith(".npz") for n in names)


def step_to(process, last):
    """Lets a run under a guard go on until it stands in the step ``last``; returns its lines."""
    lines = []
    for line in process.stdout:
        lines.append(line.strip())
        if lines[-1] == last:
            return lines
        if lines[-1].startswith("step"):
            process.stdin.write("\n")
            process.stdin.flush()
    raise AssertionError(f"the run ended before {last}: {lines}")


def child_of(lines):
    (pid,) = [int(line.split()[1]) for line in lines if line.startswith("child")]
    return pid


def state_of(pid):
    """The letter of a process' state, None if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


@POSIX
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_told_to_stop(whole, tmp_path, number):
    """The step is finished, saved, and the code asks for more; the next process does the rest."""
    process = start(tmp_path, "--guard", 99)
    lines = step_to(process, "step 8")
    process.send_signal(number)
    process.stdin.write("\n" * STEPS)
    code, rest = finish(process)
    assert code == 99
    assert rest == []                       # no step after the one that was under way
    code, lines = finish(start(tmp_path))
    assert code == 0
    assert lines[0] == "resumed True at epoch 1 step 9"
    assert digest_of(lines) == whole()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
@pytest.mark.parametrize("how", ["--fork", "--daemon", "--workers"])
def test_forked_children_ignore_it(whole, tmp_path, how):
    """A batch system signals all processes: the child stays until its parent has saved, and heeds the signal then."""
    options = with_workers() if how == "--workers" else ()
    process = start(tmp_path, "--guard", 75, *(options or [how]))
    lines = step_to(process, "step 3")
    child = None if options else child_of(lines)
    for _ in range(3):
        os.killpg(process.pid, signal.SIGTERM)
    assert options or state_of(child) in ("S", "R", "D")
    process.stdin.write("\n" * STEPS)
    process.stdin.flush()
    assert process.wait(60) == 75
    if how == "--fork":                     # nobody ends it; a daemon was ended with its parent, by SIGTERM
        assert state_of(child) in ("S", "R", "D")
        os.kill(child, signal.SIGTERM)
    assert process.stdout.read() == ""      # which ends when the children have closed it, too
    process.stdin.close()
    process.stdout.close()
    code, lines = finish(start(tmp_path, *options))
    assert code == 0
    assert lines[0] == "resumed True at epoch 0 step 4"
    assert digest_of(lines) == whole(*options)


class Counter:
    """A part, and a loop's own object with ``save``."""

    def __init__(self):
        self.saved = 0

    def save(self):
        self.saved += 1

    def state_dict(self):
        return {"saved": self.saved}

    def load_state_dict(self, state):
        self.saved = state["saved"]


@POSIX
def test_guard_of_a_loop_of_ones_own():
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)}
    target = Counter()
    with checkpoint_on_signal(target, ["SIGUSR2", "SIGNOTHING", int(signal.SIGUSR1)], code=3) as guard:
        assert signal.getsignal(signal.SIGUSR1) == signal.getsignal(signal.SIGUSR2) != before[signal.SIGUSR1]
        guard.check()
        assert guard.received is None and target.saved == 0
        signal.raise_signal(signal.SIGUSR2)
        assert guard.received is signal.SIGUSR2 and target.saved == 0
        with pytest.raises(SystemExit) as stopped:
            guard.check()
        guard.check()                       # once is enough
    assert stopped.value.code == 3 and target.saved == 1
    assert before == {number: signal.getsignal(number) for number in before}


@POSIX
def test_a_signal_that_nobody_asked_for_is_not_lost():
    got = []
    former = signal.signal(signal.SIGUSR2, lambda number, frame: got.append(number))
    try:
        with checkpoint_on_signal(Counter(), [signal.SIGUSR2]):
            signal.raise_signal(signal.SIGUSR2)
            assert got == []
        assert got == [signal.SIGUSR2]

        def fails():
            signal.raise_signal(signal.SIGUSR2)
            raise KeyError

        with pytest.raises(KeyError), checkpoint_on_signal(Counter(), [signal.SIGUSR2]):
            fails()
        assert got == [signal.SIGUSR2] * 2
    finally:
        signal.signal(signal.SIGUSR2, former)


@POSIX
def test_the_exception_that_leaves_is_shown_where_the_signal_ends_the_process():
    code = """if True:
        import signal
        from ptcore.utils.restart import checkpoint_on_signal

        class Counter:
            def save(self): ...

        with checkpoint_on_signal(Counter()):
            signal.raise_signal(signal.SIGTERM)
            raise KeyError("the step failed")
    """
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGTERM
    assert done.stderr.rstrip().endswith("KeyError: 'the step failed'")


def test_signal_between_epochs(tmp_path):
    """After the last step of an epoch: at its end, as a finished epoch."""
    if not hasattr(signal, "SIGUSR1"):
        pytest.skip("needs SIGUSR1")
    restart = Restart(tmp_path)

    def loop():
        for _ in restart.epochs(3):
            for _ in restart.batches(range(4)):
                pass
            signal.raise_signal(signal.SIGUSR1)

    with checkpoint_on_signal(restart), pytest.raises(SystemExit):
        loop()
    again = Restart(tmp_path)
    assert again.resume()
    assert (again.epoch, again.step) == (1, 4)


@POSIX
def test_guards_in_each_other(tmp_path):
    restart = Restart(tmp_path)
    with checkpoint_on_signal(restart) as outer:
        with checkpoint_on_signal(restart, "SIGUSR2"):
            pass
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(SystemExit):
            list(restart.batches(range(3)))
    assert restart.step == 1 and outer.received is signal.SIGTERM


AGAIN = """
import atexit, os, signal, sys
from ptcore.utils.restart import Restart, checkpoint_on_signal

restart = Restart(sys.argv[1])
atexit.register(signal.raise_signal, signal.SIGTERM)
with checkpoint_on_signal(restart, code=99):
    for batch in restart.batches(range(3)):
        signal.raise_signal(signal.SIGUSR1)
"""


@POSIX
def test_a_second_signal_while_the_process_ends(tmp_path):
    """It does not take the code away."""
    assert subprocess.run([sys.executable, "-P", "-c", AGAIN, str(tmp_path)], timeout=60).returncode == 99
    again = Restart(tmp_path)
    assert again.resume() and again.step == 1


def test_guards_that_are_refused(tmp_path):
    restart = Restart(tmp_path)
    with pytest.raises(TypeError, match="must have a method save, got int"):
        checkpoint_on_signal(3)
    for code in (-1, 256, "again", None):
        with pytest.raises(ValueError, match="code must be an integer from 0 to 255"):
            checkpoint_on_signal(restart, code=code)
    for signals in ([], "SIGNOTHING", ["SIGTERM", "SIGKILL"] if os.name == "posix" else ()):
        with pytest.raises(ValueError, match="signals must be some that a process can handle"):
            checkpoint_on_signal(restart, signals)


def test_newest_readable(tmp_path):
    """A damaged file is passed over with a warning; when all are, that is an error."""
    restart = Restart(tmp_path, keep=3, counter=Counter())
    for step in range(5):
        restart.step = step
        path = restart.save()
    assert sorted(os.listdir(tmp_path)) == [f"checkpoint-{i:08d}.npz" for i in (2, 3, 4)]
    assert Path(path).name == "checkpoint-00000004.npz"
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[:len(data) // 2])
    (tmp_path / "checkpoint-9.npz").write_bytes(b"")        # names of others
    (tmp_path / "checkpoint-00000009.safetensors").write_bytes(b"")
    again = Restart(tmp_path, counter=Counter())
    with pytest.warns(UserWarning, match=r"checkpoint-00000004.npz is passed over"):
        assert again.resume()
    assert again.step == 3
    assert Path(again.save()).name == "checkpoint-00000005.npz"
    for n in (3, 5):
        (tmp_path / f"checkpoint-{n:08d}.npz").write_bytes(b"no")
    with pytest.warns(UserWarning, match="passed over"), pytest.raises(ValueError, match=r"00000003.npz is truncated"):
        again.resume()


@pytest.mark.parametrize("damage", ["cut", "other"])
def test_what_was_passed_over_does_not_count(tmp_path, damage):
    """It is no checkpoint to fall back to: it goes, and `keep` readable ones stay."""
    restart = Restart(tmp_path)
    for restart.step in range(2):
        path = restart.save()
    if damage == "cut":
        Path(path).write_bytes(Path(path).read_bytes()[:100])
    else:                                   # whole, but of something else
        pt.save({"weights": pt.ones(2)}, path)
    again = Restart(tmp_path)
    with pytest.warns(UserWarning, match="passed over"):
        assert again.resume()
    assert again.step == 0
    again.save()
    assert sorted(os.listdir(tmp_path)) == ["checkpoint-00000000.npz", "checkpoint-00000002.npz"]
    again.save()
    assert sorted(os.listdir(tmp_path)) == ["checkpoint-00000002.npz", "checkpoint-00000003.npz"]


def test_keep(tmp_path):
    """However many are there already, exactly `keep` stay."""
    for keep, want in ((4, [0, 1, 2, 3]), (6, [0, 1, 2, 3, 4]), (2, [4, 5]), (1, [6])):
        restart = Restart(tmp_path, keep=keep)
        for _ in range(4 if keep == 4 else 1):
            restart.save()
        assert sorted(os.listdir(tmp_path)) == [f"checkpoint-{i:08d}.npz" for i in want]


@pytest.mark.parametrize("leave", ["break", "stop"])
def test_saved_in_the_middle_of_a_step(tmp_path, leave):
    """The step of which the loader has given the batch counts as done."""
    def run(restart, loader, stop=None):
        seen = []
        for epoch in restart.epochs(2):
            for batch in restart.batches(loader):
                seen.append((epoch, restart.step, int(batch)))
                if len(seen) == stop:
                    restart.save()
                    if leave == "stop":
                        return seen
                    break
            assert restart.step == seen[-1][1] + 1
        return seen

    def loader():
        return DataLoader(range(6))

    first = loader()
    whole = run(Restart(tmp_path / "whole", loader=first), first)
    assert whole == [(i // 6, i, i % 6) for i in range(12)]
    first = loader()
    seen = run(Restart(tmp_path / "run", loader=first), first, 4)
    if leave == "break":            # the next epoch is a whole one
        assert seen == whole[:4] + [(1, 4 + i, i) for i in range(6)]
    again = loader()
    restart = Restart(tmp_path / "run", loader=again)
    assert restart.resume() and restart.step == 4
    assert run(restart, again) == whole[4:]


def test_a_folder_with_the_name_of_a_checkpoint(tmp_path):
    restart = Restart(tmp_path)
    restart.step = 5
    restart.save()
    (tmp_path / "checkpoint-00000003.npz").mkdir()
    (tmp_path / "checkpoint-00000004.npz").symlink_to("nothing")
    again = Restart(tmp_path)
    assert again.resume() and again.step == 5
    again.step = 6
    assert again.save() == str(tmp_path / "checkpoint-00000005.npz")
    assert Restart(tmp_path, keep=1).save() == str(tmp_path / "checkpoint-00000006.npz")
    assert len(os.listdir(tmp_path)) == 3


def test_all_random_sources_and_state(tmp_path):
    def draw():
        return pt.rand(2).tolist(), random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn()  # noqa: NPY002

    random.gauss(0, 1)                      # half of a pair is kept
    np.random.randn()                       # noqa: NPY002
    pt.randn(3)
    restart = Restart(tmp_path, suffix=".safetensors")
    restart.state = {"best": pt.ones(2), "names": ["a", None, (1, 2.5)]}
    restart.save()
    want = draw()
    draw()
    again = Restart(tmp_path, suffix=".safetensors")
    assert again.resume()
    assert draw() == want
    assert again.state["best"].tolist() == [1, 1] and again.state["names"] == ["a", None, (1, 2.5)]


def test_devices_that_are_not_there():
    """A checkpoint of a machine with devices is read on one without."""
    states = _random_states.get_states()
    want = pt.rand(3).tolist()
    if not pt.cuda.is_available():
        _random_states.set_states({**states, "devices": {**states["devices"], "cuda:0": [11, 5]}})
        assert pt.rand(3).tolist() == want
    _random_states.set_states(states)
    assert pt.rand(3).tolist() == want


def test_refusals(tmp_path):
    with pytest.raises(TypeError, match="net must have state_dict and load_state_dict, got int"):
        Restart(tmp_path, net=3)
    for bad in (0, -1, 1.5):
        with pytest.raises(ValueError, match="keep must be a positive integer"):
            Restart(tmp_path, keep=bad)
        with pytest.raises(ValueError, match="every must be a positive integer"):
            Restart(tmp_path, every=bad)
    Restart(tmp_path, a=Counter(), b=None).save()
    other = Restart(tmp_path, b=Counter())
    with pytest.raises(ValueError, match="the parts must be those that were saved, a, got b"):
        other.resume()
    with pytest.raises(ValueError, match="version must be 1, got 2"):
        other.load_state_dict({"version": 2})
    assert Restart(tmp_path / "none").resume() is False
    loader = pt.utils.data.DataLoader(range(3))
    with pytest.raises(ValueError, match="the DataLoader must be one of the parts, a"):
        next(Restart(tmp_path, a=Counter()).batches(loader))
