"""Pickles that PyTorch writes are read by Python's pickle where torch is ptcore."""
import pickle
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning")]

READ = """
import pickle, sys, warnings
warnings.filterwarnings(action="ignore", message="TypedStorage is deprecated")
import torch
storage, untyped, tensor, row, half, parameter, marked, words, lazy = pickle.loads(sys.stdin.buffer.read())
assert torch.__name__ == "torch" and "ptcore" in sys.modules
assert isinstance(storage, torch.FloatStorage) and storage.tolist() == [0, 1, 2, 3, 4, 5], storage
assert list(untyped) == [7, 8], untyped
assert tensor.tolist() == [[0, 1, 2], [3, 4, 5]] and tensor.dtype is torch.float32
assert row.tolist() == [3, 4, 5] and row.storage_offset() == 3
assert half.tolist() == [1.5] and half.dtype is torch.float16 and half.requires_grad
assert type(parameter) is torch.nn.Parameter and parameter.tolist() == [1, 1] and not parameter.requires_grad
assert type(marked) is torch.nn.Parameter and marked.note == [1]
assert lazy.tolist() == [1 - 2j]
assert words.tolist() == [3] and words.dtype is torch.uint16
"""


@pytest.mark.parametrize("protocol", range(2, 6))
def test_pickles_of_pytorch(protocol):
    x = torch.arange(6.0).reshape(2, 3)
    untyped = torch.ByteStorage([7, 8])
    marked = torch.nn.Parameter(torch.ones(1))
    marked.note = [1]
    half = torch.tensor([1.5], dtype=torch.float16, requires_grad=True)
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    data = pickle.dumps([x.storage(), untyped, x, x[1], half, frozen, marked, torch.tensor([3], dtype=torch.uint16),
                         torch.tensor([1 + 2j]).conj()], protocol)
    run = [sys.executable, "-P", "-m", "ptcore.compat.torch", "-c", READ]
    done = subprocess.run(run, input=data, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
