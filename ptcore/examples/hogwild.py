"""Train one network by several processes that do not wait for each other.

    python -m ptcore.examples.hogwild

Hogwild (Recht, Re, Wright, Niu, 2011): the weights lie in shared memory, each process
takes steps on them as if it were alone, and a lost update now and then does no harm.
The digits are those of ``ptcore.examples.digits``, and so is the split. Written next to
each other: each process's losses and the accuracy (``hogwild.png``) and the checkpoint
(``hogwild.npz``), which is loaded again to see that it predicts the same.
"""

import argparse
import os
import sys
import time

import ptcore
import ptcore.multiprocessing as mp
from ptcore import nn
from ptcore.examples._common import Claims, progress_bar, pyplot
from ptcore.examples.digits import CLASSES, SIDE, accuracy, load_data, predict
from ptcore.nn import functional as F
from ptcore.utils.data import DataLoader, TensorDataset


def make_model(width):
    """Two linear layers with a ReLU between them."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(SIDE * SIDE, width),
        nn.ReLU(),
        nn.Linear(width, CLASSES),
    )


def train(rank, model, dataset, losses, steps, options):
    """What each process does; ``losses`` and ``steps`` are for who looks on."""
    ptcore.set_num_threads(1)
    ptcore.manual_seed(options.seed + rank)
    optimizer = ptcore.optim.SGD(model.parameters(), lr=options.lr)
    loader = DataLoader(dataset, batch_size=options.batch_size, shuffle=True)
    for epoch in range(options.epochs):
        total = 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
            steps[rank] += 1
        losses[rank, epoch] = total / len(dataset)


def run(model, dataset, test_set, options, progress):
    """Train by all processes; return (losses, number of steps, accuracies on the way)."""
    losses = ptcore.zeros(options.processes, options.epochs)
    steps = ptcore.zeros(options.processes, dtype=ptcore.int64)
    model.share_memory()
    for tensor in (losses, steps, *dataset.tensors):
        tensor.share_memory_()
    wanted = options.processes * options.epochs * -(-len(dataset) // options.batch_size)
    processes = mp.start_processes(
        train,
        (model, dataset, losses, steps, options),
        options.processes,
        join=False,
        start_method=options.start_method,
    )
    scores = []
    with progress(None, desc="hogwild", total=wanted, unit="step") as bar:
        ended = False
        while not ended:
            ended = processes.join(timeout=options.look_every)
            bar.update(int(steps.sum()) - bar.n)
            scores.append((int(steps.sum()), accuracy(model, test_set)))
    return losses, int(steps.sum()), scores


def plot(path, losses, scores):
    """Write the losses of all processes and the accuracy as a PNG."""
    plt = pyplot("hogwild")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for rank, line in enumerate(losses.tolist()):
        left.semilogy(range(1, len(line) + 1), line, label=f"process {rank}")
    left.set(xlabel="epoch", ylabel="training loss")
    left.legend()
    right.plot(*zip(*scores, strict=True), "o-")
    right.set(xlabel="steps of all processes", ylabel="test accuracy")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def parse_arguments(argv=None):
    """Options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m ptcore.examples.hogwild", description=(__doc__ or "").partition("\n")[0]
    )
    add = parser.add_argument
    add("--processes", type=int, default=4)
    add("--epochs", type=int, default=20, help="of each process")
    add("--batch-size", type=int, default=16)
    add("--width", type=int, default=64, help="of the hidden layer")
    add("--lr", type=float, default=0.05, help="learning rate of SGD")
    add("--seed", type=int, default=0)
    add("--start-method", default="spawn", choices=mp.get_all_start_methods())
    add("--look-every", type=float, default=0.5, help="seconds between two accuracies")
    add("--output", default=".", help="folder of hogwild.png and hogwild.npz")
    add("--quiet", action="store_true", help="no progress bar")
    options = parser.parse_args(argv)
    options.claims = Claims(parser, options)
    return options


def main(argv=None):
    """Run the example; return a dictionary of the results."""
    options = parse_arguments(argv)
    progress = progress_bar("hogwild", options.quiet)
    start = time.perf_counter()
    os.makedirs(options.output, exist_ok=True)
    # Copies: what NumPy shows must stay where it is.
    train_set, test_set = (
        TensorDataset(*(t.clone() for t in part.tensors)) for part in load_data()
    )
    ptcore.manual_seed(options.seed)
    model = make_model(options.width)
    losses, steps, scores = run(model, train_set, test_set, options, progress)
    score = accuracy(model, test_set)

    checkpoint = os.path.join(options.output, "hogwild.npz")
    state = {"model": model.state_dict(), "width": options.width}
    ptcore.save(state, checkpoint)
    restored = make_model(options.width)
    restored.load_state_dict(ptcore.load(checkpoint)["model"])
    images, _ = test_set.tensors
    if not bool((predict(model, images) == predict(restored, images)).all()):
        raise SystemExit("the checkpoint does not predict what the model predicted")
    picture = os.path.join(options.output, "hogwild.png")
    plot(picture, losses, scores)

    print(f"{options.processes} processes, {steps} steps")
    options.claims.claim("test accuracy", score, low=0.95, form=".2%")
    print(f"wrote {picture} and {checkpoint} (loaded back: equal predictions)")
    print(f"{time.perf_counter() - start:.1f} s")
    return {
        "accuracy": score,
        "steps": steps,
        "losses": losses.tolist(),
        "status": options.claims.status,
    }


if __name__ == "__main__":
    sys.exit(main()["status"])
