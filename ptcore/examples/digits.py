"""Train a network on scikit-learn's handwritten digits.

    python -m ptcore.examples.digits

trains one small convolutional network for each seed on 80 % of the 1797 images and
reports its accuracy on the other 20 %, which training never sees: the number of
epochs and all other options were chosen by cross-validation on the 80 %
(``--cross-validate``). Written next to each other: the curves (``digits.png``) and the
last seed's checkpoint (``digits.npz``), which is loaded again to see that it predicts
the same.
"""

import argparse
import hashlib
import os
import sys
import time

import ptcore
from ptcore import nn
from ptcore.examples._common import Claims, device, load_images, progress_bar, pyplot
from ptcore.nn import functional as F
from ptcore.optim.lr_scheduler import OneCycleLR
from ptcore.utils.data import DataLoader, TensorDataset

CLASSES = 10
SIDE = 8


def load_data():
    """Return (train, test), two TensorDatasets of images in [0, 1] and labels.

    The test part is a stratified 20 %, the same for every seed.
    """
    images, labels = load_images("digits")
    from sklearn.model_selection import train_test_split

    parts = train_test_split(
        images, labels, test_size=0.2, stratify=labels, random_state=0
    )
    x_train, x_test, y_train, y_test = map(ptcore.from_numpy, parts)
    return TensorDataset(x_train, y_train), TensorDataset(x_test, y_test)


def block(inputs, outputs):
    """Convolution over 3 by 3 pixels, batch norm, ReLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


def make_model(width, dropout):
    """Four convolutions, a pooling after every second one, and a linear layer."""
    return nn.Sequential(
        block(1, width),
        block(width, width),
        nn.MaxPool2d(2),
        block(width, 2 * width),
        block(2 * width, 2 * width),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(8 * width, CLASSES),
    )


def shifted(images, most=1):
    """Each image moved by up to ``most`` pixels along both axes, zeros at the edge."""
    n = len(images)
    padded = F.pad(images, [most] * 4)
    first = ptcore.randint(2 * most + 1, (2, n, 1), device=images.device)
    rows, columns = first + ptcore.arange(SIDE, device=images.device)
    sample = ptcore.arange(n, device=images.device).reshape(n, 1, 1)
    return padded[sample, 0, rows[:, :, None], columns[:, None, :]].unsqueeze(1)


def predict(model, images):
    """Logits in evaluation mode."""
    model.eval()
    with ptcore.no_grad():
        return model(images)


def accuracy(model, dataset):
    """Share of the images that are classified right."""
    images, labels = dataset.tensors
    device = next(model.parameters()).device
    hits = predict(model, images.to(device)).argmax(dim=1) == labels.to(device)
    return hits.sum().item() / len(dataset)


def train(dataset, seed, options, progress):
    """Train one model; return it, its optimiser and the history of the epochs."""
    ptcore.manual_seed(seed)
    model = make_model(options.width, options.dropout).to(options.device)
    forward = ptcore.compile(model) if options.compile else model
    optimizer = ptcore.optim.AdamW(model.parameters(), weight_decay=options.weight_decay)
    loader = DataLoader(dataset, batch_size=options.batch_size, shuffle=True)
    steps = options.epochs * len(loader)
    schedule = OneCycleLR(optimizer, max_lr=options.lr, total_steps=steps)
    history = {"loss": [], "accuracy": []}
    epochs = progress(range(options.epochs), desc=f"seed {seed}", unit="epoch")
    for _ in epochs:
        model.train()
        total = 0.0
        for images, labels in loader:
            images, labels = images.to(options.device), labels.to(options.device)
            optimizer.zero_grad()
            logits = forward(shifted(images, options.shift))
            loss = F.cross_entropy(logits, labels, label_smoothing=options.smoothing)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(labels)
        history["loss"].append(total / len(dataset))
        history["accuracy"].append(accuracy(model, dataset))
        epochs.set_postfix(loss=history["loss"][-1])
    return model, optimizer, history


def cross_validate(dataset, options, progress, folds=5):
    """Mean accuracy on held-out fifths of the training part, to choose options by."""
    from sklearn.model_selection import StratifiedKFold

    images, labels = dataset.tensors
    splits = StratifiedKFold(folds, shuffle=True, random_state=0)
    scores = []
    for seed, parts in enumerate(splits.split(images.numpy(), labels.numpy())):
        kept, held = map(ptcore.from_numpy, parts)
        model, *_ = train(
            TensorDataset(images[kept], labels[kept]), seed, options, progress
        )
        scores.append(accuracy(model, TensorDataset(images[held], labels[held])))
    return sum(scores) / len(scores)


def save_checkpoint(path, model, optimizer, seed, options):
    """Write everything that is needed to go on."""
    ptcore.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "seed": seed,
            "options": {"width": options.width, "dropout": options.dropout},
        },
        path,
    )


def load_checkpoint(path, where="cpu"):
    """Return the model that :func:`save_checkpoint` wrote."""
    checkpoint = ptcore.load(path, map_location=where)
    model = make_model(**checkpoint["options"]).to(where)
    model.load_state_dict(checkpoint["model"])
    return model


def plot(path, histories, test_accuracies):
    """Write the curves of all seeds as a PNG."""
    plt = pyplot("digits")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for seed, history in histories.items():
        epochs = range(1, len(history["loss"]) + 1)
        (line,) = left.semilogy(epochs, history["loss"], label=f"seed {seed}")
        color = line.get_color()
        right.plot(epochs, history["accuracy"], color=color)
        right.plot(epochs[-1], test_accuracies[seed], "o", color=color)
    left.set(xlabel="epoch", ylabel="training loss")
    left.legend()
    right.set(xlabel="epoch", ylabel="accuracy", title="training (lines), test (dots)")
    right.set_ylim(0.9, 1.005)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def digest(model):
    """Short hash of the weights: equal runs print equal digests."""
    h = hashlib.sha256()
    for value in model.state_dict().values():
        h.update(value.cpu().contiguous().numpy().tobytes())
    return h.hexdigest()[:16]


def parse_arguments(argv=None):
    """Options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m ptcore.examples.digits", description=(__doc__ or "").partition("\n")[0]
    )
    add = parser.add_argument
    add("--seeds", type=int, nargs="+", default=[0, 1, 2], help="one model each")
    add("--epochs", type=int, default=16)
    add("--batch-size", type=int, default=64)
    add("--width", type=int, default=32, help="channels of the first convolutions")
    add("--dropout", type=float, default=0.2)
    add("--shift", type=int, default=1, help="pixels that training moves images by")
    add("--smoothing", type=float, default=0.05, help="label smoothing of the loss")
    add("--lr", type=float, default=1e-2, help="learning rate of AdamW at its highest")
    add("--weight-decay", type=float, default=1e-2)
    add("--device", type=device, default="cpu", help="such as cpu or cuda")
    add("--threads", type=int, help="number of threads (does not change results)")
    add("--compile", action="store_true", help="capture the model with ptcore.compile")
    add("--cross-validate", action="store_true", help="only on the training part")
    add("--output", default=".", help="folder of digits.png and digits.npz")
    add("--quiet", action="store_true", help="no progress bar")
    options = parser.parse_args(argv)
    options.claims = Claims(parser, options)
    return options


