"""Runs a program as ``python`` itself would: in the module ``__main__``, with its own arguments and folder."""
import builtins
import os
import sys
import types

USAGE = "usage: python -m ptcore.compat.torch (script.py | -m module | -c text) [argument ...]"


def run(arguments):
    """Runs a program given by its arguments: a file or a folder, ``-m module`` or ``-c text``."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, file=sys.stdout if arguments else sys.stderr)
        raise SystemExit(0 if arguments else 2)
    first, rest = arguments[0], arguments[1:]
    if first in ("-m", "-c") and not rest:
        raise SystemExit(f"{USAGE}\n{first}: expected an argument")
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    main.__spec__ = None
    # Removes the folder that ``python -m`` put first; with a safe path (-P) there is none.
    here = not sys.flags.safe_path
    if first == "-c":
        sys.argv[:] = ["-c", *rest[1:]]
        if here:
            sys.path[0] = ""
        sys.modules["__main__"] = main
        exec(compile(rest[0], "<string>", "exec"), vars(main))
    elif first == "-m":
        import runpy
        sys.argv[:] = rest
        sys.modules["__main__"] = main
        runpy._run_module_as_main(rest[0])
    else:
        _run_file(main, first, rest, here)


def _run_file(main, path, rest, here):
    sys.argv[:] = [path, *rest]
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        import runpy
        sys.modules["__main__"] = main
        if here:
            del sys.path[0]
        runpy.run_path(path, run_name="__main__")
        return
    from importlib.machinery import SourceFileLoader
    if here:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    try:
        with open(path, "rb") as f:
            text = f.read()
    except OSError as error:
        raise SystemExit(f"ptcore.compat.torch: can't open file {path!r}: {error.strerror}") from None
    main.__file__ = path
    main.__loader__ = SourceFileLoader("__main__", path)
    main.__cached__ = None
    sys.modules["__main__"] = main
    exec(compile(text, path, "exec"), vars(main))
