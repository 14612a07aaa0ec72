"""
6. Saving
=========

Training takes minutes or weeks; its result is some tensors. This lesson puts them into files, takes them out again,
and goes on with a training that was interrupted as if nothing had happened.
"""
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ptcore as pt
from ptcore import nn

folder = Path(tempfile.mkdtemp())
pt.manual_seed(0)

# %%
# What is saved
# -------------
# A module's ``state_dict`` has its tensors by name. The code is not in it: who loads it makes the same module first.
# That is on purpose. Code changes, and files that contain code can do harm when they are opened.


def network():
    return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))


net = network()
for name, tensor in net.state_dict().items():
    print(name, tuple(tensor.shape))

# %%
# Three kinds of files
# --------------------
# The suffix chooses. ``.pt`` is PyTorch's, which it reads as well; ``.safetensors`` is what most models are shared
# in; NumPy opens ``.npz``. None of them runs code when it is loaded.

for suffix in (".pt", ".safetensors", ".npz"):
    path = folder / f"net{suffix}"
    pt.save(net.state_dict(), path)
    print(f"{path.name:16} {path.stat().st_size} bytes")

print(sorted(np.load(folder / "net.npz"))[:2])

# %%
# Loading takes two steps: the tensors out of the file, then into the module, which must have the same names and
# sizes.

other = network()
print(other.load_state_dict(pt.load(folder / "net.safetensors")))
x = pt.linspace(-3, 3, 7).unsqueeze(1)
print(pt.equal(net(x), other(x)))

# %%
# If something does not fit, the error says what, and nothing is loaded by halves:

try:
    small = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    small.load_state_dict(pt.load(folder / "net.pt"))
except RuntimeError as error:
    print(str(error)[:200], "...")

# %%
# A checkpoint
# ------------
# To go on with training, parameters are not enough. The optimizer has averages of its own, and random numbers go on
# from where they are. A *checkpoint* has all of it. Let us train in one go, and then with an interruption, and
# compare.

target = pt.sin(2 * x).detach()


def steps(net, optimizer, count):
    losses = []
    for _ in range(count):
        noisy = x + 0.05 * pt.randn(x.shape)
        loss = ((net(noisy) - target) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def begin():
    pt.manual_seed(1)
    net = network()
    return net, pt.optim.Adam(net.parameters(), lr=0.02)


whole = steps(*begin(), 200)

net, optimizer = begin()
first = steps(net, optimizer, 100)
checkpoint = {"net": net.state_dict(), "optimizer": optimizer.state_dict(),
              "random": pt.get_rng_state(), "step": 100}
pt.save(checkpoint, folder / "checkpoint.pt")
del net, optimizer          # the power fails

# %%
# Another day, another process: make the parts as before, fill them, go on.

net, optimizer = begin()
found = pt.load(folder / "checkpoint.pt")
net.load_state_dict(found["net"])
optimizer.load_state_dict(found["optimizer"])
pt.set_rng_state(found["random"])
second = steps(net, optimizer, 100)
print("the same losses:", first + second == whole)

# %%
# Equal to the last bit. Had we forgotten the optimizer, the second half would start with a bump:

net, optimizer = begin()
net.load_state_dict(found["net"])
pt.set_rng_state(found["random"])
bump = steps(net, optimizer, 100)

fig, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
axis.semilogy(whole, color="0.8", linewidth=4, label="in one go")
axis.semilogy(first, label="before the interruption")
axis.semilogy(range(100, 200), second, label="after it, from the checkpoint")
axis.semilogy(range(100, 200), bump, ":", label="without the optimizer's state")
axis.set(xlabel="step", ylabel="loss")
axis.legend()
plt.show()

# %%
# Large files need not be read at once: ``pt.load(path, mmap=True)`` reads a tensor when it is used. A job that is
# told to stop can write its checkpoint in time, which :class:`ptcore.utils.restart.Restart` does. More of both is in
# :doc:`/guide/saving` and :doc:`/guide/preemption`, and :doc:`/guide/pytorch_checkpoints` is about files from
# PyTorch.
