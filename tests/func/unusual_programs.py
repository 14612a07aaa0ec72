"""Programs of parts that are seldom together: complex numbers, decompositions, scans, writes, layers, custom Functions.

Each part takes the library and a vector of float64, and gives another vector. Parts follow each other in a program.
``test_unusual_programs.py`` differentiates programs in all ways, ``test_parity_unusual_programs.py`` beside PyTorch.
"""
import importlib

import numpy as np

N = 5                                   # elements of a program's argument
PARTS = {}
BACKWARD_ALONE = {"hvp_inside", "function_of_a_function"}               # there is no forward mode
NOT_ITS_DERIVATIVE = {"detached", "padding_row", "detached_statistics"}       # by intention


def part(function):
    PARTS[function.__name__] = function
    return function


def constant(T, *shape, seed=0, dtype="float64"):
    shape = [int(n) for n in shape]
    r = np.random.default_rng([seed, *shape])
    x = r.normal(size=shape)
    return T.tensor((x + 1j * r.normal(size=shape) if dtype[0] == "c" else x).tolist(), dtype=getattr(T, dtype))


def filled(v, *shape):
    """The elements of v, repeated or cut to a shape."""
    n = int(np.prod(shape))
    return v.repeat(-(-n // v.numel()))[:n].reshape(shape)


def uneven(T, v, *shape):
    return filled(v, *shape) * constant(T, *shape, seed=1)


def matrix(T, v, n=3):
    return filled(v, n, n) + constant(T, n, n, seed=3)


def numbers(T, v):
    """Complex numbers."""
    return T.complex(v, v.flip(0) * 0.7 + 0.1)


def complex_matrix(T, v, n=3):
    a = filled(v, 2, n, n)
    return T.complex(a[0], a[1]) + constant(T, n, n, seed=3, dtype="complex128")


def hermitian(T, v):
    a = complex_matrix(T, v)
    return a + a.mH


def definite(T, v):
    a = complex_matrix(T, v)
    return a @ a.mH + T.eye(3, dtype=T.float64)


def line(T, x):
    return T.view_as_real(x.resolve_conj() if T.__name__ == "torch" else x).flatten() if x.is_complex() else x.flatten()


# -- functions of one tensor: name -> function of the library and the tensor ------------------------------------------

OF_NUMBERS = {
    "pow": lambda T, z: z ** (z.flip(0) * 0.3),
    "prod_with_zero": lambda T, z: T.cat([z[:3], z[:1] * 0]).prod(),
    "cumprod_with_zero": lambda T, z: (z[:4] * T.tensor([1, 0, 1, 0.5], dtype=T.float64)).cumprod(0),
    "logcumsumexp": lambda T, z: z.logcumsumexp(0),
    "norm3": lambda T, z: z.norm(3),
    "std": lambda T, z: T.stack([z, z * 2j + 1]).std(1),
    "angle": lambda T, z: z.angle() + z.abs() + z.sgn().real,
    "addcmul": lambda T, z: T.addcmul(z, z.sin(), z.cos(), value=1 - 2j),
    "fft": lambda T, z: T.fft.fft(z, n=7, norm="ortho"),
    "hfft": lambda T, z: T.fft.hfft(z, n=5),
    "irfft": lambda T, z: T.fft.irfft(z, n=7),
    "parts_written": lambda T, z: parts_written(T, z * 1),
    "pairs_written": lambda T, z: pairs_written(T, z * 1),
}
OF_MATRICES = {
    "inv": lambda T, a: T.linalg.inv(a),
    "det": lambda T, a: T.linalg.det(a),
    "slogdet": lambda T, a: T.linalg.slogdet(a)[0],
    "eigvals": lambda T, a: T.linalg.eigvals(a).abs().sort()[0],
    "svdvals": lambda T, a: T.linalg.svdvals(a),
    "svd": lambda T, a: (lambda u, s, vh: (u * s * s) @ vh)(*T.linalg.svd(a[:2], full_matrices=False)),
    "qr": lambda T, a: (lambda q, r: q @ r * 0.5 + q @ (q.mH @ a[:, :2]).sin())(*T.linalg.qr(a[:, :2])),
    "lu": lambda T, a: T.linalg.lu(a)[2],
    "lu_solve": lambda T, a: T.linalg.lu_solve(*T.linalg.lu_factor(a), a[:, :1]),
    "pinv": lambda T, a: T.linalg.pinv(a[:, :2]),
    "cond": lambda T, a: T.linalg.cond(a),
    "norms": lambda T, a: T.stack([T.linalg.matrix_norm(a, k) for k in ("fro", "nuc", 2, -2, 1)]),
    "matrix_exp": lambda T, a: T.linalg.matrix_exp(a * 0.3),
}
OF_VECTORS = {
    "eigvalsh": lambda T, v: T.linalg.eigvalsh(hermitian(T, v)),
    "eigh": lambda T, v: (lambda w, q: (q * w.sin()) @ q.mH)(*T.linalg.eigh(hermitian(T, v))),
    "cholesky": lambda T, v: T.linalg.cholesky(definite(T, v)),
    "householder": lambda T, v: T.linalg.householder_product(matrix(T, v), v[:2] * 0.3),
    "istft": lambda T, v: T.istft(T.complex(filled(v, 3, 5), filled(v.sin(), 3, 5)), 5, hop_length=2,
                                  window=T.hann_window(5, dtype=T.float64) + 0.1),
    "cumprod_zeros": lambda T, v: (filled(v, 5) * T.tensor([1., 0, 1, 0, 1], dtype=T.float64)).cumprod(0),
    "prod_zeros": lambda T, v: (filled(v, 3, 2) * T.tensor([[1.], [0], [1]], dtype=T.float64)).prod(1),
    "cummax": lambda T, v: T.cat([v.cummax(0)[0], v.cummin(0)[0]]),
    "logcumsumexp_real": lambda T, v: v.logcumsumexp(0),
    "order": lambda T, v: T.cat([v.sort(descending=True)[0], v.topk(2)[0], T.stack([v.median(), v.kthvalue(2)[0]])]),
    "where_nan": lambda T, v: T.where(v > 0, T.where(v > 0, v, 1.).log(), v),
    "between": lambda T, v: v.clamp(v.flip(0) - 0.3, v.roll(1) + 2),
    "integers_inside": lambda T, v: v * (v * 3).round().to(T.int64) + v * (v > 0) + v[v.argsort()],
    "detached": lambda T, v: v * v.detach() + v,
    # layers
    "max_pool": lambda T, v: T.nn.functional.max_pool2d(uneven(T, v, 1, 1, 5, 5), 2, 1, 1, 2),
    "unpooled": lambda T, v: (lambda y, k: T.nn.functional.max_unpool1d(y ** 2, k, 2))(
        *T.nn.functional.max_pool1d(uneven(T, v, 1, 1, 8), 2, return_indices=True)),
    "sampled": lambda T, v: T.nn.functional.grid_sample(
        matrix(T, v)[None, None], filled(v.sin(), 1, 2, 2, 2) + constant(T, 1, 2, 2, 2) * 0.2,
        padding_mode="reflection", align_corners=False),
    "ctc": lambda T, v: T.nn.functional.ctc_loss(
        uneven(T, v, 4, 2, 3).log_softmax(-1), T.tensor([[1, 2], [1, 1]]), T.tensor([4, 4]), T.tensor([2, 1]),
        reduction="none"),
    "ctc_impossible": lambda T, v: T.nn.functional.ctc_loss(
        uneven(T, v, 4, 2, 3).log_softmax(-1), T.tensor([[1, 2], [1, 1]]), T.tensor([4, 2]), T.tensor([2, 2]),
        zero_infinity=True),
    "attention": lambda T, v: T.nn.functional.scaled_dot_product_attention(
        *[uneven(T, v.roll(k), 1, 2, 3, 2) for k in range(3)], attn_mask=matrix(T, v)),
    "largest_of_bags": lambda T, v: T.nn.functional.embedding_bag(
        T.tensor([0, 1, 1, 2, 0]), uneven(T, v, 3, 2), T.tensor([0, 2, 2]), mode="max"),
    "padding_row": lambda T, v: T.nn.functional.embedding(T.tensor([[0, 1], [1, 2]]), filled(v, 3, 2), padding_idx=1),
    "layer_norm": lambda T, v: T.nn.functional.layer_norm(matrix(T, v), (3,), v[:3], v[1:4]),
    "batch_norm": lambda T, v: T.nn.functional.batch_norm(matrix(T, v), None, None, v[:3], v[1:4], True),
    "group_norm": lambda T, v: T.nn.functional.group_norm(uneven(T, v, 1, 4, 3), 2, v[:4], v[:4]),
    "detached_statistics": lambda T, v: T.nn.functional.batch_norm(
        matrix(T, v), v[:3].detach(), v[:3].detach() ** 2 + 1),
    "softmax": lambda T, v: v.softmax(0) + v.log_softmax(0),
    "cross_entropy": lambda T, v: T.nn.functional.cross_entropy(matrix(T, v), T.tensor([0, 2, 1]), label_smoothing=0.1),
    "margin": lambda T, v: T.nn.functional.multi_margin_loss(matrix(T, v), T.tensor([0, 2, 1]), p=2),
    "distances": lambda T, v: T.cat([T.cdist(matrix(T, v), matrix(T, v.sin()), p=p).flatten() for p in (1., 2., 3.)]),
    "pairs": lambda T, v: T.nn.functional.pdist(matrix(T, v)),
    # transformations inside
    "grad_inside": lambda T, v: T.func.grad(lambda a: (a ** 3 * v.sum()).sum())(v),
    "jvp_inside": lambda T, v: T.func.jvp(lambda a: a.sin() * v, (v,), (v.cos(),))[1],
    "vmap_inside": lambda T, v: T.vmap(lambda a: (a * v).sum())(v),
    "hessian_inside": lambda T, v: T.func.hessian(lambda a: (a ** 3 * v[:3]).sum())(v[:3]),
}
for _name, _function in OF_NUMBERS.items():
    PARTS[_name] = lambda T, v, f=_function: line(T, f(T, numbers(T, v)))
for _name, _function in OF_MATRICES.items():
    PARTS[_name] = lambda T, v, f=_function: line(T, f(T, complex_matrix(T, v)))
for _name, _function in OF_VECTORS.items():
    PARTS[_name] = lambda T, v, f=_function: line(T, f(T, v))


# -- writes -----------------------------------------------------------------------------------------------------------

def parts_written(T, z):
    z.real.mul_(z.imag.clone())
    z.imag[1:].add_(z.real[:-1].clone())
    return z


def pairs_written(T, z):
    pairs = T.view_as_real(z)
    pairs[:, 1].mul_(2)
    pairs.t()[0].mul_(z.real.clone())
    return z * z


@part
def numbers_of_pairs(T, v):
    y = filled(v, 3, 2) * 1
    z = T.view_as_complex(y)
    z[1:].mul_(numbers(T, v)[:2])
    z.imag.sin_()
    return y.flatten()


@part
def put_twice(T, v):
    y = v * 1
    y.index_put_((T.tensor([0, 1, 1, 0]),), v[:4].sin(), accumulate=True)
    return y


@part
def put_broadcast(T, v):
    y = filled(v, 3, 2) * 1
    y[T.tensor([[0], [2]]), T.tensor([0, 1])] = v[:2].sin()
    return y.flatten()


@part
def scattered_to_a_view(T, v):
    y = filled(v, 2, 3) * 1
    y.t().scatter_(0, T.tensor([[2, 0]]), v[:2].exp()[None])
    return y.flatten()


@part
def reduced_without_itself(T, v):
    return v.scatter_reduce(0, T.tensor([0, 1, 1, 0]), v[:4].sin(), "prod", include_self=False)


@part
def windows_written(T, v):
    y = (filled(v, 8) * 1).reshape(2, 4).t()
    y.as_strided((2, 2), (3, 1), 1).mul_(v[:2])
    return (y.as_strided((3, 3), (2, 1), 0) ** 2).flatten()


@part
def dims_changed(T, v):
    y = filled(v, 2, 3) * 1
    row = y[1]
    y.t_()
    y[0].mul_(v[:2])
    row.sin_()
    return T.cat([y.flatten(), row])


@part
def diagonals_written(T, v):
    y = matrix(T, v)
    y.diagonal(1).mul_(v[:2])
    y.t().diagonal(1).add_(v[:2])
    y.fill_diagonal_(2.)
    return y.flatten()


@part
def written_by_itself(T, v):
    y = v * 1
    y.add_(y.flip(0))
    y[1:].sub_(y[0].clone() * v[0])
    y.sub_(y)
    y.add_(v).sin_()
    return y


# -- custom Functions -------------------------------------------------------------------------------------------------

_classes = {}


def class_of(T, make):
    if (T.__name__, make) not in _classes:
        _classes[T.__name__, make] = make(T.autograd.Function, T)
    return _classes[T.__name__, make]


def cube_and_exp(Function, T):
    class CubeAndExp(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * x * x, x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0], output[1])
            ctx.save_for_forward(inputs[0], output[1])

        @staticmethod
        def backward(ctx, g, h):
            x, e = ctx.saved_tensors
            return 3 * x * x * g + e * h

        @staticmethod
        def jvp(ctx, t):
            x, e = ctx.saved_tensors
            return 3 * x * x * t, e * t
    return CubeAndExp


def scaled(Function, T):
    class Scaled(Function):
        """In place, without a ``setup_context``."""

        @staticmethod
        def forward(ctx, x, factor):
            ctx.mark_dirty(x)
            ctx.factor = factor
            return x.mul_(factor)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None

        @staticmethod
        def jvp(ctx, t, _):
            return t.mul_(ctx.factor)
    return Scaled


def seen(Function, T):
    class Seen(Function):
        """The input itself."""
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 1

        @staticmethod
        def jvp(ctx, t):
            return t.view_as(t)
    return Seen


def sine(Function, T):
    class Slope(Function):
        @staticmethod
        def forward(ctx, g, x):
            ctx.save_for_backward(g, x)
            return g * x.cos()

        @staticmethod
        def backward(ctx, h):
            g, x = ctx.saved_tensors
            return h * x.cos(), -h * g * x.sin()

    class Sine(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            return Slope.apply(g, *ctx.saved_tensors)
    return Sine


@part
def function_of_two_results(T, v):
    a, b = class_of(T, cube_and_exp).apply(v * 0.5)
    return a * b


@part
def function_in_place(T, v):
    y = v * 1
    z = class_of(T, scaled).apply(y, 3.)
    return y * z * v


@part
def function_on_a_view(T, v):
    y = v * 1
    class_of(T, scaled).apply(y[1:], 3.)
    return y * v


@part
def function_of_the_input(T, v):
    return class_of(T, seen).apply(v) * v


@part
def function_of_a_function(T, v):
    return class_of(T, sine).apply(v) * v


# -- what becomes of saved tensors ------------------------------------------------------------------------------------

@part
def checkpointed(T, v):
    checkpoint = importlib.import_module(T.__name__ + ".utils.checkpoint").checkpoint
    return checkpoint(lambda a: (a * a).sin() * a, v * 1, use_reentrant=False)


@part
def saved_and_written(T, v):
    with T.autograd.graph.allow_mutation_on_saved_tensors():
        y = v * 1
        z = y * y
        y.mul_(2)
        return z + y


@part
def packed(T, v):
    with T.autograd.graph.saved_tensors_hooks(lambda t: (t, 1), lambda held: held[0]):
        return (v * v).exp().tanh()


@part
def hvp_inside(T, v):
    return T.autograd.functional.hvp(lambda a: (a ** 3).sum(), v[:3], v[:3] * 2, create_graph=True)[1]


@part
def jacobian_inside(T, v):
    return T.autograd.functional.jacobian(lambda a: a.sin() * a.sum(), v[:3], create_graph=True).flatten()


def program(T, names):
    """A function of a vector to a number."""
    def f(v):
        for name in names:
            v = PARTS[name](T, v)
            v = filled(v, N) if v.numel() < N else v
        return (v * constant(T, v.numel(), seed=9) * 0.5).sin().sum()
    return f


def argument(T, seed=0):
    return T.tensor((np.random.default_rng(100 + seed).normal(size=N) * 0.8).tolist(), dtype=T.float64)
