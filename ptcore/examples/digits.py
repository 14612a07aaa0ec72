"""Train a network on scikit-learn's handwritten digits.

    python -m ptcore.examples.digits

trains one multilayer perceptron for each seed on 80 % of the 1797 images and
reports its accuracy on the other 20 %, which training never sees: the number of
epochs and all other options were chosen by cross-validation on the 80 %. Written
next to each other: the curves (``digits.png``) and the last seed's checkpoint
(``digits.npz``), which is loaded again to see that it predicts the same.
"""

import argparse
import hashlib
import os
import time

import ptcore
from ptcore import nn
from ptcore.nn import functional as F
from ptcore.optim.lr_scheduler import CosineAnnealingLR
from ptcore.utils.data import DataLoader, TensorDataset

CLASSES = 10


def _needs(package, error):
    return SystemExit(
        f"ptcore.examples.digits needs {package} ({error}). Install the extra: "
        "pip install ptcore[examples]"
    )


def load_data():
    """Return (train, test), two TensorDatasets of images in [0, 1] and labels.

    The test part is a stratified 20 %, the same for every seed.
    """
    try:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split
    except ImportError as error:
        raise _needs("scikit-learn", error) from None
    images, labels = load_digits(return_X_y=True)
    images = (images / 16.0).astype("float32")
    parts = train_test_split(
        images, labels.astype("int64"), test_size=0.2, stratify=labels, random_state=0
    )
    x_train, x_test, y_train, y_test = map(ptcore.from_numpy, parts)
    return TensorDataset(x_train, y_train), TensorDataset(x_test, y_test)


def make_model(hidden, dropout):
    """A perceptron with two hidden layers."""
    return nn.Sequential(
        nn.Linear(64, hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, CLASSES),
    )


def predict(model, images):
    """Logits in evaluation mode."""
    model.eval()
    with ptcore.no_grad():
        return model(images)


def accuracy(model, dataset):
    """Share of the images that are classified right."""
    images, labels = dataset.tensors
    hits = predict(model, images).argmax(dim=1) == labels
    return hits.sum().item() / len(dataset)


def train(dataset, seed, options, progress):
    """Train one model; return it, its optimiser and the history of the epochs."""
    ptcore.manual_seed(seed)
    model = make_model(options.hidden, options.dropout)
    optimizer = ptcore.optim.Adam(model.parameters(), lr=options.lr)
    schedule = CosineAnnealingLR(optimizer, T_max=options.epochs)
    loader = DataLoader(dataset, batch_size=options.batch_size, shuffle=True)
    history = {"loss": [], "accuracy": []}
    for _ in progress(range(options.epochs), desc=f"seed {seed}"):
        model.train()
        total = 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        schedule.step()
        history["loss"].append(total / len(dataset))
        history["accuracy"].append(accuracy(model, dataset))
    return model, optimizer, history


def save_checkpoint(path, model, optimizer, seed, options):
    """Write everything that is needed to go on."""
    ptcore.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "seed": seed,
            "options": {"hidden": options.hidden, "dropout": options.dropout},
        },
        path,
    )


def load_checkpoint(path):
    """Return the model that :func:`save_checkpoint` wrote."""
    checkpoint = ptcore.load(path)
    model = make_model(**checkpoint["options"])
    model.load_state_dict(checkpoint["model"])
    return model


def plot(path, histories, test_accuracies):
    """Write the curves of all seeds as a PNG."""
    try:
        import matplotlib
    except ImportError as error:
        raise _needs("matplotlib", error) from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

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
        h.update(value.contiguous().numpy().tobytes())
    return h.hexdigest()[:16]


def parse_arguments(argv=None):
    """Options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m ptcore.examples.digits", description=__doc__.splitlines()[0]
    )
    add = parser.add_argument
    add("--seeds", type=int, nargs="+", default=[0, 1, 2], help="one model each")
    add("--epochs", type=int, default=60)
    add("--batch-size", type=int, default=64)
    add("--hidden", type=int, default=256, help="width of both hidden layers")
    add("--dropout", type=float, default=0.5)
    add("--lr", type=float, default=2e-3, help="learning rate of Adam at the start")
    add("--threads", type=int, help="number of threads (does not change results)")
    add("--output", default=".", help="folder of digits.png and digits.npz")
    add("--quiet", action="store_true", help="no progress bar")
    return parser.parse_args(argv)


def main(argv=None):
    """Run the example; return a dictionary of the results."""
    options = parse_arguments(argv)
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise _needs("tqdm", error) from None
    if options.threads is not None:
        ptcore.set_num_threads(options.threads)

    def progress(epochs, desc):
        return tqdm(epochs, desc=desc, unit="epoch", disable=options.quiet)

    start = time.perf_counter()
    train_set, test_set = load_data()
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
    restored = predict(load_checkpoint(checkpoint), images)
    same = bool((predict(model, images) == restored).all())
    if not same:
        raise SystemExit("the checkpoint does not predict what the model predicted")
    picture = os.path.join(options.output, "digits.png")
    plot(picture, histories, accuracies)

    mean = sum(accuracies.values()) / len(accuracies)
    print(f"mean test accuracy {mean:.2%} over {len(accuracies)} seeds")
    print(f"wrote {picture} and {checkpoint} (loaded back: equal predictions)")
    print(f"{time.perf_counter() - start:.1f} s")
    return {"accuracy": accuracies, "mean": mean, "digest": digests, "same": same}


if __name__ == "__main__":
    main()
