"""What the first call of an op imports, in a process that has NumPy and SciPy's top module."""
import json
import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.core, pytest.mark.counts]

AT_MOST = 12
# Of x (4 x 4), z (complex) and i (int64). Rows of all families, and what loads another library.
CALLS = """
x @ x; P.fft.fft(x); P.fft.rfft(x); P.fft.ifftn(z); P.stft(x[0], 4, return_complex=True); P.linalg.svd(x)
P.linalg.inv(x + P.eye(4)); P.linalg.eigh(x); P.linalg.qr(x); P.linalg.solve(x + P.eye(4), x); P.linalg.matrix_exp(x)
P.linalg.eig(x); P.linalg.lstsq(x, x); P.linalg.det(x); P.linalg.cholesky(P.eye(4)); P.linalg.matrix_rank(x)
P.lu_solve(x, *P.linalg.lu_factor(x + P.eye(4))); P.pinverse(x); P.kron(x, x); P.tensordot(x, x); P.einsum("ij,jk", x, x)
P.special.zeta(x + 1, x); P.special.bessel_j0(x); P.igamma(x, x); P.special.ndtri(x / 2); P.special.polygamma(1, x)
F.conv2d(x[None, None], x[None, None]); F.interpolate(x[None, None], 8); F.max_pool2d(x[None, None], 2)
F.grid_sample(x[None, None], P.ones(1, 2, 2, 2)); F.pad(x, (1, 1)); F.cross_entropy(x, i); F.mse_loss(x, x)
F.layer_norm(x, (4,)); F.batch_norm(x, None, None, training=True); F.scaled_dot_product_attention(x, x, x)
F.gelu(x); F.embedding(i, x); F.embedding_bag(i[None], x); F.pixel_shuffle(x[None, :, :, None], 2); F.fold(x[None], 3, 2)
P.cdist(x, x); P.sort(x); P.unique(i); P.topk(x, 2); P.randn(3); P.multinomial(x[0], 2); P.randperm(4); P.normal(x, x)
P.quantile(x, 0.5); P.histogramdd(x, (2, 2, 2, 2)); P.bincount(i); P.cumsum(x, 0); P.searchsorted(x[0], x); P.var(x)
P.scatter_add(x, 0, i[None], x); P.index_put(x, (i,), x); P.repeat_interleave(x, i, 0); P.where(x > 0, x, x); x[x > 0]
P.nn.LSTM(4, 4)(x); P.nn.Linear(4, 4)(x); x.numpy(); repr(x); x.to(P.bfloat16); P.signal.windows.hann(8)
P.ones(2, requires_grad=True).sum().backward()
"""
PROGRAM = """
import json, os, sys
import numpy, scipy
import ptcore as P
import ptcore.nn.functional as F
P.nn.Linear, P.linalg, P.fft, P.special, P.signal
x, z, i = P.ones(4, 4), P.ones(4, 4, dtype=P.complex64), P.arange(4)
x.sum()
for call in json.loads(sys.argv[1]):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        before = set(sys.modules)
        eval(call)
        print(json.dumps([call, sorted(set(sys.modules) - before)]), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, call
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each call runs in a child")
def test_first_calls_import_little():
    calls = [c.strip() for c in CALLS.replace("\n", ";").split(";") if c.strip()]
    done = subprocess.run([sys.executable, "-P", "-c", PROGRAM, json.dumps(calls)], capture_output=True, text=True,
                          check=False, env={**os.environ, "PTCORE_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    assert [call for call, _ in seen] == calls
    many = {call: modules for call, modules in seen if len(modules) > AT_MOST}
    assert not many
    for call, modules in seen:          # private extension modules alone, without the packages around them
        others = [m for m in modules if m.partition(".")[0] in ("numpy", "scipy")]
        assert set(others) <= {"scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"}, (call, others)
