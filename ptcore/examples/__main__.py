"""``ptcore-examples NAME [options]``, or ``python -m ptcore.examples NAME [options]``: runs an example."""
import importlib
import importlib.util
import pkgutil
import sys

from ptcore import examples


def main(argv=None):
    """The exit status of an example, or a list of them."""
    argv = sys.argv[1:] if argv is None else argv
    names = [m.name for m in pkgutil.iter_modules(examples.__path__) if not m.name.startswith("_")]
    if not argv or argv[0] not in names:
        asked = bool(argv) and argv[0] not in ("-h", "--help")
        lines = [importlib.util.find_spec(f"ptcore.examples.{name}").loader.get_source(f"ptcore.examples.{name}")
                 for name in names]
        text = "\n".join(f"  {name:12}{line.partition(chr(10))[0].strip(chr(34))}" for name, line in zip(names, lines))
        print(f"usage: ptcore-examples NAME [options]{f', there is no {argv[0]!r}' if asked else ''}\n{text}",
              file=sys.stderr if asked or not argv else sys.stdout)
        return 2 if asked or not argv else 0
    return importlib.import_module(f"ptcore.examples.{argv[0]}").main(argv[1:])["status"]


if __name__ == "__main__":
    sys.exit(main())
