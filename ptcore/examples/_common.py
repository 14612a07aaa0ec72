"""What the examples share: packages of the extra, options, progress bars, plots, stated results."""

import argparse
import time

import ptcore

# Options that say where and how an example runs, and change nothing of what it states.
NEUTRAL = {
    "compile", "device", "look_every", "output", "plot", "quiet", "seed", "seeds", "start_method", "threads"
}


def needs(example, package, error):
    """The error that names the extra."""
    return SystemExit(
        f"ptcore.examples.{example} needs {package} ({error}). Install the extra: "
        "pip install ptcore[examples]"
    )


def progress_bar(example, quiet):
    """Return tqdm.tqdm; its bars stay invisible if quiet."""
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise needs(example, "tqdm", error) from None

    def bar(iterable, **options):
        return tqdm(iterable, disable=quiet, **options)

    return bar


def pyplot(example):
    """Return matplotlib.pyplot, drawing into files."""
    try:
        import matplotlib
    except ImportError as error:
        raise needs(example, "matplotlib", error) from None
    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def load_images(example):
    """Images in [0, 1] of shape (1797, 1, 8, 8) and labels: scikit-learn's digits, as arrays."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise needs(example, "scikit-learn", error) from None
    images, labels = load_digits(return_X_y=True)
    return (images / 16.0).astype("float32").reshape(-1, 1, 8, 8), labels.astype("int64")


def device(text):
    """The device of a command line, seen to be there."""
    try:
        return ptcore.empty(0, device=text).device
    except RuntimeError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


class Claims:
    """What an example states to reach with its default settings.

    Attributes
    ----------
    usual : bool
        Whether the settings are those.
    reached : bool
        Whether all that was claimed is true.
    """

    def __init__(self, parser, options):
        self.usual = all(
            value == parser.get_default(key) for key, value in vars(options).items() if key not in NEUTRAL
        )
        self.reached = True

    def claim(self, text, value, low=float("-inf"), high=float("inf"), form=".4g"):
        """Print a result and where it is stated to lie, from ``low`` to ``high``."""
        reached = low <= value <= high
        parts = [f"at least {low:{form}}"] * (low > float("-inf"))
        parts += [f"at most {high:{form}}"] * (high < float("inf"))
        verdict = ("reached" if reached else "NOT reached") if self.usual else "with the default settings"
        print(f"{text} {value:{form}} (stated: {' and '.join(parts)}; {verdict})")
        self.reached &= reached

    @property
    def status(self):
        """The exit status: 1 where the default settings did not reach what they are stated to."""
        return int(self.usual and not self.reached)


class Example:
    """One run of an example: its options, its progress bar, its picture and what it states.

    ``settings`` are the options of the example alone, as name -> (default, help). A default of type bool is a
    switch, a tuple is a choice whose first is the default.

    Attributes
    ----------
    options : argparse.Namespace
    progress : callable
        ``tqdm.tqdm``, or one that shows nothing.
    """

    def __init__(self, name, doc, argv, **settings):
        parser = argparse.ArgumentParser(
            prog=f"python -m ptcore.examples.{name}", description=(doc or "").partition("\n")[0]
        )
        add = parser.add_argument
        for key, (default, text) in settings.items():
            kind = {"help": text, "type": type(default), "default": default}
            if isinstance(default, bool):
                kind = {"help": text, "action": "store_true"}
            elif isinstance(default, tuple):
                kind = {"help": text, "choices": default, "default": default[0]}
            add(f"--{key.replace('_', '-')}", **kind)
        add("--seed", type=int, default=0)
        add("--device", type=device, default="cpu", help="such as cpu or cuda")
        add("--threads", type=int, help="number of threads (does not change results)")
        add("--compile", action="store_true", help="capture the steps with ptcore.compile")
        add("--plot", default=f"{name}.png", metavar="FILE", help="where the picture goes")
        add("--quiet", action="store_true", help="no progress bar")
        self.name = name
        self.options = parser.parse_args(argv)
        self.progress = progress_bar(name, self.options.quiet)
        self.claims = Claims(parser, self.options)
        self.claim = self.claims.claim
        if self.options.threads is not None:
            ptcore.set_num_threads(self.options.threads)
        ptcore.manual_seed(self.options.seed)
        self.start = time.perf_counter()

    def compiled(self, function):
        """The function, or what ``--compile`` makes of it."""
        return ptcore.compile(function) if self.options.compile else function

    def picture(self, rows=1, columns=2, **options):
        """Return a figure and its axes."""
        size = (4.8 * columns, 3.6 * rows)
        plt = pyplot(self.name)
        return plt.subplots(rows, columns, figsize=size, layout="constrained", **options)

    def save(self, figure):
        """Write the picture where ``--plot`` says."""
        figure.savefig(self.options.plot, dpi=100)
        pyplot(self.name).close(figure)
        print(f"wrote {self.options.plot}")

    def result(self, **numbers):
        """Print the time; return the numbers, whether all that is stated was reached, and the exit status."""
        print(f"{time.perf_counter() - self.start:.1f} s")
        return {**numbers, "reached": self.claims.reached, "status": self.claims.status}
