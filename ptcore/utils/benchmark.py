"""Times of statements: ``Timer`` measures, ``Measurement`` holds times, ``Compare`` prints tables of them."""
import contextlib
import dataclasses
import enum
import math
import shutil
import statistics
import textwrap
import timeit
from typing import Any

import ptcore
from ptcore import accelerator
from ptcore._contexts import Exchanged

__all__ = ["Colorize", "Compare", "Language", "Measurement", "TaskSpec", "Timer", "ordered_unique", "select_unit",
           "set_torch_threads", "timer", "trim_sigfig", "unit_to_english"]

_MOST_FIGURES = 4
_LEAST_INTERVAL = 25e-9                 # seconds: the resolution of the best clocks
_SPREAD, _GREAT_SPREAD = 0.1, 0.25      # ratios of spread to median from which a measurement warns
_UNITS = {"ns": (1e-9, "nanosecond"), "us": (1e-6, "microsecond"), "ms": (1e-3, "millisecond"), "s": (1, "second")}


@dataclasses.dataclass(repr=False, frozen=True)
class TaskSpec:
    """The statement that a :class:`Timer` runs, and its labels, without variables."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self):
        """The labels, or the statement."""
        sub = self.sub_label
        if self.label is None and "\n" in self.stmt:
            return f"stmt:{f' ({sub})' if sub else ''}\n{textwrap.indent(self.stmt, '  ')}"
        return (self.stmt if self.label is None else self.label) + (f": {sub}" if sub else "")

    def setup_str(self):
        """The setup, if there is one."""
        if self.setup == "pass" or not self.setup:
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self):
        """Title, description and setup."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts if part)


def _quantile(ordered, q):
    """A quantile, interpolated linearly between the nearest values."""
    place = q * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclasses.dataclass(repr=False)
class Measurement:
    """Times of a task.

    Parameters
    ----------
    number_per_run : int
        How often the statement ran for one time.
    raw_times : list of float
        The times in seconds.
    task_spec : TaskSpec
        The task; its fields are attributes of the measurement as well.
    metadata : dict, optional
        For your own use.

    Examples
    --------
    >>> from ptcore.utils.benchmark import Measurement, TaskSpec
    >>> m = Measurement(10, [1e-5, 1.2e-5, 1.1e-5], TaskSpec("x + 1", "pass"))
    >>> f"{m.median:.1e} {m.iqr:.0e} {m.significant_figures}"
    '1.1e-06 1e-07 1'
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name):
        if name in TaskSpec.__dataclass_fields__:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute {name!r}")

    @property
    def times(self):
        """Seconds of one run of the statement."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def _ordered(self):
        return sorted(self.times)

    @property
    def median(self):
        """The median of the times."""
        return _quantile(self._ordered, 0.5)

    @property
    def mean(self):
        """The mean time."""
        return statistics.fmean(self.times)

    @property
    def iqr(self):
        """The interquartile range of the times."""
        ordered = self._ordered
        return _quantile(ordered, 0.75) - _quantile(ordered, 0.25)

    @property
    def significant_figures(self):
        """The number of meaningful digits of the median, one to four.

        Derived from a confidence interval of the interquartile range: an estimate for tables, not a test.
        """
        ordered = self._ordered
        middle = ordered[len(ordered) // 4:math.ceil(3 * len(ordered) / 4)]
        interval = max(1.645 * statistics.pstdev(middle) / math.sqrt(len(middle)), _LEAST_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), _MOST_FIGURES)

    @property
    def has_warnings(self):
        """Whether the spread of the times makes the median unreliable."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold=_SPREAD):
        """Whether the interquartile range is less than this share of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self):
        """The labels, or the statement."""
        return self.task_spec.title

    @property
    def as_row_name(self):
        """The name of a row in a table."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self):
        ordered, n = self._ordered, len(self.raw_times)
        median = self.median
        unit, scale = select_unit(median)
        low, high = _quantile(ordered, 0.25), _quantile(ordered, 0.75)
        many = n > 1
        lines = [object.__repr__(self), self.task_spec.summarize(),
                 f"  {'Median: ' if many else ''}{median / scale:.2f} {unit}"]
        if n >= 4:
            lines.append(f"  IQR:    {(high - low) / scale:.2f} {unit} ({low / scale:.2f} to {high / scale:.2f})")
        lines.append(f"  {n} measurement{'s' if many else ''}, {self.number_per_run} runs "
                     f"{'per measurement,' if many else ','} {self.num_threads} "
                     f"thread{'s' if self.num_threads > 1 else ''}")
        if self.has_warnings:
            why = ("This could indicate system fluctuation." if self.meets_confidence(_GREAT_SPREAD) else
                   "This suggests significant environmental influence.")
            spread = self.iqr / median * 100
            lines += [f"  WARNING: Interquartile range is {spread:.1f}% of the median measurement.",
                      f"           {why}"]
        return "\n".join(lines)

    @staticmethod
    def merge(measurements):
        """Merges measurements with equal tasks; the times are those of single runs."""
        times = {}
        for m in measurements:
            times.setdefault(m.task_spec, []).extend(m.times)
        return [Measurement(1, t, task) for task, t in times.items()]


def select_unit(t):
    """(name, seconds) of the unit in which a time has one to three digits before the point."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(int(math.log10(t) // 3), "s")
    return unit, _UNITS[unit][0]


