"""The thread pool: every range once, boundaries free of the thread count, fork, nesting, limits."""

import ctypes
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from native import address, build, needs_compiler

pytestmark = needs_compiler

SOURCE = r"""
#include "parallel.hpp"
#include <atomic>
#include <thread>
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT int get_threads() { return pt_get_num_threads(); }
EXPORT void set_threads(int n) { pt_set_num_threads(n); }
/* visits[i] += 1; marks[begin] = end of the range; ids gets the number of threads seen */
EXPORT int visit(int64_t n, int64_t grain, int32_t *visits, int64_t *marks, int slow) {
    std::atomic<int> mask{0}, others{0};
    std::thread::id caller = std::this_thread::get_id();
    pt::parallel_for(n, grain, [&](int64_t b, int64_t e) {
        marks[b] = e;
        for (int64_t i = b; i < e; i++) visits[i]++;
        if (std::this_thread::get_id() != caller) others++;
        for (volatile int k = 0; k < slow; k++) {}
    });
    return others;
}
EXPORT int64_t nested(int64_t n) {
    std::atomic<int64_t> sum{0};
    std::atomic<int> flat{1};
    pt::parallel_for(n, 1, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; i++)
            pt::parallel_for(n, 1, [&](int64_t c, int64_t d) {
                if (pt_get_num_threads() > 1 && !pt_in_parallel()) flat = 0;
                sum += d - c;
            });
    });
    return flat && !pt_in_parallel() ? sum.load() : -1;
}
"""


@pytest.fixture(scope="module")
def pool():
    lib = build(SOURCE, "parallel.cpp")
    lib.nested.restype = ctypes.c_int64
    before = lib.get_threads()
    yield lib
    lib.set_threads(before)


def visit(lib, n, grain, slow=0):
    visits, marks = np.zeros(max(n, 1), np.int32), np.zeros(max(n, 1), np.int64)
    others = lib.visit(ctypes.c_int64(n), ctypes.c_int64(grain), address(visits), address(marks), slow)
    return visits[:max(n, 0)], marks, others


@pytest.mark.parametrize("n,grain", [(0, 1), (-3, 1), (1, 1), (7, 100), (100, 7), (1000, 1), (12345, 10), (5000, 0)])
def test_ranges_do_not_depend_on_threads(pool, n, grain):
    seen = []
    for threads in (1, 2, 3, 5):
        pool.set_threads(threads)
        visits, marks, _ = visit(pool, n, grain)
        assert (visits == 1).all()
        seen.append(marks)
    for marks in seen[1:]:
        np.testing.assert_array_equal(marks, seen[0])
    starts = np.flatnonzero(seen[0])
    assert (starts % max(grain, 1) == 0).all()


def test_other_threads_take_part(pool):
    pool.set_threads(4)
    assert any(visit(pool, 400, 1, slow=20000)[2] for _ in range(50))
    pool.set_threads(1)
    assert visit(pool, 400, 1, slow=200)[2] == 0


def test_nested(pool):
    for threads in (1, 2, 4):
        pool.set_threads(threads)
        assert pool.nested(ctypes.c_int64(40)) == 1600


def test_set_clamps(pool):
    pool.set_threads(-2)
    assert pool.get_threads() == 1
    pool.set_threads(10**6)
    assert pool.get_threads() == 1024


def test_many_callers(pool):
    pool.set_threads(3)
    wrong = []

    def caller():
        for _ in range(300):
            if not (visit(pool, 500, 10)[0] == 1).all():
                wrong.append(1)

    callers = [threading.Thread(target=caller) for _ in range(4)]
    for t in callers:
        t.start()
    for t in callers:
        t.join()
    assert not wrong


SCRIPT = """
import ctypes, os, sys
lib = ctypes.CDLL(sys.argv[1])
def visit(n=3000, grain=10):
    v, m = (ctypes.c_int32 * n)(), (ctypes.c_int64 * n)()
    lib.visit(ctypes.c_int64(n), ctypes.c_int64(grain), v, m, 100)
    return all(x == 1 for x in v)
"""


def run(tmp_path, body, **environ):
    """Runs body in a fresh interpreter on a library file of its own; returns its output."""
    from native import COMPILER, FLAGS, OPS

    source, lib = tmp_path / "pool.cpp", tmp_path / "pool.so"
    source.write_text(SOURCE)
    subprocess.run([*COMPILER, *FLAGS, "-shared", str(source), str(OPS / "kernels" / "parallel.cpp"), "-o", str(lib)], check=True)
    clean = {k: v for k, v in os.environ.items() if not k.endswith("NUM_THREADS") and not k.startswith("SLURM")}
    done = subprocess.run([sys.executable, "-c", SCRIPT + textwrap.dedent(body), str(lib)], env={**clean, **environ},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork_after_use(tmp_path):
    out = run(tmp_path, """
        lib.set_threads(3)
        ok = all(visit() for _ in range(20))
        for _ in range(5):
            pid = os.fork()
            if pid == 0:
                good = all(visit() for _ in range(20))
                inner = os.fork()
                if inner == 0:
                    os._exit(0 if visit() else 1)
                good = good and os.waitpid(inner, 0)[1] == 0 and visit()
                os._exit(0 if good else 1)
            ok = ok and visit()
            ok = ok and os.waitpid(pid, 0)[1] == 0
        print(ok and visit())
        """)
    assert out == ["True"]


def test_fork_while_another_thread_works(tmp_path):
    out = run(tmp_path, """
        import threading
        lib.set_threads(2)
        done = []
        t = threading.Thread(target=lambda: done.append(all(visit() for _ in range(100))))
        t.start()
        codes = []
        for _ in range(10):
            pid = os.fork()
            if pid == 0:
                os._exit(0 if visit() else 1)
            codes.append(os.waitpid(pid, 0)[1])
        t.join()
        print(done == [True] and not any(codes))
        """)
    assert out == ["True"]


def test_limits_from_the_environment(tmp_path):
    show = "print(lib.get_threads())"
    whole = int(run(tmp_path, show)[0])
    assert 1 <= whole <= len(os.sched_getaffinity(0))
    assert run(tmp_path, show, PTCORE_NUM_THREADS="1") == ["1"]
    assert run(tmp_path, show, OMP_NUM_THREADS="1,4") == ["1"]
    assert run(tmp_path, show, SLURM_CPUS_PER_TASK="1") == ["1"]
    assert run(tmp_path, show, OMP_NUM_THREADS="1", PTCORE_NUM_THREADS="1000") == [str(whole)]
    assert run(tmp_path, show, OMP_NUM_THREADS="nonsense") == [str(whole)]
