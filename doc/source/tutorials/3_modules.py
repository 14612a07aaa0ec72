"""
3. Modules
==========

A network is a function with parameters. A *module* keeps the two together: it knows its parameters, and calling it
computes. Modules are made of modules, down to those that the library brings, such as :class:`~ptcore.nn.Linear`.
"""
import matplotlib.pyplot as plt

import ptcore as pt
from ptcore import nn

pt.manual_seed(0)

# %%
# A layer
# -------
# ``Linear(2, 3)`` computes :math:`x W^T + b`. It takes rows of two numbers and gives rows of three, for as many rows
# as you like: direction 0 is nearly always the *batch*, the samples that are computed together.

layer = nn.Linear(2, 3)
print(layer(pt.ones(5, 2)).shape)
for name, parameter in layer.named_parameters():
    print(name, tuple(parameter.shape), parameter.requires_grad)

# %%
# Layers in a row
# ---------------
# Two linear layers in a row are one linear layer again: a product of matrices is a matrix. It takes something that is
# not linear between them. ``ReLU``, which replaces negative numbers by zero, is enough. ``Sequential`` calls one
# after the other.

net = nn.Sequential(
    nn.Linear(2, 32), nn.ReLU(),
    nn.Linear(32, 32), nn.ReLU(),
    nn.Linear(32, 2))
print(net)
print(sum(p.numel() for p in net.parameters()), "parameters")

# %%
# A class of your own
# -------------------
# What is no plain row is written as a class. ``__init__`` makes the parts, and assigning them registers their
# parameters; ``forward`` says how they are used, in ordinary Python with its conditions and loops. This block adds
# its input to its result, so that it only has to learn a difference, by which deep networks become trainable:


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + pt.relu(self.linear(x))


class Network(nn.Module):
    def __init__(self, width=32, depth=2):
        super().__init__()
        self.first = nn.Linear(2, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.last = nn.Linear(width, 2)

    def forward(self, x):
        return self.last(self.blocks(pt.relu(self.first(x))))


net = Network()
print(*(name for name, _ in net.named_parameters()), sep="\n")

# %%
# Call the module, ``net(x)``, and not ``net.forward(x)``: the call also runs hooks that others have put on it.
#
# Does it learn?
# --------------
# Two interleaved half moons: no straight line separates them. A point's class is the larger of the network's two
# results. ``cross_entropy`` makes probabilities of the two and says how surprising the right class was.

angle = pt.pi * pt.rand(400)
label = pt.arange(400) % 2
side = 1 - 2 * label
moons = [label + side * pt.cos(angle), 0.5 * label + side * pt.sin(angle)]
points = pt.stack(moons, dim=1) + 0.12 * pt.randn(400, 2)

optimizer = pt.optim.Adam(net.parameters(), lr=0.01)
for _ in range(200):
    loss = nn.functional.cross_entropy(net(points), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
right = (net(points).argmax(dim=1) == label).float().mean()
print(f"loss {loss.item():.3f}, {right:.1%} right")

# %%
# The four steps are those of the last lesson. The optimizer does the last two of them for all parameters at once,
# with step sizes that it adapts. To see what was learned, ask the network about every point of a plane:

across, up = pt.linspace(-1.6, 2.6, 120), pt.linspace(-1.2, 1.7, 90)
grid = pt.stack(pt.meshgrid(across, up, indexing="xy"), dim=2)
with pt.no_grad():
    probability = net(grid).softmax(dim=2)[:, :, 1]

fig, axis = plt.subplots(figsize=(6, 4))
shown = axis.contourf(across, up, probability, levels=20, cmap="RdBu_r", alpha=0.7)
axis.scatter(*points.T, c=label, cmap="RdBu_r", edgecolors="black", s=14)
fig.colorbar(shown, label="probability of the second class")
plt.show()

# %%
# The grid has two directions before the one of coordinates, and ``Linear`` took it as it is: it works on the last
# one.
#
# Two ways of being
# -----------------
# Some layers behave differently while they are trained: :class:`~ptcore.nn.Dropout` hides numbers at random,
# :class:`~ptcore.nn.BatchNorm1d` measures the batch. ``net.train()`` and ``net.eval()`` switch them all. Forgetting
# ``eval`` before a test is the second classic mistake.

drop = nn.Dropout(0.5)
print(drop(pt.ones(6)), drop.eval()(pt.ones(6)))

# %%
# :doc:`/guide/modules` has more about modules, :doc:`/reference/generated/nn` lists the layers.
