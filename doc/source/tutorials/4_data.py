"""
4. Data
=======

Networks are trained by small batches, drawn in random order. Where samples come from is the matter of a *dataset*;
drawing and batching them is that of a *loader*. Both are replaceable: the loop that trains never sees the
difference.
"""
import math

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import ptcore as pt
from ptcore import nn
from ptcore.utils.data import DataLoader, Dataset, TensorDataset, random_split

# %%
# Tensors as a dataset
# --------------------
# What fits into memory is simplest: ``TensorDataset`` pairs the rows of tensors. Inputs are best of a size around
# one, so the grey levels are divided by the largest, 16. The direction of size 1 is that of colours.

digits = load_digits()
images = pt.tensor(digits.images, dtype=pt.float32).unsqueeze(1) / 16
data = TensorDataset(images, pt.tensor(digits.target))
image, label = data[0]
print(len(data), image.shape, label)

# %%
# Keep some samples away from training. Whether a network has understood, or has learned by heart, shows only on what
# it has never seen. The generator makes the split the same each time. Otherwise, what tests today would have trained
# yesterday's network.

train, test = random_split(data, [1500, 297], generator=pt.Generator().manual_seed(0))
print(len(train), len(test))

# %%
# Batches
# -------
# The loader shuffles, takes 64 samples at a time and stacks them. Each ``for`` over it is one *epoch*, a pass through
# all data in a new order. The last batch is smaller if the number does not come out even.

loader = DataLoader(train, batch_size=64, shuffle=True)
batches = [len(labels) for _, labels in loader]
print(len(loader), "batches, the last of", batches[-1])

# %%
# A dataset of your own
# ---------------------
# Files, a database, a simulation: whatever can tell its length and give sample number ``i`` is a dataset. Computing a
# sample when it is asked for also allows to vary it. This one shifts, turns and dims each picture at random, as other
# hands would have written it, so that the network meets each digit in ever new forms:


class Varied(Dataset):
    def __init__(self, data, strength=1.0):
        self.data, self.strength = data, strength

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        image, label = self.data[i]
        turn, right, down, dim = ((2 * pt.rand(4) - 1) * self.strength).tolist()
        c, s = math.cos(0.3 * turn), math.sin(0.3 * turn)
        where = pt.tensor([[[c, -s, 0.2 * right], [s, c, 0.2 * down]]])
        grid = nn.functional.affine_grid(where, (1, 1, 8, 8), align_corners=False)
        moved = nn.functional.grid_sample(image[None], grid, align_corners=False)
        return moved[0] * (1 + 0.2 * dim), label


pt.manual_seed(0)
varied = Varied(train)
fig, axes = plt.subplots(3, 8, figsize=(8, 3.2))
for row, axis_row in enumerate(axes):
    for column, axis in enumerate(axis_row):
        image, _ = (train if column == 0 else varied)[row]
        axis.imshow(image[0], cmap="gray_r", vmin=0, vmax=1)
        axis.axis("off")
axes[0, 0].set_title("as it is", fontsize=9)
axes[0, 4].set_title("as the dataset gives it", fontsize=9)
plt.show()

# %%
# It goes into the same loader, and nothing else changes:

images, labels = next(iter(DataLoader(varied, batch_size=64, shuffle=True)))
print(images.shape, labels.shape)

# %%
# If making samples takes longer than learning from them, ``DataLoader(varied, num_workers=4)`` does it in four
# processes beside the loop, some batches ahead. In a script, put the loop under ``if __name__ == "__main__":`` then.
# For less than about 50 microseconds a sample it does not pay. :doc:`/guide/training` says more.
#
# Samples of different lengths cannot be stacked. A function of yours, ``collate_fn``, makes a batch of a list of
# samples; here it fills up with zeros:


def padded(samples):
    return nn.utils.rnn.pad_sequence(samples, batch_first=True)


sentences = [pt.arange(1, n + 1) for n in (3, 5, 2)]
print(next(iter(DataLoader(sentences, batch_size=3, collate_fn=padded))))
