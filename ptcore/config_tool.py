"""The command ``ptcore-config``, for builds of other packages."""
import argparse
import os


def main(argv=None):
    """Prints the requested values, one a line."""
    import ptcore
    include = ptcore.get_include()
    package = os.path.dirname(os.path.dirname(include))
    answers = {"version": ("the version", ptcore.__version__),
               "cflags": ("flags of compilers", f"-I{include}"),
               "libs": ("flags of linkers: none, extensions link to nothing", ""),
               "includedir": ("the folder of the C and C++ headers", include),
               "cython-path": ("the folder in which Cython finds ptcore's .pxd files", os.path.dirname(package)),
               "pkgconfigdir": ("the folder of ptcore.pc", os.path.join(package, "_pkgconfig"))}
    parser = argparse.ArgumentParser(prog="ptcore-config", description=(__doc__ or "").partition(": ")[2])
    for name, (help_text, answer) in answers.items():
        parser.add_argument(f"--{name}", action="append_const", dest="asked", const=answer, help=help_text)
    asked = parser.parse_args(argv).asked
    if not asked:
        parser.error("nothing is asked for")
    print("\n".join(asked))


if __name__ == "__main__":
    main()
