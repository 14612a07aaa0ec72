"""Kernels on a million elements and large products, without autograd."""
from . import workload


def large(name, call, shapes):
    def make(xp):
        tensors = [xp.randn(*s) for s in shapes]
        return lambda: call(xp, *tensors)
    workload("large", name, make, 1.25)


M = (1024, 1024)
large("add 1M", lambda xp, a, b: a + b, [M, M])
large("exp 1M", lambda xp, a: a.exp(), [M])
large("tanh 1M", lambda xp, a: a.tanh(), [M])
large("gelu 1M", lambda xp, a: xp.nn.functional.gelu(a), [M])
large("a + b.T 1M", lambda xp, a, b: a + b.t(), [M, M])
large("where 1M", lambda xp, a, b: xp.where(a > 0, a, b), [M, M])
large("sum all 1M", lambda xp, a: a.sum(), [M])
large("sum last 1M", lambda xp, a: a.sum(1), [M])
large("sum first 1M", lambda xp, a: a.sum(0), [M])
large("amax last 1M", lambda xp, a: a.amax(1), [M])
large("softmax 1M", lambda xp, a: a.softmax(1), [M])
large("layer_norm 1M", lambda xp, a: xp.nn.functional.layer_norm(a, (1024,)), [M])
large("cumsum 1M", lambda xp, a: a.cumsum(1), [M])
large("mm 512", lambda xp, a, b: a @ b, [(512, 512), (512, 512)])
large("linear 4 x 1024", lambda xp, a, w: xp.nn.functional.linear(a, w), [(4, 1024), M])
large("transpose copy 1M", lambda xp, a: a.t().contiguous(), [M])

# -- data movement, selection, statistics ------------------------------------------------------------


def indexed(name, call, shape=M):
    """``call(xp, a, index)`` with a row of indices into the first dimension of a."""
    def make(xp):
        a, index = xp.randn(*shape), xp.randint(shape[0], (shape[0],))
        return lambda: call(xp, a, index)
    workload("large", name, make, 1.25)


def scattered(name, call):
    def make(xp):
        a, b, index = xp.zeros(*M), xp.randn(*M), xp.randint(M[0], M)
        return lambda: call(xp, a, b, index)
    workload("large", name, make, 1.25)


large("sort last 1M", lambda xp, a: a.sort(1), [M])
large("topk 10 last 1M", lambda xp, a: a.topk(10, 1), [M])
large("median last 1M", lambda xp, a: a.median(1), [M])
large("argmax last 1M", lambda xp, a: a.argmax(1), [M])
large("max first 1M", lambda xp, a: a.max(0), [M])
large("var all 1M", lambda xp, a: a.var(), [M])
large("norm all 1M", lambda xp, a: xp.linalg.vector_norm(a), [M])
large("logsumexp last 1M", lambda xp, a: a.logsumexp(1), [M])
large("cat first 2M", lambda xp, a, b: xp.cat([a, b]), [M, M])
large("cat last 2M", lambda xp, a, b: xp.cat([a, b], 1), [M, M])
large("permute copy 1M", lambda xp, a: a.permute(2, 0, 1).contiguous(), [(128, 128, 64)])
large("bool mask 1M", lambda xp, a: a[a > 0], [M])
large("nonzero 1M", lambda xp, a: (a > 0).nonzero(), [M])
large("roll 1M", lambda xp, a: a.roll(3, 1), [M])
large("bmm 32 x 64", lambda xp, a, b: a @ b, [(32, 64, 64), (32, 64, 64)])
large("einsum bij,bjk", lambda xp, a, b: xp.einsum("bij,bjk->bik", a, b), [(32, 64, 64), (32, 64, 64)])
large("cdist 500 x 32", lambda xp, a, b: xp.cdist(a, b), [(500, 32), (500, 32)])
large("randn 1M", lambda xp: xp.randn(*M), [])
indexed("index_select rows 1M", lambda xp, a, i: a.index_select(0, i))
indexed("a[index] rows 1M", lambda xp, a, i: a[i])
indexed("unique 1M integers", lambda xp, a, i: i.unique(), (1_000_000,))
scattered("gather last 1M", lambda xp, a, b, i: b.gather(1, i))
scattered("scatter_add last 1M", lambda xp, a, b, i: a.scatter_add_(1, i, b))
scattered("index_put accumulate 1M", lambda xp, a, b, i: a.index_put_((i[0],), b, accumulate=True))
