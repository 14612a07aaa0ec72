"""utils.benchmark on a clock of the test's own: how often statements run, what times say, tables."""
import itertools

import pytest

import ptcore as pt
from ptcore.utils import benchmark
from ptcore.utils.benchmark import Compare, Measurement, TaskSpec, Timer

pytestmark = pytest.mark.core


class Clock:
    """A clock that goes on by what statements say they took, and a little when it is read."""

    def __init__(self, read=0.0):
        self.now, self.read, self.runs = 0.0, read, 0

    def __call__(self):
        self.now += self.read
        return self.now

    def work(self, seconds):
        self.runs += 1
        self.now += seconds


def timer(clock, seconds, **options):
    """A Timer of statements that take what the iterable says."""
    seconds = iter(seconds)
    return Timer("work(next(seconds))", timer=clock, globals={"work": clock.work, "seconds": seconds}, **options)


def task(**options):
    return TaskSpec(**{"stmt": "x + 1", "setup": "pass", **options})


def test_timeit():
    clock = Clock()
    m = timer(clock, itertools.repeat(2e-3)).timeit(500)
    assert m.number_per_run == 500 and m.raw_times == pytest.approx([1.0])
    assert m.median == m.mean == pytest.approx(2e-3)
    assert clock.runs == 505                # a hundredth first
    clock.runs = 0
    timer(clock, itertools.repeat(1e-3)).timeit(3)
    assert clock.runs == 5


def test_a_statement_of_no_time():
    assert timer(Clock(), itertools.repeat(0)).timeit(10).median == 1e-10


def test_blocked_autorange():
    """Blocks so long that reading the clock is a ten thousandth, and so many that the time is full."""
    clock, seen = Clock(read=2e-6), []
    t = timer(clock, itertools.repeat(1e-4))
    m = t.blocked_autorange(lambda number, time: seen.append((number, time)), min_run_time=0.3)
    assert m.number_per_run == 1000                         # 2e-6 / (100 * 1e-4) is too much
    assert m.raw_times == pytest.approx([0.100002] * 3)
    assert seen == [(1000, time) for time in m.raw_times]
    assert clock.runs == 1 + 10 + 100 + 1000 + 3 * 1000
    slow = timer(Clock(), itertools.repeat(5.0)).blocked_autorange()
    assert slow.number_per_run == 1 and slow.raw_times == [5.0]
    assert timer(Clock(), itertools.repeat(5.0)).blocked_autorange(min_run_time=0).raw_times == [5.0]


def test_adaptive_autorange():
    """Until the times agree, or for the longest time."""
    uneven = itertools.chain([1.0] * 3, itertools.cycle([0.1, 0.3]))
    m = timer(Clock(), uneven).adaptive_autorange(max_run_time=6.0)
    assert sum(m.raw_times) > 6.0 and not m.meets_confidence(0.1)
    m = timer(Clock(), itertools.chain([1.0, 5.0, 4.0], itertools.repeat(1.0))).adaptive_autorange(max_run_time=99.0)
    assert m.raw_times[:2] == [5.0, 4.0] and set(m.raw_times[2:]) == {1.0}
    assert m.meets_confidence(0.1) and not Measurement(1, m.raw_times[:-1], task()).meets_confidence(0.1)
    m = timer(Clock(), itertools.repeat(1.0)).adaptive_autorange(min_run_time=3.5)
    assert len(m.raw_times) == 4


def test_statements():
    made = []
    t = Timer("""
        y = x + torch.ones(2)
        made.append(ptcore.add(y, 1).tolist())
    """, setup="x = torch.zeros(2)", globals={"made": made})
    t.timeit(1)
    assert made == [[2.0, 2.0]] * 3
    assert t._task_spec.stmt == "y = x + torch.ones(2)\nmade.append(ptcore.add(y, 1).tolist())"
    calls = []

    def function():
        calls.append(pt.get_num_threads())
    before = pt.get_num_threads()
    m = Timer(function, setup=lambda: calls.append("setup"), num_threads=2).timeit(1)
    assert calls == ["setup", 2, 2, "setup", 2]
    assert pt.get_num_threads() == before
    assert m.stmt.endswith("function()")
    variables = {"x": 1}
    Timer("x", globals=variables).timeit(1)
    assert variables == {"x": 1}