def main(argv=None):
    """Run the example; return a dictionary of the results."""
    options = parse_arguments(argv)
    progress = progress_bar("digits", options.quiet)
    if options.threads is not None:
        ptcore.set_num_threads(options.threads)

    start = time.perf_counter()
    train_set, test_set = load_data()
    if options.cross_validate:
        score = cross_validate(train_set, options, progress)
        print(f"mean accuracy {score:.2%} in cross-validation")
        return {"cross_validation": score, "status": 0}
    os.makedirs(options.output, exist_ok=True)
    histories, accuracies, digests = {}, {}, {}
    for seed in options.seeds:
        model, optimizer, histories[seed] = train(train_set, seed, options, progress)
        accuracies[seed] = accuracy(model, test_set)
        digests[seed] = digest(model)
        score = f"test accuracy {accuracies[seed]:.2%}"
        print(f"seed {seed}: {score}, weights {digests[seed]}")

    checkpoint = os.path.join(options.output, "digits.npz")
    save_checkpoint(checkpoint, model, optimizer, options.seeds[-1], options)
    images, _ = test_set.tensors
    images = images.to(options.device)
    restored = predict(load_checkpoint(checkpoint, options.device), images)
    same = bool((predict(model, images) == restored).all())
    if not same:
        raise SystemExit("the checkpoint does not predict what the model predicted")
    picture = os.path.join(options.output, "digits.png")
    plot(picture, histories, accuracies)

    mean = sum(accuracies.values()) / len(accuracies)
    print(f"wrote {picture} and {checkpoint} (loaded back: equal predictions)")
    options.claims.claim("mean test accuracy", mean, low=0.985, form=".2%")
    print(f"{time.perf_counter() - start:.1f} s")
    return {
        "accuracy": accuracies,
        "mean": mean,
        "digest": digests,
        "same": same,
        "status": options.claims.status,
    }


if __name__ == "__main__":
    sys.exit(main()["status"])
