"""How a statement is timed: compiled into the loop, both libraries in turn, the minimum of the rounds."""
import gc
import itertools
import math
import time

WINDOW = 2e-3       # seconds that a loop runs between two looks at the clock


def looped(statement, names):
    """``loop(n)`` that runs the statement n times with nothing else between, as timeit does."""
    code = f"def loop(n, {', '.join(names)}):\n    for _ in repeat(None, n):\n        {statement}\n"
    namespace = {"repeat": itertools.repeat}
    exec(code, namespace)
    return lambda n: namespace["loop"](n, **names)


def window(loop, repeats, clock=time.perf_counter):
    start = clock()
    loop(repeats)
    return (clock() - start) / repeats


def measure(entries, rounds, clock=time.perf_counter):
    """For each entry (the loops of the libraries) the least seconds of one run in each of them.

    With ``time.thread_time`` as the clock a machine may be shared: what others get of a processor in a window does not
    count. Both libraries must be set to one thread then.
    """
    prepared = []
    for loops in entries:
        repeats = []
        for loop in loops:
            loop(1)
            once = max(window(loop, 3, clock), 1e-8)
            repeats.append(max(1, int(WINDOW / once)))
        prepared.append((loops, repeats, [math.inf] * len(loops)))
    gc.collect()
    for _ in range(rounds):
        for loops, repeats, times in prepared:
            for k, loop in enumerate(loops):
                times[k] = min(times[k], window(loop, repeats[k], clock))
    return [times for _, _, times in prepared]


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))