def unit_to_english(u):
    """The unit's name as a word."""
    return _UNITS[u][1]


def trim_sigfig(x, n):
    """A number with `n` significant figures.

    Examples
    --------
    >>> trim_sigfig(3.14159, 2)
    3.1
    """
    if n != int(n):
        raise AssertionError(f"trim_sigfig: n must be an integer, got {n}")
    scale = 10 ** (math.ceil(math.log10(abs(x))) - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements):
    """The elements without repetitions, in their order."""
    return list(dict.fromkeys(elements))


class set_torch_threads(Exchanged, contextlib.ContextDecorator):
    """A context in which ops run on `n` threads."""

    def __init__(self, n):
        super().__init__((ptcore.get_num_threads, ptcore.set_num_threads, (), n))


def timer():
    """The time in seconds, once the accelerator has done its work."""
    if accelerator.is_available():
        accelerator.synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    """The language of a statement."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Measure how long a statement takes.

    Parameters
    ----------
    stmt : str or callable, default: "pass"
        The statement to time: source, or a function without arguments.
    setup : str or callable, default: "pass"
        The setup, which runs before, untimed.
    timer : callable, optional
        Gives the present time; by default one that waits for the accelerator if there is one.
    globals : dict, optional
        Variables of the statement; ``ptcore`` and ``torch`` are ptcore if they are not among them.
    label, sub_label, description, env : str, optional
        The labels from which :class:`Compare` makes tables: the table, the row, the column, and the environment of a
        row.
    num_threads : int, default: 1
        Threads of ptcore's ops while the statement runs.
    language : Language or str
        Python is the only one.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.utils.benchmark import Timer
    >>> t = Timer("x.add(y)", globals={"x": ptcore.ones(3), "y": ptcore.ones(3)}, label="add")
    >>> m = t.timeit(100)
    >>> m.number_per_run, len(m.times), m.median > 0
    (100, 1, True)
    >>> len(t.blocked_autorange(min_run_time=0.001).times) >= 1
    True
    """

    _timer_cls = timeit.Timer

    def __init__(self, stmt="pass", setup="pass", global_setup="", timer=timer, globals=None, label=None,
                 sub_label=None, description=None, env=None, num_threads=1, language=Language.PYTHON):
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("Timer: C++ statements are not supported, only Python")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Timer: language must be Python, got {language!r}")
        if global_setup:
            raise ValueError(f"Timer: global_setup is for C++ alone, got {global_setup!r}; use setup")
        self._globals = {"torch": ptcore, "ptcore": ptcore, **(globals or {})}
        code, prepare = _source("stmt", stmt), _source("setup", setup)
        self._timer = self._timer_cls(stmt if callable(stmt) else code, setup if callable(setup) else prepare, timer,
                                      self._globals)
        self._task_spec = TaskSpec(code, prepare, global_setup, label, sub_label, description, env, num_threads)

    def _time(self, number):
        return max(self._timer.timeit(number), 1e-9)       # divided by later, so never 0

    def _measurement(self, number, times):
        return Measurement(number, times, self._task_spec)

    def timeit(self, number=1_000_000):
        """Time `number` runs together, after a hundredth of them that are not counted."""
        with set_torch_threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))
            return self._measurement(number, [self._time(number)])

    def repeat(self, repeat=-1, number=-1):
        """Absent: see :meth:`blocked_autorange`."""
        raise NotImplementedError("repeat: see Timer.blocked_autorange")

    def autorange(self, callback=None):
        """Absent: see :meth:`blocked_autorange`."""
        raise NotImplementedError("autorange: see Timer.blocked_autorange")

    def _block(self, min_run_time):
        """The number of runs to time together, large enough that reading the clock costs next to nothing."""
        overhead = statistics.median(self._time(0) for _ in range(5))
        number = 1
        while number * 10 < 2**31:
            taken = self._time(number)
            if (overhead / taken <= 1e-4 and taken >= min_run_time / 1000) or taken > min_run_time:
                break
            number *= 10
        return number

    def _loop(self, block_time, min_run_time, max_run_time, enough, callback):
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block(block_time)
            times, total = [], 0.0
            while not times or total < min_run_time or not enough(number, times):
                times.append(self._time(number))
                total += times[-1]
                if callback:
                    callback(number, times[-1])
                if max_run_time and total > max_run_time:
                    break
        return self._measurement(number, times)

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Time blocks of runs until `min_run_time` seconds are measured.

        A block is just large enough that reading the clock is negligible, since many times are worth more than few.

        Parameters
        ----------
        callback : callable, optional
            Called with the number of runs and the time of each block.
        """
        return self._loop(min_run_time, min_run_time, None, lambda number, times: True, callback)

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None):
        """Time blocks of runs until their times agree.

        Parameters
        ----------
        threshold : float, default: 0.1
            The span of the middle half of the times by their median, below which they agree.
        min_run_time, max_run_time : float
            Seconds to measure at least, and at most.
        callback : callable, optional
            Called with the number of runs and the time of each block.
        """
        def agree(number, times):
            return len(times) > 3 and self._measurement(number, times).meets_confidence(threshold)

        return self._loop(0.05, min_run_time, max_run_time, agree, callback)

    def collect_callgrind(self, number=100, *, repeats=None, collect_baseline=True, retain_out_file=False):
        """Absent: use valgrind itself to count instructions."""
        found = shutil.which("valgrind")
        how = f"run it under {found} --tool=callgrind" if found else "valgrind, which does, is not installed"
        raise NotImplementedError(f"collect_callgrind: Timer does not count instructions; {how}")


def _source(name, code):
    """The text of a statement without its indentation, or the name of a function."""
    if callable(code):
        return f"{getattr(code, '__qualname__', type(code).__name__)}()"
    if not isinstance(code, str):
        raise ValueError(f"Timer: {name} must be a str or a callable, got {type(code).__name__}")
    return textwrap.dedent(code).removeprefix("\n").rstrip()


_BEST, _GOOD, _BAD, _VERY_BAD = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"
_BOLD, _END = "\033[1m", "\033[0m"


class Colorize(enum.Enum):
    """The group in which the best time is highlighted."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def _colored(text, time, best):
    if time <= best * 1.01 or time <= best + 100e-9:
        return _BEST + _BOLD + text + 2 * _END
    if time <= best * 1.1:
        return _GOOD + _BOLD + text + 2 * _END
    if time >= best * 5:
        return _VERY_BAD + _BOLD + text + 2 * _END
    if time >= best * 2:
        return _BAD + text + 2 * _END
    return text


