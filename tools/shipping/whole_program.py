"""Trains, saves, loads, maps files, runs threads, with or without NumPy: the argument is a folder to write to."""
import os
import sys
import threading

if sys.platform == "win32":
    sys.modules["_wmi"] = None              # a query ends the process in Wine 8

import ptcore as pt
from ptcore import nn

HAS_THREADS = sys.platform != "emscripten"
print("ptcore", pt.__version__, "on", sys.platform, sys.version.split()[0])

pt.manual_seed(0)
x = pt.randn(256, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = pt.optim.Adam(model.parameters(), lr=0.02)
loader = pt.utils.data.DataLoader(pt.utils.data.TensorDataset(x, y), batch_size=64, shuffle=True)
losses = []
for _ in range(60):
    for a, b in loader:
        loss = nn.functional.cross_entropy(model(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    losses.append(loss.item())
assert losses[-1] < 0.2 < losses[0], losses
print(f"trained: {losses[0]:.2f} to {losses[-1]:.2f}")

path = os.path.join(sys.argv[1], "Gewichte \u00e4\u4e2d.pt")
pt.save(model.state_dict(), path)
for mapped in (False, True):
    state = pt.load(path, mmap=mapped)
    assert all(pt.equal(state[k], v) for k, v in model.state_dict().items())
del state
os.remove(path)                             # nothing holds it any more
print("saved, loaded and mapped beyond ASCII")

found = [None] * 4


def work(k):
    a = pt.arange(1_000_000, dtype=pt.float64) + k
    a.requires_grad_()
    (a * a).sum().backward()
    found[k] = bool((a.grad == 2 * a.detach()).all())


threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
for k, t in enumerate(threads):
    if HAS_THREADS:
        t.start()
    else:
        work(k)
for t in threads if HAS_THREADS else ():
    t.join()
assert found == [True] * 4, found
pt.set_num_threads(2)
a = pt.randn(1000, 700, dtype=pt.float64)
assert pt.allclose(a.exp().log(), a)
assert pt.equal(a.sort(dim=1).values[:, 0], a.amin(1))
assert pt.allclose(pt.softmax(a, 1).sum(1), pt.ones(1000, dtype=pt.float64))
print("threads" if HAS_THREADS else "no threads here")
try:
    pt.zeros(2) + pt.zeros(3)
except RuntimeError as e:
    print("error:", e)
print("done")
