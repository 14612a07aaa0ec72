"""
7. A layer of your own
======================

The library has many layers, and yours may not be among them. Most are a few lines of existing operations. Sometimes
the heart of a layer is a function that autograd cannot look into, such as one of SciPy: then you say what its
gradient is.
"""
import matplotlib.pyplot as plt
from scipy import special

import ptcore as pt
from ptcore import nn

pt.manual_seed(0)

# %%
# Out of what is there
# --------------------
# Compose operations, and the gradient comes by itself. This layer describes a number by how near it is to each of
# some centres that it learns, and so do its results change only nearby. ``Parameter`` marks a tensor as one that is
# to be learned.


class Bumps(nn.Module):
    def __init__(self, count, low, high):
        super().__init__()
        self.centres = nn.Parameter(pt.linspace(low, high, count))
        self.log_width = nn.Parameter(pt.full((count,), (high - low) / count).log())

    def forward(self, x):
        return pt.exp(-((x - self.centres) / self.log_width.exp()) ** 2)

    def extra_repr(self):
        return f"{len(self.centres)} centres"


print(Bumps(12, -3, 3), Bumps(12, -3, 3)(pt.zeros(5, 1)).shape)

# %%
# The width is learned as its logarithm: whatever the optimizer does, the width stays positive.
#
# A gradient by hand
# ------------------
# SciPy knows Dawson's function :math:`D`, which we want to apply to each number. Its arrays know nothing of
# gradients, but mathematics does: :math:`D'(x) = 1 - 2xD(x)`. A :class:`ptcore.autograd.Function` has the two halves.
# ``backward`` gets the gradient of the result, and gives that of the input, by the chain rule. What it needs is saved
# on the way.


class Dawson(pt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = pt.asarray(special.dawsn(x.detach().numpy()))
        ctx.save_for_backward(x, result)
        return result

    @staticmethod
    def backward(ctx, grad):
        x, result = ctx.saved_tensors
        return grad * (1 - 2 * x * result)


x = pt.linspace(-4, 4, 201, dtype=pt.float64, requires_grad=True)
y = Dawson.apply(x)
(slope,) = pt.autograd.grad(y.sum(), x)

# %%
# Never believe a gradient that you wrote: check it.

sample = pt.randn(6, dtype=pt.float64, requires_grad=True)
print(pt.autograd.gradcheck(Dawson.apply, sample))

# %%
# A wrong sign would have been found, and the message says where:


class Wrong(Dawson):
    @staticmethod
    def backward(ctx, grad):
        x, result = ctx.saved_tensors
        return grad * (1 + 2 * x * result)


try:
    pt.autograd.gradcheck(Wrong.apply, sample)
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %%
# Both in a network
# -----------------
# Wrapped into a module, the function is a layer as any other. We fit a signal that is smooth here and wild there.


class DawsonUnits(nn.Module):
    def forward(self, x):
        return Dawson.apply(x)


t = pt.linspace(-3, 3, 300).unsqueeze(1)
signal = pt.sin(t ** 3) * pt.exp(-t.abs() / 3)


def fit(net, steps=400):
    optimizer = pt.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(steps):
        loss = ((net(t) - signal) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


nets = {"Dawson": nn.Sequential(nn.Linear(1, 40), DawsonUnits(), nn.Linear(40, 1)),
        "Bumps": nn.Sequential(Bumps(40, -3, 3), nn.Linear(40, 1))}
for name, net in nets.items():
    print(f"{name}: loss {fit(net):.4f}")

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.plot(x.detach(), y.detach(), label="$D(x)$")
left.plot(x.detach(), slope, label="its gradient")
left.legend()
right.plot(t, signal, color="0.8", linewidth=4, label="signal")
for name, net in nets.items():
    right.plot(t, net(t).detach(), linewidth=1, label=name)
right.legend()
plt.show()

# %%
# The layer that changes only nearby does better here: the shape of a layer is knowledge about the data.
#
# For a function that others shall use, with ``vmap``, ``compile`` and several devices, register it as an op:
# :doc:`/guide/custom_ops`. If it must be fast, write it in C, C++, Cython or Numba, without wrapper code:
# :doc:`/guide/extensions`.
