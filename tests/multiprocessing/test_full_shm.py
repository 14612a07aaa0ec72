"""A container's /dev/shm of 64 MB: what a loader says when it is full; the default strategy does not use it."""
import subprocess
import sys

import pytest

MOUNTED = ["unshare", "--map-root-user", "--mount", "sh", "-c",
           'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"', "sh"]
PROGRAM = """if True:
    import sys
    import ptcore as pt
    from ptcore.utils.data import DataLoader, Dataset

    class Large(Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, k):
            return pt.full((6_000_000,), float(k))

    if __name__ == "__main__":
        pt.multiprocessing.set_sharing_strategy(sys.argv[1])
        print([batch[:, 0].tolist() for batch in DataLoader(Large(), batch_size=4, num_workers=1)])
"""


@pytest.fixture(scope="module")
def small():
    if sys.platform != "linux" or subprocess.run([*MOUNTED, "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounts a small /dev/shm in a namespace of its own, which is not allowed here")


@pytest.mark.parametrize("strategy", ["file_system", "file_descriptor"])
def test_a_loader_in_a_container(small, strategy, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run([*MOUNTED, sys.executable, "-P", str(program), strategy], capture_output=True, text=True,
                          check=False)
    if strategy == "file_descriptor":
        assert done.stdout.strip() == "[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]", done.stderr
        return
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "OutOfMemoryError: shared memory" in last and "/dev/shm" in last and "which holds 64 MB" in last
    assert "--shm-size" in last and "--ipc=host" in last and "'file_descriptor'" in last