def test_threads_come_back_after_an_error():
    before = pt.get_num_threads()
    with pytest.raises(ZeroDivisionError):
        Timer("1 / 0", num_threads=before + 1).blocked_autorange()
    assert pt.get_num_threads() == before


def test_waits_for_the_accelerator(monkeypatch):
    waited = []
    monkeypatch.setattr(pt.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(pt.accelerator, "synchronize", lambda: waited.append(1))
    Timer("pass").timeit(1)
    assert len(waited) == 4
    monkeypatch.setattr(pt.accelerator, "is_available", lambda: False)
    Timer("pass").timeit(1)
    assert len(waited) == 4


def test_statistics():
    m = Measurement(10, [50.0, 10.0, 40.0, 20.0, 30.0], task(), {"mine": 1})
    assert m.times == [5, 1, 4, 2, 3]
    assert (m.median, m.mean, m.iqr, m.metadata) == (3, 3, 2, {"mine": 1})
    assert m.has_warnings and m.significant_figures == 1
    m = Measurement(1, [1.0, 1.0, 1.0001, 1.0, 1.0], task(label="a", sub_label="b", num_threads=3))
    assert not m.has_warnings and m.significant_figures == 4
    assert (m.title, m.as_row_name, m.num_threads, m.stmt) == ("a: b", "b", 3, "x + 1")
    assert Measurement(1, [1e-6, 1.1e-6, 1.2e-6, 1.1e-6], task()).significant_figures == 1      # clocks know no more
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        m.nothing  # noqa: B018


def test_merge():
    a, b = task(label="a"), task(label="b")
    merged = Measurement.merge([Measurement(2, [2.0], a), Measurement(1, [5.0], b), Measurement(10, [30.0], a)])
    assert [(m.task_spec, m.number_per_run, m.raw_times) for m in merged] == [(a, 1, [1.0, 3.0]), (b, 1, [5.0])]


def test_repr():
    lines = repr(Measurement(100, [5e-4, 6e-4, 7e-4, 9e-4], task(description="n=1", setup="x = 1\ny = 2"))).splitlines()
    assert lines[0].startswith("<ptcore.utils.benchmark.Measurement object at 0x")
    assert lines[1:] == ["x + 1", "n=1", "setup:", "  x = 1", "  y = 2", "", "  Median: 6.50 us",
                         "  IQR:    1.75 us (5.75 to 7.50)", "  4 measurements, 100 runs per measurement, 1 thread",
                         "  WARNING: Interquartile range is 26.9% of the median measurement.",
                         "           This suggests significant environmental influence."]
    lines = repr(Measurement(7, [7.0], task(stmt="a\nb", sub_label="s", num_threads=2))).splitlines()
    assert lines[1:] == ["stmt: (s)", "  a", "  b", "", "  1.00 s", "  1 measurement, 7 runs , 2 threads"]


@pytest.mark.parametrize("seconds, unit", [(3e-9, "ns"), (999e-9, "ns"), (1.5e-6, "us"), (2e-3, "ms"), (0.5, "ms"),
                                           (1.5, "s"), (5000, "s"), (1e-12, "s")])
def test_units(seconds, unit):
    assert benchmark.select_unit(seconds)[0] == unit
    assert benchmark.unit_to_english(unit).endswith("second")


@pytest.mark.parametrize("x, n, want", [(3.14159, 2, 3.1), (314.159, 2, 310), (-0.031415, 3, -0.0314), (9.99, 1, 10)])
def test_trim(x, n, want):
    assert benchmark.trim_sigfig(x, n) == pytest.approx(want, rel=1e-15)


def results():
    """Two tables; one with a hole, two numbers of threads and a time that spreads."""
    def took(times, label, row, column, threads=1):
        return Measurement(1, times, task(label=label, sub_label=row, description=column, num_threads=threads))
    even = [1.0, 1.001, 1.0, 1.001]
    return [took([1.2345e-6 * e for e in even], "add", "float", "n=1"),
            took([13.337e-6 * e for e in even], "add", "float", "n=64"),
            took([2.6e-6 * e for e in even], "add", "int", "n=1"),
            took([7e-6, 8e-6, 9e-6, 10e-6], "add", "float", "n=64", 4),
            took([5.0], "mul", "float", None)]


def shown(compare):
    """A table's text with dots for spaces, as those at the ends of lines count."""
    return str(compare).replace(" ", ".").splitlines()


def test_tables(capsys):
    compare = Compare(results())
    assert shown(compare) == [
        "[----------.add.-----------]",
        ".............|..n=1..|..n=64",
        "1.threads:.-----------------",
        "......float..|..1.2..|..13.3",
        "......int....|..2.6..|......",
        "4.threads:.-----------------",
        "......float..|.......|...8.5",
        "",
        "Times.are.in.microseconds.(us).",
        "",
        "[------.mul.------]",
        ".............|.....",
        "1.threads:.--------",
        "......float..|..5.0",
        "",
        "Times.are.in.seconds.(s)."]
    compare.print()
    assert capsys.readouterr().out == str(compare) + "\n"
    compare.trim_significant_figures()
    compare.highlight_warnings()
    lines = shown(compare)
    assert lines[3:7] == ["......float..|...1...|..13........",
                          "......int....|...3...|............",
                          "4.threads:.-----------------------",
                          "......float..|.......|...8.(!.18%)"]
    assert lines[9] == "(!.XX%).Measurement.has.high.variance,.where.XX.is.the.IQR./.median.*.100."
    assert lines[14] == "......float..|..5.000"


@pytest.mark.parametrize("rowwise", [False, True])
def test_colors(rowwise):
    """Green and bold the best, blue within a tenth, pale red from twice, red from five times."""
    def took(seconds, row, column):
        return Measurement(1, [seconds], task(label="t", sub_label=row, description=column))
    times = {"a": 1.0, "b": 1.05, "c": 1.5, "d": 2.0, "e": 5.0}
    compare = Compare([took(t, *(("r", k) if rowwise else (k, "r"))) for k, t in times.items()]
                      + [took(0.5, *(("s", "a") if rowwise else ("a", "s")))])
    compare.colorize(rowwise=rowwise)
    text = str(compare)
    best, good, bad, very = (f"\033[{c}" for c in ("92m\033[1m", "34m\033[1m", "2m\033[91m", "31m\033[1m"))
    found = [text[:text.index(number)].rstrip(" ").rsplit("|", 1)[1].strip()
             for number in ("1000.0", "1050.0", "1500.0", "2000.0", "5000.0")]
    assert found == [best, good, "", bad, very]
    assert text.count(best) == 2            # the only time of its row or column is its best


def test_environments():
    rows = [Measurement(1, [1.0], task(label="t", sub_label=row, env=env, num_threads=n))
            for n in (1, 2) for env in ("new", "older") for row in "ab"]
    lines = str(Compare(rows)).splitlines()
    assert [line.split("|")[0] for line in lines[3:7]] == [
        "  (new)    a  ", "           b  ", "  (older)  a  ", "           b  "]
    assert lines[8].startswith("  (new)    a")


def test_refusals():
    with pytest.raises(ValueError, match="results must be Measurements, got int"):
        Compare([1])
    with pytest.raises(ValueError, match="stmt must be a str or a callable, got int"):
        Timer(1)
    with pytest.raises(NotImplementedError, match=r"C\+\+ statements"):
        Timer("x;", language="c++")
    with pytest.raises(ValueError, match="language must be Python"):
        Timer("x", language="basic")
    with pytest.raises(ValueError, match="global_setup is for"):
        Timer("x", global_setup="#include")
    for name in ("repeat", "autorange"):
        with pytest.raises(NotImplementedError, match="blocked_autorange"):
            getattr(Timer(), name)()
    with pytest.raises(AssertionError, match="n must be an integer"):
        benchmark.trim_sigfig(1.0, 1.5)


@pytest.mark.parametrize("path, words", [(None, "is not installed"), ("/opt/valgrind", "run it under /opt/val")])
def test_callgrind(monkeypatch, path, words):
    monkeypatch.setattr("shutil.which", lambda name: path)
    with pytest.raises(NotImplementedError, match=f"does not count instructions; .*{words}"):
        Timer().collect_callgrind()