class Compare:
    """Tables of measurements: one for each label, a row for each sub-label, a column for each description.

    Measurements of the same task are merged. Rows of different numbers of threads stand apart.

    Parameters
    ----------
    results : list of Measurement

    Examples
    --------
    >>> from ptcore.utils.benchmark import Compare, Measurement, TaskSpec
    >>> def took(seconds, row, column):
    ...     return Measurement(1, [seconds], TaskSpec("", "", label="sum", sub_label=row, description=column))
    >>> results = [took(1e-6, "float", "n=1"), took(2e-6, "float", "n=9"), took(3e-6, "int", "n=1")]
    >>> text = str(Compare(results)).splitlines()
    >>> text[0], text[3]
    ('[---------- sum ----------]', '      float  |  1.0  |  2.0')
    """

    def __init__(self, results):
        self._results = []
        self._trim = self._highlight = False
        self._colorize = Colorize.NONE
        self.extend_results(results)

    def extend_results(self, results):
        """Add measurements."""
        results = list(results)
        for r in results:
            if not isinstance(r, Measurement):
                raise ValueError(f"Compare: results must be Measurements, got {type(r).__name__}")
        self._results += results

    def trim_significant_figures(self):
        """Show only the meaningful digits."""
        self._trim = True

    def colorize(self, rowwise=False):
        """Colour times by the best one of their column, or of their row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self):
        """Mark times that spread far, with the span of their middle half by the median."""
        self._highlight = True

    def print(self):
        """Print the tables."""
        print(str(self))

    def __str__(self):
        tables = {}
        for m in Measurement.merge(self._results):
            tables.setdefault(m.label, []).append(m)
        return "\n".join(map(self._table, tables.values()))

    def _table(self, results):
        unit, scale = select_unit(min(m.median for m in results))
        # by threads and environment; otherwise in order of first appearance
        rows = sorted(ordered_unique(map(_row, results)), key=lambda row: (row[0], row[1] or ""))
        columns = ordered_unique(m.description for m in results)
        cells = {(_row(m), m.description): m for m in results}
        grid = [[cells.get((row, column)) for column in columns] for row in rows]
        texts = list(zip(*[self._column([line[i] for line in grid], scale) for i in range(len(columns))]))

        names = _row_names(rows)
        titles = ["", *(column or "" for column in columns)]
        widths = [max(map(len, column)) for column in zip(titles, *([name, *line] for name, line in zip(names, texts)))]
        head = "  |  ".join(title.center(width) for title, width in zip(titles, widths))
        title = f" {results[0].label or ''} "
        lines = [f"[{title.center(len(head) - 2, '-')}]", head]
        threads = None
        for row, name, line, text in zip(rows, names, grid, texts):
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(len(head), "-"))
            best = self._best(line, [other for r, other in zip(rows, grid) if r[0] == threads])
            out = [name.ljust(widths[0])]
            for m, t, width, b in zip(line, text, widths[1:], best):
                t = t.center(width)
                out.append(t if m is None or b is None else _colored(t, m.median, b))
            lines.append("  |  ".join(out))
        lines += ["", f"Times are in {unit_to_english(unit)}s ({unit})."]
        if self._highlight and any(m.has_warnings for m in results):
            lines.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join(lines) + "\n"

    def _column(self, results, scale):
        """The texts of a column, aligned at their decimal points."""
        there = [m for m in results if m is not None]
        digits = {id(m): math.ceil(math.log10(m.median / scale)) for m in there}
        decimals = min(max(m.significant_figures - digits[id(m)], 0) for m in there) if self._trim else 1
        width = max(digits.values()) + decimals + (decimals > 0)
        margin = 7 if self._highlight and any(m.has_warnings for m in there) else 0

        def text(m):
            if m is None:
                return " " * len(f"{1:>{width}.{decimals}f}{'':>{margin}}")
            value = m.median / scale
            if self._trim:
                value = trim_sigfig(value, m.significant_figures)
            note = f" (! {m.iqr / m.median * 100:.0f}%)" if margin and m.has_warnings else ""
            return f"{value:>{width}.{decimals}f}{note:>{margin}}"

        return [text(m) for m in results]

    def _best(self, line, group):
        """The best time with which each cell of a line is compared, or None."""
        def least(results):
            return min((m.median for m in results if m is not None), default=None)

        if self._colorize is Colorize.ROWWISE:
            return [least(line)] * len(line)
        if self._colorize is Colorize.COLUMNWISE:
            return [least(column) for column in zip(*group)]
        return [None] * len(line)


def _row(m):
    return m.num_threads, m.env, m.as_row_name


def _row_names(rows):
    """Names of rows, with the environment in the first row of each if there are several."""
    environments = {env for _, env, _ in rows}
    shown = len(environments) > 1
    width = max(len(str(env)) for env in environments) if shown else 0
    names, before = [], None
    for threads, env, name in rows:
        first = shown and (threads, env) != before
        before = threads, env
        names.append("  " + (f"({env})" if first else "").ljust(width + 4) + name)
    return names
