"""Memory under a kernel that runs without the GIL: a resize on another thread leaves it in place."""
import ctypes
import subprocess
import sys
import threading

import numpy as np
import pytest
from native import build, needs_compiler

import ptcore as pt

pytestmark = [pytest.mark.core, pytest.mark.counts, needs_compiler]

# Copies its input, but only after the flag is up: until then the test does what it wants.
SOURCE = """
#include "ptcore/kernel.h"
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#define VISIBLE extern "C" __attribute__((visibility("default")))
static std::atomic<int> entered, go;
VISIBLE int is_entered() { return entered; }
VISIBLE void let_go() { go = 1; }
VISIBLE int waiting_copy(pt_call *call) {
    entered = 1;
    for (int i = 0; i < 10000 && !go; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    memcpy(call->out[0].data, call->in[0].data, size_t(call->in[0].numel) * 4);
    return PT_OK;
}
"""


def test_resize_while_a_kernel_reads():
    library = build(SOURCE)
    waiting_copy = pt.ops.register(
        "test_waiting_copy(input)", spec=lambda x: (x.shape, x.dtype), types=("float32",),
        kernels={"cpu": ctypes.cast(library.waiting_copy, ctypes.c_void_p).value})
    n = 1 << 20
    x = pt.zeros(n)
    memory = x.untyped_storage()
    memory.resize_(8 * n)                       # moved once: its data lies in a block of its own
    x.copy_(pt.arange(float(n)))
    result = []
    thread = threading.Thread(target=lambda: result.append(waiting_copy(x)))
    thread.start()
    while not library.is_entered():
        pass
    live = pt.cpu.memory_stats()["live_blocks"]
    memory.resize_(32 * n)                      # moved again; the kernel still reads the old block
    pt.cpu.empty_cache()
    others = [pt.full((2 * n,), -1.0) for _ in range(4)]
    library.let_go()
    thread.join()
    np.testing.assert_array_equal(result[0].numpy(), np.arange(n, dtype="float32"))
    np.testing.assert_array_equal(x.numpy(), np.arange(n, dtype="float32"))
    result.clear()
    del others, thread
    assert pt.cpu.memory_stats()["live_blocks"] < live      # the old block has been given back


CLEARED = """
import threading, time
import ptcore as pt
items = [pt.full((1 << 24,), float(k), requires_grad=True) for k in range(3)]

def clear():
    time.sleep(0.005)
    items.clear()
    pt.cpu.empty_cache()

thread = threading.Thread(target=clear)
thread.start()
x = pt.cat(items)
thread.join()
print(items, [float(x[k << 24]) for k in range(3)], [float(x[(k << 24) - 1]) for k in range(1, 4)], x.requires_grad)
"""


@pytest.mark.outer
def test_a_list_that_is_cleared_while_it_is_concatenated():
    run = subprocess.run([sys.executable, "-X", "faulthandler", "-P", "-c", CLEARED], capture_output=True, text=True,
                         timeout=120)
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.strip() == "[] [0.0, 1.0, 2.0] [0.0, 1.0, 2.0] True"


def test_a_list_for_out_that_changes_the_input():
    """What is listed when the call is under way may run any code; the kernel meets the sizes that its rule saw."""
    x = pt.rand(2, 3, 1, 1, 1, 1, 4)

    class Outs(list):
        def __iter__(self):
            x.resize_(2)
            return super().__iter__()

    values, indices = pt.empty(2, 3, 1, 1, 1, 1, 4), pt.empty(2, 3, 1, 1, 1, 1, 4, dtype=pt.int64)
    with pytest.raises(RuntimeError, match="sort: another thread has changed the sizes of an argument meanwhile"):
        pt.sort(x, out=Outs([values, indices]))
