"""No kernel goes through an input of any size by one block."""
import ptcore
from ptcore import linalg, nn
from ptcore.nn import functional as F

# One block each, over what a whole device has worked out before: a number for each 4096 elements, or for each piece of
# a scan, or for each row of a matrix. So are the second kernels of reductions (``..._finish``), over as many parts as
# the device has room for.
FEW = {"many_norm", "nonzero_sum", "cumsum_before", "cumprod_before", "extreme_before", "logsum_before",
       "solver_determinant", "solver_order"}

CALLS = {
    "elementwise": lambda x: (x + 1, x * x, x.half(), x.t() + 1),
    "reductions": lambda x: (x.sum(), x.sum(0), x.sum(1), x.amax(), x.argmax(), x.var(), x.prod(), x.std(1), x.norm(3),
                             x.logsumexp((0, 1)), x.norm(), (x > 0).any(), x.count_nonzero()),
    "scans": lambda x: (x.reshape(-1).cumsum(0), x.cumsum(0), x.reshape(-1).cumprod(0), x.reshape(-1).cummax(0),
                        x.reshape(-1).logcumsumexp(0)),
    "sorting": lambda x: (x.sort(1), x.reshape(-1).sort(), x.topk(5, 1), x.reshape(-1).topk(5)),
    "rows": lambda x: (x.softmax(1), x.log_softmax(0), F.layer_norm(x, x.shape[1:])),
    "losses": lambda x: (F.mse_loss(x, x), F.cross_entropy(x, x[:, 0].long()), F.nll_loss(x, x[:, 0].long()),
                         F.binary_cross_entropy_with_logits(x, x),
                         F.cross_entropy(x.reshape(-1, 16), x.reshape(-1)[:65536].long())),
    "layers": lambda x: (F.batch_norm(x, None, None, training=True), F.max_pool2d(x[None, None], 2),
                         F.avg_pool2d(x[None], 2), F.interpolate(x[None, None], scale_factor=2), F.pad(x, (1, 1)),
                         F.dropout(x)),
    "moves": lambda x: (x.t().contiguous(), x.flip(0), x[:, ::2].clone(), ptcore.cat([x, x]),
                        x.index_select(0, x[0].long()), x.gather(1, x.long()),
                        x.scatter_add(1, x.long(), x), F.embedding(x[0].long(), x), x.tril(), x.roll(3)),
    "random": lambda x: (ptcore.rand_like(x), ptcore.randn_like(x), ptcore.randperm(x.numel(), device="cuda")),
    "masks": lambda x: (ptcore.masked_select(x, x > 0), x.masked_scatter(x > 0, x)),
    "linalg": lambda x: (linalg.cholesky_ex(x[:300, :300]), linalg.lu(x[:300, :300]), linalg.det(x[:300, :300]),
                         linalg.svdvals(x[:300, :300])),
    "norms": lambda x: nn.utils.clip_grad_norm_([given(x)], 1.0),
}


def given(x):
    p = nn.Parameter(x.detach())
    p.grad = x
    return p


def test_large_inputs_have_many_blocks(driver):
    """Of all launches of a kernel over large inputs at least one has several blocks, but for the few that may not."""
    from standin import Driver
    standin = Driver(driver)
    x = ptcore.zeros(1024, 1024, device="cuda")
    ptcore.cuda.synchronize()
    for kernel in standin.launched():
        standin.blocks(kernel)                          # what came before
    for call in CALLS.values():
        call(x)
    most = {kernel: standin.blocks(kernel) for kernel in standin.launched()}
    assert sum(blocks > 1 for blocks in most.values()) > 50
    assert {kernel for kernel, blocks in most.items() if blocks == 1 and not kernel.endswith("_finish")} <= FEW
