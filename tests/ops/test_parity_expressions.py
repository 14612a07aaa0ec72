"""Expressions as users write them, under both libraries: every form of an argument that torch takes.

Numbers of NumPy, tensors for numbers, negative dims, lists and tuples of dims, bools in arithmetic, mixed dtypes.
"""
import numpy as np
import pytest
from program_tools import assert_same, torch

import ptcore as pt

pytestmark = pytest.mark.parity
EXPRESSIONS = """
x+np64; x*npi; np64*x; npi-x; x**npi; x/np.float32(2); x[npi]; x[np.array([0,2])]
x[np.array([True,False,True])]; x.sum(npi-1); m.zeros(npi,2).shape; m.tensor(np64); m.tensor(npi)
m.tensor([np64,1]); m.tensor([npi,1]); m.tensor(np.float32(1)); m.tensor([t(1.),t(2.)])
m.tensor([[t(1),2],[3,t(4)]]); m.as_tensor([1,2.,True]); m.tensor([True,2]); m.tensor([1+2j,1]); m.tensor(x)
m.tensor([]); m.tensor([[],[]]); m.stack([x[0],x[1]]).shape; m.arange(5.); m.arange(1,5,dtype=m.float32)
m.arange(t(3)); m.linspace(t(0.),t(1.),3); m.where(b,x,0); m.where(b,1,0); m.where(b,1.,x.float())
m.where(b,i,x); m.where(x>0); x.clamp(t(0.),t(1.)); m.clamp(i,0.5,2); m.clamp(i,min=t(1)); x.pow(t(2))
m.pow(2,x); m.pow(t(2),i); 2**i; i**2; i**-1.; i**t(2.); x.std(dim=0,correction=0); x.std(0,True)
x.var(unbiased=True); x.mean((0,1)); x.sum(dim=[0,1]); x.sum([]); x.sum(()); x.mean([]); x.amax(()); x.prod()
x.all(); b.all(0); b.any(dim=(0,1)); x.any(); i.sum(dtype=m.int32); b.sum(); b.float().mean(); b+b; b*b; b|b
b^True; ~b; -i; i/2; i//2.; i%2.5; x//1; x%1; divmod(7,3); i.true_divide(2); m.div(i,2,rounding_mode='trunc')
m.div(x,.3,rounding_mode='floor'); i.float()/i; i/i.clamp(min=1); b/1; x.float()+x; x.half()+x.float()
x.half()*i; i+1.5; i.int()+i; i.to(m.int8)+i.to(m.uint8); x.float()+np64; t(1)+x.float()
t(1.,dtype=m.float64)+x.float(); t(1.,dtype=m.float64)+i; t([1.],dtype=m.float64)+x.float(); c+1; c*x; c.abs()+1
c==c; c.sum(); c.mean(0); c.prod(1); c.cumsum(0); c.conj().T; c.T.conj(); c.H; c.mH; c[0].dot(c[1])
m.vdot(c[0],c[1]); c@c.mT; x@x[0]; x[0]@x[1]; x[0]@x.T; m.matmul(x[None],x.T[None]); m.einsum('ij,ij->',x,x)
m.einsum('ij->ji',x); m.einsum('ij,jk',x,x.T); m.einsum('...j,j',x,x[0]); m.einsum('ii->i',x[:,:3])
m.einsum('bi,bj->bij',x,x); m.einsum(x,[0,1],x,[0,1],[0]); m.tensordot(x,x,2); m.tensordot(x,x.T,1)
m.cat((x,x),axis=1); m.cat([x,i]); m.cat([x.float(),x]); m.cat([m.zeros(0),x[0].float()]); m.stack((x,x),-1)
m.hstack((x[0],x[1])); m.vstack((x[0],x[1])); m.split(x,2); m.split(x,[1,2],0); m.chunk(x,2,1)
x.tensor_split((1,3),1); x.unfold(1,2,1); x.repeat(2,1,1); x.repeat((2,2)); x.tile((2,)); x.expand(-1,-1)
x[None].expand(2,-1,4); x.expand_as(x[None].repeat(2,1,1)); x.permute(1,0); x.permute((1,0))
x.permute(dims=(1,0)); x.transpose(-1,-2); x.T; x.movedim((0,1),(1,0)); x.flip(0,1); x.flip([0]); x.flip((-1,))
x.roll(2); x.roll((1,1),(0,1)); x.rot90(-1); x.squeeze(); x[None].squeeze(0); x[None].squeeze((0,))
x.unsqueeze(-1).shape; x.flatten(); x.flatten(start_dim=1); x.reshape(2,-1); x.reshape((2,6)); x.view(6,2)
x.view(m.int64); x.float().view(m.int32); x.diagonal(); x.diag(); x[0].diag(1); x.tril(-1)
x.sort(descending=True); x.sort(0)[1]; x.argsort(dim=0,stable=True); x.topk(2,sorted=True)
x.topk(k=2,dim=0,largest=False)[0]; x.kthvalue(2); x.median(); x.median(dim=1,keepdim=True); x.mode(1)[0]
x.max(dim=1)[1]; x.max(1,keepdim=True).values; m.max(x,1).indices; m.max(x,t(0.,dtype=m.float64))
m.minimum(x,x.T[:1].T); x.argmin(dim=0); x.min(); x.aminmax(dim=0,keepdim=True); x.cummin(0).indices
x.gather(1,i.argsort(1)); x.gather(dim=0,index=i[:2]%3); x.scatter(0,i%3,5.); x.scatter(1,i,x)
m.zeros(3,4,dtype=m.float64).scatter_(1,i[:,:1],1); x.scatter_add(1,i,x); x.scatter_reduce(1,i,x,'amax')
x.scatter_reduce(1,i,x,reduce='sum',include_self=False); x.index_add(0,t([0,0]),x[:2])
x.index_select(-1,t([1])); x.index_fill(0,t([0]),-1); x.take(t([[0,1],[2,3]])); x.masked_select(b)
x.masked_fill(b,np64); x.masked_fill(b,t(1.)); x.nonzero(); m.nonzero(b,as_tuple=True); b.nonzero().shape
x.unique(); i.unique(return_counts=True); i.unique(dim=0); i[0].unique_consecutive(return_inverse=True)
m.histc(x,3,-1,1); x.cumsum(-1,dtype=m.float32); x.diff(); x.diff(prepend=x[:,:1]); m.trapezoid(x,dx=.5)
m.trapezoid(x,x.cumsum(1)); x.logsumexp(1); x.logsumexp((0,1),keepdim=True); x.softmax(-1,dtype=m.float32)
x.log_softmax(dim=0); x.norm(); x.norm(p=1); x.norm(2,1); x.norm(float('inf'),(0,1)); x.norm('fro')
x.norm(dim=0,p=3); m.linalg.norm(x,1); m.linalg.norm(x,dim=0); m.linalg.norm(x[0],-1); m.linalg.matrix_norm(x)
m.linalg.vector_norm(x,0); x.dist(x*2,1); m.cdist(x,x,p=1); x.renorm(1,0,.5); x.allclose(x+1e-9)
m.isclose(x,x+1e-3,atol=1e-2); x.equal(x); x.eq(1).sum(); x.ne(x).any(); x.isnan().any(); x.isinf().any()
x.nan_to_num(0.); m.round(x,decimals=1); x.round(); x.trunc(); x.frac(); x.sign(); x.copysign(-1)
x.abs().sqrt().rsqrt(); x.exp2(); x.sigmoid(); x.logit(.01); x.lerp(x*2,t(.3,dtype=m.float64))
x.lerp(x*2,x.sigmoid()); x.addcmul(x,x); x.addcdiv(x,x+9,value=.5); m.addmm(x@x.T,x,x.T); m.addmv(x[:,0],x,x[0])
m.addr(m.zeros(3,4,dtype=m.float64),x[:,0],x[0]); m.baddbmm(m.zeros(1,3,3,dtype=m.float64),x[None],x.T[None])
m.bucketize(x,t([-1.,0,1],dtype=m.float64)); m.searchsorted(t([1,3,5]),t(3),right=True)
m.searchsorted(t([1,3,5]),3); m.quantile(x,.5); m.quantile(x,.25,dim=1,keepdim=True,interpolation='nearest')
m.nanquantile(x,t([.2,.8],dtype=m.float64),0); m.meshgrid(x[0],x[:,0],indexing='xy')
m.cartesian_prod(t([1,2]),t([3])); m.combinations(t([1,2,3]),2,True); m.tril_indices(3,3,-1)
m.triu_indices(2,3); m.eye(2,3,dtype=m.int32); m.full_like(x,3); m.zeros_like(i,dtype=m.float32)
m.empty_like(x).shape; m.ones(2,3,1).squeeze(-1).shape; x.new_zeros(2,3); x.new_zeros((2,)); x.new_full((2,),1)
i.new_tensor([1.5]); x.to(m.float32).dtype; x.to('cpu') is x; x.to(dtype=m.half).dtype; x.type(m.int32)
x.long(); x.bool(); x.char(); i.double(); x.cfloat(); x[0,0].item(); x.tolist(); i.tolist(); x.numpy(); x.size()
x.size(0); x.shape[1:]; x.stride(0); x.ndim; x.ndimension(); x.nelement(); x.itemsize; x.nbytes; x.is_cuda
x.device; x.layout == m.strided; x.requires_grad; x.is_leaf; x.grad; len(x); list(x)[1]; x.__contains__(float(x[0,0]))
bool(t(1)); int(t(2.7)); float(t(3)); complex(t(1.)); t(2).__index__(); [1,2,3][t(1)]; range(t(3)); abs(x)
pow(x,2); -x; x.__rsub__(1); x.__rpow__(2); 1-x; 2/x; 2//x.abs(); 7%i.clamp(min=1); x>0; 0<x; x==None; x!=None
x is x; i&1; 1|i; i<<1; 1<<i; i>>1; x.T.is_contiguous(); x.T.contiguous().stride(); x[::2,1:3]; x[...,None]
x[:,[0,2]]; x[[0,1],[0,1]]; x[t([0,1])][:,None]; x[b]; x[0:0].shape; x[-1,-1]; x[1:2].squeeze(); x[:,-1:]
x[(0,1)]; x[[0]]; x[[True,False,True]]; x[None,None].shape; x[i[:,0]%3]; x[b.any(1)]; x[:,b[0]]; x[0][b[0]]
x[t(1)]; x[...]
"""


def values(m):
    rng = np.random.default_rng(7)
    x, i = m.from_numpy(rng.normal(size=(3, 4))), m.from_numpy(rng.integers(0, 4, (3, 4)))
    return {"m": m, "np": np, "x": x, "i": i, "b": x > 0, "c": m.complex(x, x), "t": m.tensor, "np64": np.float64(2.5),
            "npi": np.int64(2)}


def plain(value):
    """Without what names the library."""
    if isinstance(value, torch.Tensor):
        return value.resolve_conj().resolve_neg()
    return str(value).replace("ptcore.", "torch.") if type(value).__module__.startswith(("torch", "ptcore")) and not (
        isinstance(value, (pt.Tensor, tuple))) else value


LINES = EXPRESSIONS.strip().split("\n")


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_line(line):
    for expression in line.split("; "):
        try:
            theirs = eval(expression, values(torch))
        except Exception as e:
            with pytest.raises(type(e)):
                eval(expression, values(pt))
            continue
        assert_same(plain(eval(expression, values(pt))), plain(theirs), expression)
