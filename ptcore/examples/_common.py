"""What the examples share: packages of the extra, progress bars, plots, devices."""

import argparse

import ptcore


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


def device(text):
    """The device of a command line, seen to be there."""
    try:
        return ptcore.empty(0, device=text).device
    except RuntimeError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
