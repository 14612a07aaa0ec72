"""Calls with operands of several dtypes inside ``autocast``, beside PyTorch: dtypes, values, gradients."""
import numpy as np
import pytest
from _walk import every_case

import ptcore

torch = pytest.importorskip("torch")

DTYPES = [("float32",) * 3, ("bfloat16",) * 3, ("float32", "bfloat16", "float32"), ("bfloat16", "float32", "float32"),
          ("float32", "float32", "bfloat16"), ("float16", "float32", "bfloat16")]
# Of a, b and c, three 4 x 4 matrices. Where PyTorch raises, nothing is compared.
CALLS = [
    "M.einsum('ij,jk->ik',a,b)",
    'M.tensordot(a,b,1)',
    'M.nn.functional.bilinear(a,b,c[None]*1)',
    'M.nn.functional.bilinear(a,a,b.reshape(1,4,4),None)',
    'M.linalg.multi_dot([a,b,c])',
    'M.chain_matmul(a,b,c)',
    'M.kron(a,b)',
    'M.inner(a,b)',
    'M.matmul(a,b)',
    'M.mv(a,b[0])',
    'M.dot(a[0],b[0])',
    'M.addmv(a[0],b,c[0])',
    'M.addr(a,b[0],c[0])',
    'M.addmm(a,b,c)',
    'M.addbmm(a,b[None],c[None])',
    'M.baddbmm(a[None],b[None],c[None])',
    'M.nn.functional.linear(a,b)',
    'M.nn.functional.linear(a,b,c[0])',
    'M.conv1d(a[None],b[:,:,None])',
    'M.conv1d(a[None],a[:,:,None],b[0])',
    'M.conv2d(a[None,None],b[None,None])',
    'M.conv_transpose1d(a[None],b[:,:,None])',
    'M.prelu(a,b[0])',
    'M.nn.functional.prelu(a,b[0,:1])',
    'M.cat([a,b])',
    'M.stack([a,b])',
    'M.hstack([a,b])',
    'M.cross(a[:,:3],b[:,:3],dim=1)',
    'M.atan2(a,b)',
    'M.where(a>0,a,b)',
    'a.clone().index_put_((M.tensor([0]),),b[:1])',
    'M.index_put(a,(M.tensor([0]),),b[:1])',
    'M.scatter_add(a,0,M.zeros(4,4,dtype=M.int64),b)',
    'M.scatter(a,0,M.zeros(4,4,dtype=M.int64),b)',
    'M.index_add(a,0,M.tensor([0]),b[:1])',
    'M.index_copy(a,0,M.tensor([0]),b[:1])',
    'M.masked_scatter(a,a>0,b)',
    'M.nn.functional.grid_sample(a[None,None],b.reshape(1,2,4,2))',
    'M.nn.functional.mse_loss(a,b)',
    'M.nn.functional.l1_loss(a,b)',
    'M.nn.functional.binary_cross_entropy_with_logits(a,b)',
    "M.nn.functional.kl_div(a,b.softmax(1),reduction='batchmean')",
    'M.nn.functional.cosine_embedding_loss(a,b,M.ones(4))',
    'M.nn.functional.triplet_margin_loss(a,b,c)',
    'M.nn.functional.cross_entropy(a,b.softmax(1))',
    'M.nn.functional.layer_norm(a,(4,),b[0],c[0])',
    'M.nn.functional.group_norm(a,2,b[0],c[0])',
    'M.nn.functional.batch_norm(a,b[0].abs(),c[0].abs(),a[0],a[1])',
    'M.nn.functional.instance_norm(a[None],weight=b[0],bias=c[0])',
    'M.nn.functional.rms_norm(a,(4,),b[0])',
    'M.nn.functional.scaled_dot_product_attention(a[None,None],b[None,None],c[None,None])',
    'M.nn.functional.scaled_dot_product_attention(a[None,None],a[None,None],a[None,None],attn_mask=b)',
    'M.lerp(a,b,0.5)',
    'M.lerp(a,b,c)',
    'M.addcmul(a,b,c)',
    'M.addcdiv(a,b,c)',
    'M.cdist(a,b)',
    'M.dist(a,b)',
    'M.cosine_similarity(a,b)',
    'M.nn.functional.pairwise_distance(a,b)',
    'a*b',
    'M.pow(a.abs(),b)',
    'M.fmod(a,b)',
    'M.maximum(a,b)',
    'M.clamp(a,b)',
    'M.copysign(a,b)',
    'M.hypot(a,b)',
    'M.logaddexp(a,b)',
    'M.xlogy(a,b.abs())',
    'M.outer(a[0],b[0])',
    'M.vdot(a[0],b[0])',
    'M.linalg.solve(a,b)',
    'M.linalg.lstsq(a,b)[0]',
    'M.linalg.solve_triangular(a,b,upper=True)',
    'M.gru_cell(a,b,c.repeat(3,1),c.repeat(3,1))',
    'M.rnn_tanh_cell(a,b,c,c)',
    'M.lstm_cell(a,(b,c),a.repeat(4,1),c.repeat(4,1))[0]',
    'M.nn.functional.multilabel_soft_margin_loss(a,b)',
    'M.nn.functional.huber_loss(a,b)',
    'M.nn.functional.smooth_l1_loss(a,b)',
    'M.nn.functional.gaussian_nll_loss(a,b,c.abs())',
    'M.nn.functional.poisson_nll_loss(a,b)',
    'M.nn.functional.soft_margin_loss(a,b)',
    'M.nn.functional.hinge_embedding_loss(a,b.sign())',
    'M.nn.functional.margin_ranking_loss(a,b,c)',
    'M.searchsorted(a.sort()[0],b)',
    'M.bucketize(a,b[0].sort()[0])',
    'M.cov(a,aweights=b[0].abs())',
    'M.quantile(a,b[0].sigmoid())',
    'M.complex(a,b)',
    'M.heaviside(a,b)',
    'M.ldexp(a,b)',
    'M.block_diag(a,b)',
    'M.cartesian_prod(a[0],b[0])',
    "M.meshgrid(a[0],b[0],indexing='ij')[0]",
    "M.nn.functional.multi_head_attention_forward(a[:, None], b[:, None], b[:, None], 4, 2, c.repeat(3, 1), None, "
    "None, None, False, 0., c, None)[0]",
    'a.clone().add_(b)',
    'a.clone().copy_(b)',
    'a.clone().addmm_(b,c)',
    'a[None].clone().baddbmm_(b[None],c[None])',
    'M.mm(a,b,out=M.empty(4,4))',
    '(lambda z:(z.__setitem__(0,b[0]),z)[1])(a.clone())',
    'a.clone().masked_scatter_(a>0,b)',
    "M.scatter_reduce(a,0,M.zeros(4,4,dtype=M.int64),b,'sum')",
    'a.clone().put_(M.tensor([0]),b[0,:1])',
    'M.conv2d(a[None,None],a[None,None],b[0,:1])',
    'M.stft(a,4,window=b[0],return_complex=True).abs()',
    "M.nn.GRUCell(4, 4)(a, b)", "M.nn.LSTMCell(4, 4)(a, (b, c))[1]", "M.nn.RNNCell(4, 4)(a, b)", "M.nn.RNN(4, 4)(a)[0]",
    "M.nn.GRU(4, 4, 2, bidirectional=True)(a)[0]", "M.nn.LSTM(4, 4)(a.float())[1][1]",
]
MATRICES = list(np.random.default_rng(0).normal(size=(3, 4, 4)).astype(np.float32))


