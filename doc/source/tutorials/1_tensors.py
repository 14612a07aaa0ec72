"""
1. Tensors
==========

A tensor is a grid of numbers: a single number, a row, a table, or a pile of tables with as many directions as you
like. Data, the weights of a network and the results that it gives are all tensors, so this is where everything
begins. If you know NumPy's arrays you know most of this page already. What tensors add are gradients (the next
lesson) and other devices.
"""
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import ptcore as pt

# %%
# Making tensors
# --------------
# From Python's numbers and lists, or filled with something:

print(pt.tensor([[1, 2, 3], [4, 5, 6]]))
print(pt.zeros(2, 3))
print(pt.arange(0, 1, 0.25))

# %%
# Random ones are needed all the time, for instance as first values of weights. The seed makes them the same in each
# run, and on each machine.

pt.manual_seed(0)
noise = pt.randn(2, 3)
print(noise)

# %%
# What a tensor knows of itself
# -----------------------------
# Three things describe a tensor: its *shape* (how many numbers in each direction), its *dtype* (what kind of numbers)
# and its *device* (where they are kept). Most errors that beginners meet are a disagreement about one of these, so
# print them first when something fails.

print(noise.shape, noise.dtype, noise.device)
print(noise.to(pt.float64).dtype)

# %%
# Numbers with a point are ``float32`` unless you say otherwise: half the memory of NumPy's ``float64``, and precise
# enough for networks.
#
# From NumPy and back
# -------------------
# :func:`ptcore.from_numpy` makes a tensor of an array without a copy. Both show the same memory, so a change of one
# is seen in the other. ``.numpy()`` goes the other way.

array = np.zeros(3)
shared = pt.from_numpy(array)
array[0] = 7
print(shared, shared.numpy())

# %%
# Let us take real data: 1797 handwritten digits, which scikit-learn ships. Each is a picture of 8 times 8 points.

digits = load_digits()
images = pt.from_numpy(digits.images).to(pt.float32)
labels = pt.from_numpy(digits.target)
print(images.shape, labels.shape)

# %%
# Taking parts
# ------------
# Square brackets take parts, direction by direction. A comparison gives a tensor of ``True`` and ``False``, which
# selects.

first = images[0]
print(first.shape, first[3, 2:6])
threes = images[labels == 3]
print(threes.shape)

# %%
# Parts are *views* where that is possible: they show the memory of the whole, and cost nothing.
#
# Computing
# ---------
# Arithmetic works number by number. Functions that sum up take ``dim``, the direction that vanishes: the mean over
# direction 0 of a pile of pictures is one picture.

print((first / 16).max(), images.mean(dim=(1, 2)).shape)
average = pt.stack([images[labels == d].mean(dim=0) for d in range(10)])
print(average.shape)

# %%
# Shapes that differ are *broadcast*: a direction of size 1, or one that is missing at the front, is repeated as
# needed. Here each digit's average loses the average of all, a picture that has no direction 0 at all.

contrast = average - images.mean(dim=0)

fig, axes = plt.subplots(2, 10, figsize=(9, 2.2))
for d in range(10):
    axes[0, d].imshow(average[d], cmap="gray_r")
    axes[1, d].imshow(contrast[d], cmap="RdBu_r", vmin=-12, vmax=12)
for axis in axes.flat:
    axis.axis("off")
fig.suptitle("The average of each digit, and how it differs from the average of all")
plt.show()

# %%
# ``@`` is the product of matrices, the work horse of networks. Flattened to rows of 64 numbers, the pictures times
# the ten contrasts give ten scores for each picture. Guessing the digit with the highest score is our first
# classifier:

scores = (images - images.mean(dim=0)).flatten(1) @ contrast.flatten(1).T
guess = scores.argmax(dim=1)
print(f"{(guess == labels).float().mean():.0%} of the digits are recognised")

# %%
# Nothing has been learned yet, and it is far better than the 10 % of blind guessing. How to find better weights than
# these averages is what gradients are for. :doc:`/guide/tensors` says more about tensors, and
# :doc:`/reference/generated/ops/all` lists all that can be done with them.
