"""The limits of cgroups, version 1 and 2: those of the process's own group and of all above count."""
import ctypes
import sys

import pytest
from native import OPS, build, needs_compiler

pytestmark = [needs_compiler, pytest.mark.outer, pytest.mark.core,
              pytest.mark.skipif(sys.platform != "linux", reason="cgroups are of Linux")]

GIB = 2**30
# Name: the lines that tell the groups of the process; files below the root; threads and bytes of the cache that they allow.
MACHINES = {
    "none": ("0::/\n", {}, None, GIB),
    "unlimited": ("0::/a\n", {"a/cpu.max": "max 100000", "a/memory.max": "max"}, None, GIB),
    "own": ("0::/a/b\n", {"a/b/cpu.max": "150000 100000", "a/b/memory.max": "1000000000"}, 2, 10**8),
    "above": ("0::/job_7/step_0/task\n", {"job_7/cpu.max": "100000 100000", "job_7/memory.max": "500000000",
                                          "job_7/step_0/memory.max": "max"}, 1, 5 * 10**7),
    "root of a container": ("0::/\n", {"cpu.max": "50000 100000", "memory.max": "200000000"}, 1, 2 * 10**7),
    "least of several": ("0::/a/b\n", {"a/memory.max": "3000000000", "a/b/memory.max": "4000000000",
                                       "memory.max": "5000000000"}, None, 3 * 10**8),
    "version 1": ("5:memory:/slurm/job\n4:cpuacct,cpu:/slurm\n1:name=systemd:/x\n",
                  {"memory/slurm/memory.limit_in_bytes": "700000000", "cpu/slurm/cpu.cfs_quota_us": "200000",
                   "cpu/slurm/cpu.cfs_period_us": "100000", "memory/x/memory.limit_in_bytes": "1000"}, 2, 7 * 10**7),
    "of another controller": ("5:memoryless:/a\n4:cpuset:/a\n", {"memory/a/memory.limit_in_bytes": "1000",
                              "cpu/a/cpu.cfs_quota_us": "1000", "cpu/a/cpu.cfs_period_us": "1000"}, None, GIB),
    "another's": ("0::/a\n", {"b/memory.max": "1000", "b/cpu.max": "1000 1000"}, None, GIB),
}
SOURCE = r"""
static const char *root_of_test, *file_of_test;
#define PT_CGROUP_ROOT root_of_test
#define PT_CGROUP_OF_PROCESS file_of_test
#include "kernels/parallel.cpp"
#include "_memory/allocator.cpp"
extern "C" __attribute__((visibility("default"))) int threads(const char *root, const char *file) {
    root_of_test = root, file_of_test = file;
    int count = 1000;
    each_cgroup("cpu", [&](const char *folder) { lower_to_folder(&count, folder); });
    return count;
}
extern "C" __attribute__((visibility("default"))) int64_t cap_of_cache() { return default_cap(); }
"""


@pytest.mark.parametrize("name", MACHINES)
def test_limits(name, tmp_path):
    lines, files, threads, cap = MACHINES[name]
    root = tmp_path / "cgroup"
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text + "\n")
    (tmp_path / "self").write_text(lines)
    library = build(SOURCE, extra=(f"-I{OPS}", f"-I{OPS.parent}"))
    library.cap_of_cache.restype = ctypes.c_int64
    assert library.threads(str(root).encode(), str(tmp_path / "self").encode()) == (threads or 1000)
    assert library.cap_of_cache() == cap
