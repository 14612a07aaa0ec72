"""Matplotlib, Pillow and Numba take a tensor where they take an array: what they make of both is the same."""
import io

import numpy as np
import pytest

import ptcore as pt

V, K = np.array([3.0, 1.0, 2.0, 2.0]), np.array([0, 1, 0, 1])
M = np.array([True, False, True, True])
X = np.arange(12.0).reshape(4, 3)
GREY = (X * 20).astype(np.uint8)
COLOURS = np.stack([GREY, GREY.T.reshape(4, 3), 255 - GREY], -1)
STEPS, COLUMNS = np.arange(4.0), np.arange(3.0)

# What is drawn with T(array): an array, or a tensor with its elements.
DRAWINGS = {
    "plot": lambda ax, T: ax.plot(T(V), T(K)), "plot_rows": lambda ax, T: ax.plot(T(X)),
    "plot_half": lambda ax, T: ax.plot(T(V.astype(np.float16)), "o-"),
    "plot_masked": lambda ax, T: ax.plot(T(V)[T(M)]), "semilogy": lambda ax, T: ax.semilogy(T(V)),
    "scatter": lambda ax, T: ax.scatter(T(V), T(K), c=T(V), s=T(V * 10)),
    "hist": lambda ax, T: ax.hist(T(V), bins=T(np.array([0.0, 1.5, 4.0]))), "hist_columns": lambda ax, T: ax.hist(T(X)),
    "hist_weights": lambda ax, T: ax.hist([T(V), T(V)], weights=[T(V), T(V)]),
    "hist2d": lambda ax, T: ax.hist2d(T(V), T(V)), "hexbin": lambda ax, T: ax.hexbin(T(V), T(V), gridsize=4),
    "imshow": lambda ax, T: ax.imshow(T(X)), "imshow_colours": lambda ax, T: ax.imshow(T(COLOURS)),
    "imshow_floats": lambda ax, T: ax.imshow(T(COLOURS / 255.0)), "matshow": lambda ax, T: ax.matshow(T(X)),
    "pcolormesh": lambda ax, T: ax.pcolormesh(T(X)), "spy": lambda ax, T: ax.spy(T(X)),
    "bar": lambda ax, T: ax.bar(T(STEPS), T(V)), "errorbar": lambda ax, T: ax.errorbar(T(STEPS), T(V), yerr=T(V)),
    "fill_between": lambda ax, T: ax.fill_between(T(STEPS), T(V), T(V * 2), where=T(M)),
    "contour": lambda ax, T: ax.contour(T(X)),
    "contourf": lambda ax, T: ax.contourf(T(COLUMNS), T(STEPS), T(X), levels=T(np.array([1.0, 3.0, 9.0]))),
    "quiver": lambda ax, T: ax.quiver(T(V), T(V), T(V), T(K)),
    "streamplot": lambda ax, T: ax.streamplot(T(COLUMNS), T(STEPS), T(X), T(X + 1)),
    "step": lambda ax, T: ax.step(T(STEPS), T(V)), "stem": lambda ax, T: ax.stem(T(V)),
    "stairs": lambda ax, T: ax.stairs(T(V)), "stackplot": lambda ax, T: ax.stackplot(T(STEPS), T(V), T(V)),
    "boxplot": lambda ax, T: ax.boxplot(T(X)), "violinplot": lambda ax, T: ax.violinplot(T(X)),
    "pie": lambda ax, T: ax.pie(T(V)), "ecdf": lambda ax, T: ax.ecdf(T(V)),
    "eventplot": lambda ax, T: ax.eventplot(T(V)),
    "lines": lambda ax, T: (ax.vlines(T(V), 0, T(V)), ax.axhline(T(np.float64(2)))),
    "limits": lambda ax, T: (ax.plot(V), ax.set_xlim(T(np.array([0.0, 2.0]))), ax.set_xticks(T(K))),
    "text": lambda ax, T: ax.text(T(np.float64(0.5)), T(np.float64(0.5)), f"{T(V)[0]:.2f}"),
}


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_matplotlib(drawing):
    matplotlib = pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure
    pixels = []
    with matplotlib.rc_context({"text.parse_math": False}):
        for T in (np.asarray, pt.tensor):
            figure, raw = Figure(figsize=(2, 2)), io.BytesIO()
            DRAWINGS[drawing](figure.subplots(), T)
            figure.savefig(raw, format="raw")
            pixels.append(raw.getvalue())
        empty, raw = Figure(figsize=(2, 2)), io.BytesIO()
        empty.subplots()
        empty.savefig(raw, format="raw")
    assert pixels[0] == pixels[1] != raw.getvalue()


def test_matplotlib_takes_a_colour_map_of_tensors():
    cm = pytest.importorskip("matplotlib").colormaps["viridis"]
    np.testing.assert_array_equal(cm(pt.tensor(V / 4)), cm(V / 4))


PICTURES = [GREY, COLOURS, X.astype(np.float32), X > 4, GREY.astype(np.int32), GREY.astype(np.uint16), GREY[:, ::2],
            GREY.T, np.stack([GREY] * 2, -1), np.stack([GREY] * 4, -1), COLOURS[::-1]]


@pytest.mark.parametrize("k", range(len(PICTURES)))
def test_pillow(k):
    Image = pytest.importorskip("PIL.Image")
    data = PICTURES[k]
    mine, theirs = Image.fromarray(pt.as_tensor(data)), Image.fromarray(data)
    assert (mine.mode, mine.size, mine.tobytes()) == (theirs.mode, theirs.size, theirs.tobytes())
    for back in (pt.asarray(mine), pt.as_tensor(mine), pt.tensor(mine), pt.from_numpy(np.array(mine))):
        expected = np.asarray(theirs)
        assert back.numpy().dtype == expected.dtype
        np.testing.assert_array_equal(back.numpy(), expected)


def test_pillow_refuses_what_it_refuses_of_arrays():
    Image = pytest.importorskip("PIL.Image")
    for data in (K, np.zeros((2, 2, 5), np.uint8)):
        for T in (np.asarray, pt.tensor):
            with pytest.raises(TypeError, match="Cannot handle"):
                Image.fromarray(T(data))


def test_numba():
    numba = pytest.importorskip("numba")

    @numba.njit
    def total(a):
        s = 0.0
        for x in a:
            s += x
        return s

    @numba.njit
    def fill(a):
        for i in range(a.shape[0]):
            a[i] = i

    x, out = pt.tensor(V), pt.zeros(4)
    assert total(x.numpy()) == total(x) == total(V) == 8
    fill(out.numpy())
    assert out.tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="grad"):
        fill(out.requires_grad_().numpy())


def test_functions_that_numba_makes():
    numba = pytest.importorskip("numba")

    @numba.vectorize(["float64(float64, float64)"])
    def length(a, b):
        return (a * a + b * b) ** 0.5

    @numba.vectorize
    def lazy(a, b):
        return a + 2 * b

    @numba.guvectorize(["void(float64[:], float64[:])"], "(n)->()")
    def rows(a, out):
        out[0] = a.sum()

    x = pt.tensor(X)
    for f, arguments in ((length, (X, 2.0)),
    (length, (X[:, ::2], X[:, 1:])), (lazy, (X, X)), (lazy, (K, V)), (rows, (X,)),
                         (length, (X, V[:, None]))):
        got = f(*[pt.as_tensor(a) if isinstance(a, np.ndarray) else a for a in arguments])
        assert isinstance(got, pt.Tensor)
        np.testing.assert_array_equal(got.numpy(), f(*arguments))
    np.testing.assert_array_equal(np.asarray(length.reduce(x)), length.reduce(X))
