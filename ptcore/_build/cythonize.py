"""Runs Cython over many modules in one process:

    python cythonize.py --out DIR --depfile FILE --cython PROGRAM [option...] -- NAME=SOURCE...

Module ``NAME`` (``ptcore.`` is left out) becomes ``DIR/NAME.cpp``, with underscores for dots. A process of its own
for each module would spend two seconds on starting Cython and on reading its library, and half a second on the module.

A result whose source, ``.pxd`` files, options and Cython are those of its last run stays as it is; beside each lies a
file of their digests (``.deps``). A ``.pxd`` beside the source counts before it exists, too. Where this Python has no Cython, the program does the work, module by module.
"""
import argparse
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

try:
    from Cython import __version__ as VERSION
except ImportError:
    VERSION = None

DIRECTIVES = {"language_level": 3, "binding": True, "c_api_binop_methods": True, "nonecheck": True,
              "auto_pickle": False}
_digests = {}


def digest(path):
    """Of a file's bytes; None where there is no such file."""
    if path not in _digests:
        try:
            _digests[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        except OSError:
            _digests[path] = None
    return _digests[path]


def identity(name, include):
    """What a result depends on beside files."""
    return [name, VERSION, DIRECTIVES, include, hashlib.sha256(Path(__file__).read_bytes()).hexdigest()]


def fresh(output, name, include):
    """The files that a result was made of, if it would be made again just so; else None."""
    try:
        made_of = json.loads(output.with_suffix(".deps").read_text())
    except (OSError, ValueError):
        return None
    files = made_of["files"]
    if output.exists() and made_of["identity"] == identity(name, include) and all(
            digest(f) == d for f, d in files.items()):
        return [f for f, d in files.items() if d]
    return None


def compile_here(name, source, output, include):
    """The files that the result is made of."""
    from Cython.Build.Dependencies import create_dependency_tree
    from Cython.Compiler.Errors import CompileError
    from Cython.Compiler.Main import Context, compile_single
    from Cython.Compiler.Options import CompilationOptions

    options = CompilationOptions(cplus=True, include_path=include, compiler_directives=dict(DIRECTIVES),
                                 language_level=3, output_file=str(output))
    try:
        failed = compile_single(source, options, full_module_name=f"ptcore.{name}").num_errors
    except CompileError as e:
        failed = print(e, file=sys.stderr) or True
    if failed:
        output.unlink(missing_ok=True)
        raise SystemExit(1)
    return sorted(create_dependency_tree(Context.from_options(options)).all_dependencies(source))


def compile_by(program, name, source, output, include):
    """The same by the program ``cython``."""
    options = [word for key, value in DIRECTIVES.items() for word in ("-X", f"{key}={value}")]
    folders = [word for folder in include for word in ("-I", folder)]
    if subprocess.run([program, "-3", "--cplus", "-M", "--fast-fail", *options, *folders, "--module-name",
                       f"ptcore.{name}", source, "-o", str(output)]).returncode:
        raise SystemExit(1)
    rule = Path(f"{output}.dep").read_text().replace("\\\n", " ").partition(":")[2]
    return sorted(rule.split())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--depfile", type=Path, required=True)
    parser.add_argument("--cython", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("modules", nargs="+")
    given = parser.parse_args()
    files, first = {__file__}, None
    for module in given.modules:
        name, _, source = module.partition("=")
        output = given.out / (name.replace(".", "_") + ".cpp")
        first = first or output
        made_of = fresh(output, name, given.include)
        if made_of is None:
            output.with_suffix(".deps").unlink(missing_ok=True)     # a run that is broken off leaves a part of the text
            before = (output.read_bytes(), output.stat().st_mtime_ns) if output.exists() else None
            if VERSION:
                made_of = compile_here(name, source, output, given.include)
            else:
                made_of = compile_by(given.cython, name, source, output, given.include)
            if before and output.read_bytes() == before[0]:         # what ninja makes of it stays, too
                os.utime(output, ns=(before[1], before[1]))
            watched = dict.fromkeys([*made_of, os.fspath(Path(source).with_suffix(".pxd"))])
            text = json.dumps({"identity": identity(name, given.include), "files": {f: digest(f) for f in watched}})
            output.with_suffix(".deps").write_text(text)
        files.update(made_of)
    escaped = (os.fspath(f).replace(" ", "\\ ") for f in sorted(files))
    given.depfile.write_text(f"{first}: {' '.join(escaped)}\n")


if __name__ == "__main__":
    main()
