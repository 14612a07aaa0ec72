"""Raw gradients of symmetric, Hermitian and triangular matrices, which a difference quotient of one element does not show,
and steps down along them."""
import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

N = 4
MADE = {"positive": lambda z: z @ z.conj().T + N * np.eye(N), "hermitian": lambda z: z + z.conj().T,
        "lower": lambda z: np.tril(z, -1) + np.diag(np.abs(z.diagonal()) + 2),
        "upper": lambda z: np.triu(z, 1) + np.diag(np.abs(z.diagonal()) + 2), "any": lambda z: z + N * np.eye(N)}
RIGHT = np.random.default_rng(5).standard_normal((N, 2))


def beside(m, x):
    return m.tensor(RIGHT).to(x.dtype)


def factor(m, x, upper=False):
    """A Cholesky factor: what else x holds counts in torch's gradients, and an imaginary diagonal in its results."""
    diagonal = x.diagonal().real if x.is_complex() else x.diagonal()
    return (m.triu(x, 1) if upper else m.tril(x, -1)) + m.diag_embed(diagonal)


FUNCTIONS = {
    "cholesky": ("positive", lambda m, x: m.linalg.cholesky(x)),
    "cholesky, upper": ("positive", lambda m, x: m.linalg.cholesky(x, upper=True)),
    "cholesky_ex": ("positive", lambda m, x: m.linalg.cholesky_ex(x)[0]),
    "eigvalsh": ("hermitian", lambda m, x: m.linalg.eigvalsh(x)),
    "eigvalsh, upper": ("hermitian", lambda m, x: m.linalg.eigvalsh(x, UPLO="U")),
    "eigh": ("hermitian", lambda m, x: m.linalg.eigh(x)[0]),
    "eigh, vectors": ("hermitian", lambda m, x: m.linalg.eigh(x)[1].abs()),
    "eigh, upper": ("hermitian", lambda m, x: m.linalg.eigh(x, UPLO="U")[1].abs()),
    "solve_triangular": ("lower", lambda m, x: m.linalg.solve_triangular(x, beside(m, x), upper=False)),
    "solve_triangular, upper": ("upper", lambda m, x: m.linalg.solve_triangular(x, beside(m, x), upper=True)),
    "solve_triangular of a full one": ("any", lambda m, x: m.linalg.solve_triangular(x, beside(m, x), upper=True)),
    "solve_triangular, left": ("any", lambda m, x: m.linalg.solve_triangular(x, beside(m, x).mT, upper=False,
                                                                             left=False)),
    "solve_triangular of ones": ("any", lambda m, x: m.linalg.solve_triangular(x, beside(m, x), upper=False,
                                                                               unitriangular=True)),
    "triangular_solve": ("any", lambda m, x: m.triangular_solve(beside(m, x), x, upper=False, transpose=True)[0]),
    "cholesky_solve": ("lower", lambda m, x: m.cholesky_solve(beside(m, x), factor(m, x))),
    "cholesky_solve, upper": ("upper", lambda m, x: m.cholesky_solve(beside(m, x), factor(m, x, True), upper=True)),
    "cholesky_inverse": ("lower", lambda m, x: m.cholesky_inverse(factor(m, x))),
    "cholesky_inverse, upper": ("upper", lambda m, x: m.cholesky_inverse(factor(m, x, True), upper=True)),
    "inv": ("positive", lambda m, x: m.linalg.inv(x)), "inv of lower": ("lower", lambda m, x: m.linalg.inv(x)),
    "det": ("positive", lambda m, x: m.linalg.det(x)), "det of hermitian": ("hermitian", lambda m, x: m.linalg.det(x)),
    "det of lower": ("lower", lambda m, x: m.linalg.det(x)),
    "slogdet": ("positive", lambda m, x: m.linalg.slogdet(x)[1]), "logdet": ("positive", lambda m, x: m.logdet(x)),
    "solve": ("positive", lambda m, x: m.linalg.solve(x, beside(m, x))),
    "pinv": ("hermitian", lambda m, x: m.linalg.pinv(x, hermitian=True)), "pinv of any": ("any", lambda m, x: m.linalg.pinv(x)),
    "matrix_exp": ("hermitian", lambda m, x: m.linalg.matrix_exp(x / 4)),
    "matrix_power": ("hermitian", lambda m, x: m.linalg.matrix_power(x, 3)),
    "inverse square": ("positive", lambda m, x: m.linalg.matrix_power(x, -2)),
    "svdvals": ("hermitian", lambda m, x: m.linalg.svdvals(x)), "svd": ("any", lambda m, x: m.linalg.svd(x)[0].abs() ** 2),
    "qr": ("any", lambda m, x: m.linalg.qr(x)[1].abs()), "lu": ("any", lambda m, x: m.linalg.lu(x)[1]),
    "lu_factor": ("any", lambda m, x: m.linalg.lu_factor(x)[0]),
    "lstsq": ("any", lambda m, x: m.linalg.lstsq(x, beside(m, x))[0]),
    "norm 2": ("hermitian", lambda m, x: m.linalg.norm(x, 2)), "nuclear": ("hermitian", lambda m, x: m.linalg.norm(x, "nuc")),
    "cond": ("positive", lambda m, x: m.linalg.cond(x)), "eigvals": ("any", lambda m, x: m.linalg.eigvals(x).abs()),
    "eig": ("any", lambda m, x: m.linalg.eig(x)[1].abs())}


def start(structure, kind):
    z = np.random.default_rng(1).standard_normal((2, N, N))
    return MADE[structure](z[0] + 1j * z[1] if kind == "complex" else z[0])


def loss(m, x, name):
    """Real parts count once, imaginary ones twice, but for those of the diagonal of a factor, which are 0."""
    y = FUNCTIONS[name][1](m, x)
    weight = m.tensor(np.random.default_rng(3).standard_normal(tuple(y.shape)))
    if not y.is_complex():
        return (y * weight).sum()
    second = weight * (1 - m.eye(N)) if "cholesky" in name and "solve" not in name else weight
    return (y.real * weight).sum() + 2 * (y.imag * second).sum()


def gradient(m, value, x, name):
    """torch's gradient of a complex factorisation has a part beside that is no direction of Hermitian matrices."""
    (g,) = m.autograd.grad(value, x)
    return (g + g.mH) / 2 if m is torch and FUNCTIONS[name][0] == "positive" and "cholesky" in name else g


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_raw_gradient(name, kind):
    found = []
    for m in (pt, torch):
        x = m.tensor(start(FUNCTIONS[name][0], kind)).requires_grad_()
        value = loss(m, x, name)
        found.append((value.item(), gradient(m, value, x, name).resolve_conj().numpy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_descent(name, kind):
    """Twenty steps lower the loss, each of them as torch's does, and a matrix that its function takes for Hermitian
    stays so."""
    structure = FUNCTIONS[name][0]
    paths = []
    for m in (pt, torch):
        x = m.tensor(start(structure, kind)).requires_grad_()
        path = []
        for _ in range(20):
            value = loss(m, x, name)
            g = gradient(m, value, x, name)
            path.append(value.item())
            with m.no_grad():
                x -= 2e-3 * g / (1 + g.abs().max())
            if structure in ("positive", "hermitian") and ("chol" in name or "eig" in name):
                np.testing.assert_allclose(g.resolve_conj().numpy(), g.mH.resolve_conj().numpy(), atol=1e-9)
        path.append(loss(m, x, name).item())
        paths.append(path)
    assert (np.diff(paths[0]) < 0).all(), paths[0]
    np.testing.assert_allclose(paths[0], paths[1], rtol=1e-8)
