"""Oracles of attention, of sampling at positions and of bilinear maps, by loops and sums over everything."""
import numpy as np
from scipy import special


def _scores(query, key, mask, keep, is_causal, scale, n, h):
    group = query.shape[1] // key.shape[1]
    scores = np.einsum("le,se->ls", query[n, h], key[n, h // group]) * scale
    if mask is not None:
        scores = scores + mask[n, h]
    if keep is not None:
        scores = np.where(keep[n, h], scores, -np.inf)
    if is_causal:
        scores = np.where(np.tri(*scores.shape, dtype=bool), scores, -np.inf)
    return scores


def _weights(scores):
    """softmax of each row, 0 where nothing counts"""
    rows = [special.softmax(row) if row.size and row.max() > -np.inf else np.zeros(row.shape) for row in scores]
    return np.array(rows).reshape(scores.shape)


def attention(query, key, value, mask, keep, is_causal, scale):
    n, heads, length = query.shape[:3]
    out = np.zeros((n, heads, length, value.shape[3]))
    lse = np.full((n, heads, length), -np.inf)
    for i in range(n):
        for h in range(heads):
            scores = _scores(query, key, mask, keep, is_causal, scale, i, h)
            out[i, h] = _weights(scores) @ value[i, h // (heads // key.shape[1])]
            if key.shape[2]:
                lse[i, h] = special.logsumexp(scores, axis=1)
    return out, lse


def attention_backward(g, query, key, value, mask, keep, is_causal, scale, scores):
    gq, gk, gv = (np.zeros(t.shape) for t in (query, key, value))
    gs = np.zeros((*query.shape[:3], key.shape[2]))
    group = query.shape[1] // key.shape[1]
    for i in range(query.shape[0]):
        for h in range(query.shape[1]):
            p = _weights(_scores(query, key, mask, keep, is_causal, scale, i, h))
            for r in range(query.shape[2]):
                gp = value[i, h // group] @ g[i, h, r]
                jacobian = np.diag(p[r]) - np.outer(p[r], p[r])
                gs[i, h, r] = jacobian @ gp
                gv[i, h // group] += np.outer(p[r], g[i, h, r])
                gq[i, h, r] = scale * gs[i, h, r] @ key[i, h // group]
                gk[i, h // group] += scale * np.outer(gs[i, h, r], query[i, h, r])
    return gq, gk, gv, gs if scores else np.zeros(0)


def public_attention(query, key, value, attn_mask, is_causal, scale, enable_gqa):
    if enable_gqa:
        key, value = (np.repeat(t, query.shape[-3] // t.shape[-3], axis=-3) for t in (key, value))
    batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    full = (*batch, query.shape[-2], key.shape[-2])
    mask = keep = None
    if attn_mask is not None:
        spread = np.broadcast_to(attn_mask, full).reshape(1, -1, *full[-2:])
        mask, keep = (None, spread) if attn_mask.dtype == bool else (spread, None)
    query, key, value = (np.broadcast_to(t, (*batch, *t.shape[-2:])).reshape(1, -1, *t.shape[-2:])
                         for t in (query, key, value))
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    return attention(query, key, value, mask, keep, is_causal, scale)[0].reshape((*full[:-1], value.shape[-1]))


def _philox(seed, offset, block):
    """Philox4x32-10 written with Python's integers."""
    mask = 2**32 - 1
    counter = [block & mask, block >> 32 & mask, offset & mask, offset >> 32 & mask]
    key = [seed & mask, seed >> 32 & mask]
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & mask, (a >> 32) ^ counter[3] ^ key[1], a & mask]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return counter


def keep_mask(state, p, shape):
    seed, offset = (int(word) % 2**64 for word in state)
    words = [_philox(seed, offset, i // 4)[i % 4] for i in range(int(np.prod(shape)))]
    return np.array([w >= np.ceil(p * 2**32) for w in words], bool).reshape(shape)


# -- positions ---------------------------------------------------------------------------------------

def _mirror(x, low, high):
    """A wave between low and high, and its slope."""
    span = high - low
    if span == 0:
        return np.zeros_like(x), np.zeros_like(x)
    phase = (x - low) % (2 * span)
    return low + np.minimum(phase, 2 * span - phase), np.where(phase < span, 1.0, -1.0)


def _brought_in(x, size, padding_mode, align_corners):
    slope = np.ones_like(x)
    if padding_mode == "reflection":
        x, slope = _mirror(x, 0, size - 1) if align_corners else _mirror(x, -0.5, size - 0.5)
    if padding_mode != "zeros":
        slope = slope * ((x > 0) & (x < size - 1))
        x = np.clip(x, 0, size - 1)
    return x, slope


def _keys(d):
    """The cubic kernel with a = -3/4 and its derivative."""
    a, s = np.abs(d), np.sign(d)
    near = 1.25 * a**3 - 2.25 * a**2 + 1
    far = -0.75 * (a**3 - 5 * a**2 + 8 * a - 4)
    return (np.where(a <= 1, near, np.where(a < 2, far, 0)),
            s * np.where(a <= 1, 3.75 * a**2 - 4.5 * a, np.where(a < 2, -0.75 * (3 * a**2 - 10 * a + 8), 0)))


def _along(coordinate, size, mode, padding_mode, align_corners):
    """Weights (points, size) of all elements along a dim, and their derivatives by the coordinate."""
    unit = (size - 1) / 2 if align_corners else size / 2
    x = (coordinate + 1) * unit - (0 if align_corners else 0.5)
    places = np.arange(size)
    if mode == "bicubic":
        weights, slopes = np.zeros((2, len(x), size))
        for p, value in enumerate(x):
            for i in range(int(np.floor(value)) - 1, int(np.floor(value)) + 3):
                at = _brought_in(np.array([float(i)]), size, padding_mode, align_corners)[0][0]
                if 0 <= at < size:
                    w, d = _keys(value - i)
                    weights[p, int(np.rint(at))] += w
                    slopes[p, int(np.rint(at))] += d * unit
        return weights, slopes
    x, slope = _brought_in(x, size, padding_mode, align_corners)
    if mode == "nearest":
        return (np.rint(x)[:, None] == places).astype(float), np.zeros((len(x), size))
    d = x[:, None] - places
    return np.maximum(1 - np.abs(d), 0), np.where(np.abs(d) < 1, -np.sign(d), 0) * (slope * unit)[:, None]


def _sampling(x, grid, *how):
    """For each sample the weights by dim and their derivatives, the input's first dim first."""
    dims = grid.shape[-1]
    for n in range(len(x)):
        points = grid[n].reshape(-1, dims)
        yield n, [_along(points[:, dims - 1 - d], x.shape[2 + d], *how) for d in range(dims)]


_SUM = {2: "chw,ph,pw->cp", 3: "cdhw,pd,ph,pw->cp"}
_BACK = {2: "cp,ph,pw->chw", 3: "cp,pd,ph,pw->cdhw"}


def grid_sample(x, grid, mode, padding_mode, align_corners):
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, along in _sampling(x, grid, mode, padding_mode, align_corners):
        out[n] = np.einsum(_SUM[grid.shape[-1]], x[n], *[w for w, _ in along]).reshape(out.shape[1:])
    return out


def grid_sample_backward(g, x, grid, mode, padding_mode, align_corners):
    dims = grid.shape[-1]
    gx, gg = np.zeros(x.shape), np.zeros(grid.shape)
    for n, along in _sampling(x, grid, mode, padding_mode, align_corners):
        gy = g[n].reshape(g.shape[1], -1)
        gx[n] = np.einsum(_BACK[dims], gy, *[w for w, _ in along])
        for d in range(dims):
            weights = [s if d == dims - 1 - k else w for k, (w, s) in enumerate(along)]
            gg[n, ..., d] = (gy * np.einsum(_SUM[dims], x[n], *weights)).sum(0).reshape(gg.shape[1:-1])
    return gx, gg


def affine_grid(theta, size, align_corners):
    def places(n):
        if n == 1:
            return np.zeros(1)
        return np.linspace(-1, 1, n) if align_corners else (2 * np.arange(n) + 1) / n - 1

    axes = np.meshgrid(*[places(n) for n in size[2:]], indexing="ij")
    base = np.stack([*axes[::-1], np.ones_like(axes[0])], -1)
    return np.einsum("nij,...j->n...i", theta, base)


def bilinear(input1, input2, weight, bias):
    out = np.einsum("...i,kij,...j->...k", input1, weight, input2)
    return out if bias is None else out + bias


def multi_head_attention(query, key, value, heads, weight, bias, bias_k, bias_v, zero, out_weight, out_bias, padding,
                         need_weights, mask, average):
    """One sample and one head after another."""
    if query.ndim == 2:
        given = [t[:, None] for t in (query, key, value)]
        out, p = multi_head_attention(*given, heads, weight, bias, bias_k, bias_v, zero, out_weight, out_bias,
                                      None if padding is None else padding[None], need_weights, mask, average)
        return out[:, 0], p[0]
    size = query.shape[2]
    biases = np.zeros(3 * size) if bias is None else bias
    out, weights = np.zeros(query.shape), []
    for n in range(query.shape[1]):
        q, k, v = (t[:, n] @ weight[j * size:(j + 1) * size].T + biases[j * size:(j + 1) * size]
                   for j, t in enumerate((query, key, value)))
        seen = np.zeros((len(q), len(k)))
        if mask is not None:
            seen = seen + (np.where(mask, -np.inf, 0) if mask.dtype == bool else mask)
        if padding is not None:
            seen = seen + np.where(padding[n], -np.inf, 0)
        for one in ([] if bias_k is None else [(bias_k[0], bias_v[0])]) + [(np.zeros((1, size)),) * 2] * bool(zero):
            k, v = np.concatenate([k, one[0]]), np.concatenate([v, one[1]])
            seen = np.concatenate([seen, np.zeros((len(q), 1))], 1)
        made, each = [], size // heads
        for h in range(heads):
            part = slice(h * each, (h + 1) * each)
            p = special.softmax(q[:, part] @ k[:, part].T / np.sqrt(each) + seen, axis=1)
            made.append(p)
            out[:, n, part] = p @ v[:, part]
        weights.append(np.mean(made, axis=0) if average else np.array(made))
    return out @ out_weight.T + (0 if out_bias is None else out_bias), np.array(weights)


NAMES = {"_multi_head_attention": multi_head_attention, "_attention": attention, "_attention_backward": attention_backward, "_public_attention": public_attention,
         "_keep_mask": keep_mask, "_grid_sample": grid_sample, "_grid_sample_backward": grid_sample_backward,
         "_affine_grid": affine_grid, "_bilinear": bilinear}
