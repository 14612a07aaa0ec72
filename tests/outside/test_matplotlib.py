"""matplotlib draws tensors as it draws arrays."""
import io

import numpy as np
import pytest
from _same_program import DATA, evaluated

import ptcore as pt

matplotlib = pytest.importorskip("matplotlib")
plt = pytest.importorskip("matplotlib.pyplot")
plt.switch_backend("agg")
pytestmark = pytest.mark.core


def line(drawn):
    return np.stack([np.asarray(drawn.get_xdata(), float), np.asarray(drawn.get_ydata(), float)])


SCOPE = {"line": line, "plt": plt, "matplotlib": matplotlib}
DRAWN = """
line(ax.plot(x)[0])
line(ax.plot(x, f4)[0])
[line(l) for l in ax.plot(x, m)]
line(ax.plot(i, b)[0])
line(ax.plot([x[0], x[1]])[0])
line(ax.plot("p", "q", data={"p": x, "q": f4})[0])
ax.scatter(x, f4).get_offsets()
ax.scatter(x, f4, c=x, s=x * 10).get_array()
ax.scatter(x, x, c=A([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])).get_facecolors()
ax.imshow(m).get_array()
ax.imshow(image).get_array()
ax.imshow(m > 2).get_array()
ax.imshow(m, vmin=x[0], vmax=x[2]).get_clim()
ax.pcolormesh(x[:2], x, m, shading="nearest").get_array()
ax.contour(m).levels
ax.hist(x)[0]
ax.hist(m, bins=3)[0]
ax.hist(x, bins=A([0.0, 2.0, 4.0]), weights=x)[0]
ax.hist([x, f4], bins=2)[0]
ax.hist(x, range=(x.min(), x.max()))[0]
ax.hist2d(x, x, bins=2)[0]
[p.get_height() for p in ax.bar(i, x, yerr=x / 10, width=x / 10)]
[p.get_width() for p in ax.barh(i, x)]
line(ax.errorbar(x, x, yerr=x / 10)[0])
ax.fill_between(x, x - 1, x + 1, where=b).get_paths()[0].vertices
line(ax.step(x, x)[0])
line(ax.stem(x, x).markerline)
[line(l) for l in ax.boxplot(m)["medians"]]
[line(l) for l in ax.boxplot([x, f4])["medians"]]
ax.violinplot(m)["cbars"].get_segments()
[w.theta2 for w in ax.pie(x)[0]]
ax.quiver(x, x, x, x).U
line(ax.axhline(x[1]))
ax.set_xlim(x[0], x[1])
(ax.set_xticks(x), ax.get_xticks())[1]
plt.get_cmap("viridis")(x / 3)
matplotlib.colors.Normalize(0, 3)(x)
line(ax.ecdf(x))
""".strip().splitlines()


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


@pytest.mark.parametrize("program", DRAWN)
def test_same(program, ax):
    want, got = evaluated(program, {**SCOPE, "ax": ax})
    ax.figure.savefig(io.BytesIO(), format="png")
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
    for a, b in zip(want, got) if isinstance(want, (list, tuple)) else [(want, got)]:
        np.testing.assert_allclose(np.asarray(b, float), np.asarray(a, float), rtol=1e-6)


def test_three_dims():
    figure = plt.figure()
    ax = figure.add_subplot(projection="3d")
    x, m = pt.tensor(DATA["x"]), pt.tensor(DATA["m"])
    ax.plot_surface(m, m, m)
    np.testing.assert_allclose(np.asarray(ax.plot(x, x, x)[0].get_data_3d()), np.stack([DATA["x"]] * 3))
    ax.scatter(x, x, x, c=x)
    figure.canvas.draw()
    plt.close(figure)


@pytest.mark.parametrize("draw", ["plot", "hist", "imshow", "scatter", "bar"])
def test_requires_grad(draw, ax):
    x = pt.tensor([[1.0, 2.0]], requires_grad=True)
    arguments = {"imshow": [x], "scatter": [x[0], x[0]], "bar": [[0, 1], x[0]]}.get(draw, [x[0]])
    with pytest.raises(RuntimeError, match=r"Use tensor.detach\(\).numpy\(\)"):
        getattr(ax, draw)(*arguments)


def test_bfloat16(ax):
    np.testing.assert_array_equal(line(ax.plot(pt.tensor([1.0, 2.0]).bfloat16())[0]), [[0, 1], [1, 2]])
