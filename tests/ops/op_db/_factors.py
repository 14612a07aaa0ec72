"""What does not depend on the free choices of a decomposition: signs, phases, the order of equal eigenvalues.

Each function takes the arguments and the result of an entry, as torch tensors, and gives what both libraries must agree
in. Positions of equal elements are free too where torch's documentation leaves them open.
"""
import torch


def svd(args, r):
    u, s, v = r
    vh = v.mH
    k = s.shape[-1]
    return [s, (u[..., :k] * s.to(u.dtype).unsqueeze(-2)) @ vh[..., :k, :], u.mH @ u, vh @ vh.mH]


def linalg_svd(args, r):
    u, s, vh = r
    return svd(args, (u, s, vh.mH))


def eigh(args, r):
    values, vectors = r
    return [values, (vectors * values.to(vectors.dtype).unsqueeze(-2)) @ vectors.mH]


def ordered(values):
    """Complex values sorted by real, then imaginary part, rounded so that near equals keep one order."""
    key = (values.real * 1e5).round() * 1e8 + (values.imag * 1e5).round()
    return values.gather(-1, key.double().argsort(-1))


def eig(args, r):
    values, vectors = r
    return [ordered(values), (vectors * values.unsqueeze(-2)) @ torch.linalg.pinv(vectors)]


def at(args, positions, values=None):
    """The elements at positions along the dim that they are of, once they are known to be positions at all."""
    x = args[0]
    for dim in range(x.dim()):
        for index in (positions, positions.unsqueeze(dim)):
            sizes = [n for i, n in enumerate(x.shape) if i != dim]
            if index.dim() == x.dim() and [n for i, n in enumerate(index.shape) if i != dim] == sizes:
                if index.numel() and (int(index.min()) < 0 or int(index.max()) >= x.shape[dim]):
                    continue
                found = x.gather(dim, index)
                if values is None or torch.equal(torch.nan_to_num(found.reshape(values.shape)), torch.nan_to_num(values)):
                    yield dim, found


def places(args, r):
    """(values, positions): the values, and whether they stand at the positions."""
    values, positions = r
    x = args[0]
    return [values, torch.tensor(x.dim() == 0 or x.numel() == 0 or any(True for _ in at(args, positions, values)))]


def order(args, positions, kwargs):
    """The elements in the order of the positions."""
    x = args[0]
    if x.dim() == 0:
        return [positions]
    dim = kwargs.get("dim", next((a for a in args[1:] if not isinstance(a, bool)), -1))
    return [x.gather(dim, positions)]


# argsort gives positions alone, and needs to be told of the dim.
POSITIONS = {**dict.fromkeys(("sort", "kthvalue", "mode", "topk", "median", "nanmedian"), places)}
FREE = {"svd": svd, "linalg.svd": linalg_svd, "linalg.eigh": eigh, "linalg.eig": eig,
        "svd_lowrank": svd, "pca_lowrank": svd, "linalg.eigvals": lambda args, r: [ordered(r)], **POSITIONS}
