"""
5. Training
===========

Now everything comes together: a convolutional network learns to read handwritten digits, and we learn how to tell
whether it really does.
"""
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import ptcore as pt
from ptcore import nn
from ptcore.utils.data import DataLoader, TensorDataset, random_split

pt.manual_seed(0)
digits = load_digits()
images = pt.tensor(digits.images, dtype=pt.float32).unsqueeze(1) / 16
data = TensorDataset(images, pt.tensor(digits.target))
train, held = random_split(data, [1400, 397])
train_loader = DataLoader(train, batch_size=50, shuffle=True)
held_loader = DataLoader(held, batch_size=397)

# %%
# The network
# -----------
# A convolution slides small patterns over the picture and says where each of them is found: what it knows about
# strokes in one corner it knows in all corners. Pooling then keeps the best of each 2 times 2 places. The last layer
# weighs what was found.

net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Dropout(0.2), nn.Linear(32 * 2 * 2, 10))

# %%
# Where sizes meet is where mistakes are made. One batch, sent through layer by layer, shows them:

x = next(iter(train_loader))[0]
for layer in net:
    x = layer(x)
    print(f"{type(layer).__name__:10} {tuple(x.shape)}")

# %%
# The loop
# --------
# One function for a pass of training, one for a test. The test switches to ``eval``, for the dropout, and records
# nothing.


def train_epoch(optimizer):
    net.train()
    total = 0.0
    for images, labels in train_loader:
        loss = nn.functional.cross_entropy(net(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    return total / len(train)


@pt.no_grad()
def test():
    net.eval()
    loss, right = 0.0, 0
    for images, labels in held_loader:
        scores = net(images)
        loss += nn.functional.cross_entropy(scores, labels, reduction="sum").item()
        right += (scores.argmax(dim=1) == labels).sum().item()
    return loss / len(held), right / len(held)


# %%
# Before any training the loss should be about :math:`\ln 10 = 2.3`, that of ten equal probabilities. A first value
# that is far from it is a sign of a mistake.

print("before:", test())

# %%
# The optimizer is given the parameters once. The *schedule* lowers the step size as training goes on: long steps find
# the valley, short ones its ground.

epochs = 12
optimizer = pt.optim.AdamW(net.parameters(), lr=4e-3)
schedule = pt.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
history = []
for epoch in range(epochs):
    trained = train_epoch(optimizer)
    schedule.step()
    tested, right = test()
    history.append((trained, tested))
    print(f"epoch {epoch + 1:2}: loss {trained:.3f}, held out {tested:.3f}, {right:.1%}")

# %%
# Watch the two losses. While both fall, go on. If that of the held samples rises while the other falls, the network
# has begun to learn by heart: stop there, take more data, vary it as in the last lesson, or take a smaller network.
#
# What does it get wrong?
# -----------------------
# A number hides as much as it tells. Look at the mistakes:

images, labels = next(iter(held_loader))
net.eval()
with pt.no_grad():
    probabilities = net(images).softmax(dim=1)
sure, guess = probabilities.max(dim=1)
# The mistakes first, then what it is least sure of.
doubtful = (sure + 2 * (guess == labels)).argsort()[:8]

fig = plt.figure(figsize=(9, 3.6), layout="constrained")
curves, pictures = fig.subfigures(1, 2, width_ratios=[2, 3])
axis = curves.subplots()
axis.plot([h[0] for h in history], label="trained on")
axis.plot([h[1] for h in history], label="held out")
axis.set(xlabel="epoch", ylabel="loss", yscale="log")
axis.legend()
for axis, i in zip(pictures.subplots(2, 4).flat, doubtful.tolist()):
    axis.imshow(images[i, 0], cmap="gray_r")
    axis.set_title(f"{labels[i]}: read as {guess[i]}\n({sure[i]:.0%} sure)", fontsize=8)
    axis.axis("off")
plt.show()

# %%
# Many of these would puzzle a person as well.
#
# Where to go from here
# ---------------------
# * With an NVIDIA card, ``.to("cuda")`` of the network and of each batch is all that changes: :doc:`/guide/devices`.
# * :func:`ptcore.compile` makes one program of a step: :doc:`/guide/compiling`.
# * Hours of training want to be watched, and to survive an interruption: :doc:`/guide/watching`,
#   :doc:`/guide/preemption`.
