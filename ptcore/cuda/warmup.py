"""Compiles kernels ahead of their first use, for nodes where no compiler may run or none should wait.

    python -m ptcore.cuda.warmup --arch sm_90 --programs elementwise:add --jobs 8
    python -m ptcore.cuda.warmup --arch sm_90 --list step.txt

``save_programs("step.txt")`` at the end of a training step writes which kernels it took; with ``--list`` these are
compiled, in parallel, where a first step would compile them one after the other. The results go to the cache that
``ptcore`` reads (``PTCORE_CACHE_DIR``). Where architectures are named no device is needed.
"""
import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

from ptcore._ops.levels import get_num_threads
from ptcore.cuda import _compile, _programs, get_arch_list
from ptcore.cuda.driver.compiled import compiled
from ptcore.cuda.driver.loading import runtime


def save_programs(path):
    """Writes the kernels that this process has used so far on CUDA devices to a file, for the option ``--list``.

    Parameters
    ----------
    path : str or path
        The file; a line is a program's name and the dtypes that it was compiled for.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.cuda.warmup import save_programs
    >>> if ptcore.cuda.is_available():
    ...     save_programs("step.txt")
    """
    lines = [" ".join([program, *[_programs.CPP[code] for code in codes]]) for program, codes in runtime().programs()]
    _compile.write(path, "".join(line + "\n" for line in lines).encode())


def listed(path):
    """(program, codes of dtypes) of each line of a file that ``save_programs`` wrote."""
    codes = {name: code for code, name in enumerate(_programs.CPP)}
    found = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            program, *names = line.split() or [""]
            try:
                types = tuple([codes[name] for name in names])
                _programs.text_of(program, types)
            except KeyError as e:
                raise SystemExit(f"warmup: {path}, line {number}: there is no program or dtype {e}") from None
            found.append((program, types))
    return found


def one(task):
    """Compiles a program that is not in the cache; returns None, or the program's name and the error."""
    program, types, architecture = task
    try:
        _compile.cubin(program, types, architecture)
    except RuntimeError as e:
        return f"{program} {types} sm_{architecture}: {e}"
    return None


def architectures(words):
    """90 for sm_90; the architectures of the machine's devices if none is named."""
    words = words or get_arch_list()
    if not words:
        raise SystemExit("warmup: there is no CUDA device here: name architectures, such as --arch sm_90")
    for word in words:
        if not word.removeprefix("sm_").isdecimal():
            raise SystemExit(f"warmup: --arch must be such as sm_90, got {word!r}")
    return [int(word.removeprefix("sm_")) for word in words]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m ptcore.cuda.warmup",
                                     description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--arch", nargs="*", default=[], help="such as sm_80 sm_90; the devices' own if absent")
    parser.add_argument("--programs", default="", help="only programs whose name has this in it")
    parser.add_argument("--list", metavar="FILE", help="only the programs of a file that save_programs wrote")
    parser.add_argument("--jobs", type=int, default=get_num_threads(), help="processes; one compiler runs in each")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args(arguments)
    try:
        compiled()
        _compile.compiler()
    except RuntimeError as e:
        raise SystemExit(f"warmup: {e}") from None
    chosen = listed(options.list) if options.list else _programs.every()
    chosen = [p for p in chosen if options.programs in p[0]]
    tasks = [(*program, arch) for arch in architectures(options.arch) for program in chosen]
    if not tasks:
        raise SystemExit(f"warmup: no program has {options.programs!r} in its name")
    with ProcessPoolExecutor(max(1, options.jobs)) as pool:
        results = pool.map(one, tasks, chunksize=4)
        if not options.quiet:
            try:
                from tqdm import tqdm
                results = tqdm(results, total=len(tasks), unit="program")
            except ImportError:
                print(f"{len(tasks)} programs", file=sys.stderr)
        failed = [r for r in results if r]
    for text in failed:
        print(text, file=sys.stderr)
    if not options.quiet:
        print(f"{len(tasks) - len(failed)} programs in {_compile.kernels_dir()}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
