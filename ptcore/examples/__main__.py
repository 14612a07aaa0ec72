"""``ptcore-examples NAME [options]``, or ``python -m ptcore.examples NAME [options]``: runs an example."""
import importlib
import importlib.util
import pkgutil
import sys

from ptcore import examples


def first_line(name):
    """The first line of an example's docstring; the example is not imported."""
    module = f"ptcore.examples.{name}"
    source = importlib.util.find_spec(module).loader.get_source(module)
    return source.partition("\n")[0].strip('"')


def main(argv=None):
    """The exit status of an example, or a list of them."""
    argv = sys.argv[1:] if argv is None else argv
    names = [m.name for m in pkgutil.iter_modules(examples.__path__) if not m.name.startswith("_")]
    if not argv or argv[0] not in names:
        asked = bool(argv) and argv[0] not in ("-h", "--help")
        wrong = asked or not argv
        head = "usage: ptcore-examples NAME [options]" + (f", there is no {argv[0]!r}" if asked else "")
        lines = [f"  {name:12}{first_line(name)}" for name in names]
        print("\n".join([head, *lines]), file=sys.stderr if wrong else sys.stdout)
        return 2 if wrong else 0
    return importlib.import_module(f"ptcore.examples.{argv[0]}").main(argv[1:])["status"]


if __name__ == "__main__":
    sys.exit(main())
