#!/usr/bin/env python3
"""How fast this machine is: the processor seconds that one kernel file takes to compile.

    python tools/machine_speed.py [BUILD_FOLDER]

The file is compiled once, by the command of the build, without a cache. Times of a run of CI are compared with those of
another machine by these seconds.
"""
import json
import resource
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

FILE, LEVEL = "reduction.cpp", "v3"
SECONDS = 6.7           # where the bound of CI was set


def command(build):
    """(words, folder) of the build's command for the file, without a compiler's cache in front."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        if Path(entry["file"]).name == FILE and f"-DPT_ISA={LEVEL}" in words:
            return [w for i, w in enumerate(words) if i or Path(w).name != "ccache"], entry["directory"]
    raise SystemExit(f"machine_speed: {build} compiles no {FILE} at level {LEVEL}")


def measure(build):
    """Processor seconds of the compiler."""
    words, folder = command(build)
    with tempfile.TemporaryDirectory() as out:
        for option in ("-o", "-MF", "-MQ"):
            if option in words:
                words[words.index(option) + 1] = f"{out}/object.o" + ".d" * (option == "-MF")
        subprocess.run(words, cwd=folder, check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    seconds = measure(Path(sys.argv[1] if len(sys.argv) > 1 else "build"))
    print(f"{FILE} at level {LEVEL} compiles in {seconds:.1f} s of a processor; where the bound of CI was set: "
          f"{SECONDS:.1f} s")


if __name__ == "__main__":
    main()
