"""utils.benchmark beside torch's: statistics, texts and tables of the same times."""
import re

import numpy as np
import pytest

from ptcore.utils import benchmark

torch = pytest.importorskip("torch")
import torch.utils.benchmark as torch_benchmark  # noqa: E402

pytestmark = pytest.mark.parity
LIBRARIES = (benchmark, torch_benchmark)
RNG = np.random.default_rng(0)
TIMES = [(RNG.lognormal(np.log(scale), spread, n) * runs).tolist() for scale in (2e-8, 3.3e-6, 0.0021, 7.7)
         for spread in (0.001, 0.1, 0.6) for n, runs in ((1, 1), (3, 10), (20, 1000))]


def measured(lib, times, runs=1, **options):
    return lib.Measurement(runs, times, lib.TaskSpec(**{"stmt": "x + y", "setup": "pass", **options}))


def pair(function):
    return [function(lib) for lib in LIBRARIES]


@pytest.mark.parametrize("times", TIMES, ids=range(len(TIMES)))
def test_statistics(times):
    ours, theirs = pair(lambda lib: measured(lib, times, 7))
    for name in ("median", "mean", "iqr", "times"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-12, abs=1e-20)
    for name in ("significant_figures", "has_warnings", "title", "as_row_name", "num_threads", "stmt"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for threshold in (0.01, 0.1, 1.0):
        assert ours.meets_confidence(threshold) == theirs.meets_confidence(threshold)


@pytest.mark.parametrize("options", [
    {}, {"label": "L"}, {"label": "L", "sub_label": "s", "description": "d", "num_threads": 4},
    {"stmt": "a\nb", "setup": "c\nd", "sub_label": "s"}, {"stmt": "a\nb", "setup": "c = 1", "description": "d"}])
@pytest.mark.parametrize("which", [0, 1, 2, 4, 5, 8, 14, 17])
def test_repr(options, which):
    ours, theirs = pair(lambda lib: repr(measured(lib, TIMES[which], 10, **options)).split("\n", 1)[1])
    assert ours == theirs


def tables(lib, environments):
    rng = np.random.default_rng(1)
    for label in ("one", None):
        for threads in (1, 8):
            for env in environments:
                for row in ("float", "int", None):
                    for i, column in enumerate(("n=1", "n=1000", "a wide one")):
                        if (row, i, threads) != ("int", 1, 8):
                            times = rng.lognormal(np.log(10.0 ** (i - 6)), 0.01 if row else 0.3, 9).tolist()
                            yield measured(lib, times, label=label, sub_label=row, description=column, env=env,
                                           num_threads=threads)


@pytest.mark.parametrize("environments", [(None,), ("a", "longer")])
@pytest.mark.parametrize("trim", [False, True])
@pytest.mark.parametrize("highlight", [False, True])
@pytest.mark.parametrize("color", [None, False, True])
def test_tables(environments, trim, highlight, color):
    def table(lib):
        compare = lib.Compare(list(tables(lib, environments)))
        if trim:
            compare.trim_significant_figures()
        if highlight:
            compare.highlight_warnings()
        if color is not None:
            compare.colorize(rowwise=color)
        return str(compare)
    ours, theirs = pair(table)
    assert ours == theirs


@pytest.mark.parametrize("n", range(1, 6))
def test_small_functions(n):
    for x in (3.14159, 271.8, 1e-7, 99.99, -12345.6):
        assert benchmark.trim_sigfig(x, n) == pytest.approx(torch_benchmark.trim_sigfig(x, n), rel=1e-6)
    for t in (2e-9, 5e-7, 1e-6, 3e-5, 0.02, 4, 1e5):
        assert benchmark.select_unit(t) == torch_benchmark.select_unit(t)


def test_timer():
    def run(lib):
        now, seen = [0.0], []

        def clock():
            now[0] += 1e-7
            return now[0]

        def work():
            now[0] += 3e-5
        t = lib.Timer("work()", timer=clock, globals={"work": work}, label="a", num_threads=1)
        def note(number, time):
            seen.append(number)
        for measure in (lambda: t.timeit(250), lambda: t.blocked_autorange(min_run_time=0.05), t.blocked_autorange,
                        lambda: t.adaptive_autorange(callback=note)):
            m = measure()
            seen += [m.number_per_run, len(m.times), round(m.median, 9), round(now[0], 6)]
        return seen
    ours, theirs = pair(run)
    assert ours == theirs


@pytest.mark.parametrize("factor", [1, 1.01, 1.05, 1.1, 1.5, 2, 3, 5, 7])
def test_colors(factor):
    """At the bounds of each color, and between them."""
    def run(lib):
        measured = [lib.Measurement(1, [time], lib.TaskSpec("a", "pass", "", "l", name, "d")) for name, time in (
            ("best", 1.0), ("other", float(factor)))]
        compare = lib.Compare(measured)
        compare.colorize()
        return str(compare)
    ours, theirs = pair(run)
    assert ours == theirs


def test_names():
    """Torch's package offers what it imports as well; the names that its pages list are these."""
    for name in ("Timer", "Measurement", "Compare", "TaskSpec", "select_unit", "Colorize", "Language", "timer"):
        assert hasattr(torch_benchmark, name) and hasattr(benchmark, name)
    methods = {n for n in dir(torch_benchmark.Timer) if re.match("[a-z]", n)}
    assert methods <= set(dir(benchmark.Timer))