def run(M, call, dtypes):
    """The dtype and values of the result and of the three gradients, or None where the call raises."""
    a, b, c = leaves = [M.tensor(x).to(getattr(M, d)).requires_grad_() for x, d in zip(MATRICES, dtypes)]
    try:
        with M.autocast("cpu", dtype=M.bfloat16):
            out = eval(call, {"M": M, "a": a, "b": b, "c": c})
        total = out.abs().sum() if out.is_complex() else out.float().sum()
        if total.requires_grad:
            total.backward()
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        return None
    values = out.detach().abs() if out.is_complex() else out.detach()
    return [(str(x.dtype).split(".")[-1], x.float().numpy()) if x is not None else None
            for x in (values, *[leaf.grad for leaf in leaves])]


@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")
def test_as_in_pytorch():
    compared = 0
    with every_case() as case:
        for call in CALLS:
            for dtypes in DTYPES:
                expected = run(torch, call, dtypes)
                if expected is None:
                    continue
                with case(f"{call} of {dtypes}"):
                    got = run(ptcore, call, dtypes)
                    assert got is not None, "raises"
                    assert [x and x[0] for x in got] == [x and x[0] for x in expected]
                    compared += 1
                    if "nn." in call and "(4, 4" in call and "functional" not in call:
                        continue                # the weights are drawn
                    for x, y in zip(got, expected):
                        if x is not None:
                            scale = max(1, np.nanmax(np.abs(y[1])))
                            np.testing.assert_allclose(x[1], y[1], rtol=0.05, atol=0.05 * scale)
    assert compared > 300
