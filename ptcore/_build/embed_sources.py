"""The texts of kernels, and of the headers that they include, as one C++ file: NVRTC gets them by name from memory.

    python embed_sources.py OUTPUT.cpp FILE...
"""
import re
import sys
from pathlib import Path


def name_of(path):
    """The name in #include: headers of ptcore/_ops/include stand below ptcore/, all others by themselves."""
    return f"ptcore/{path.name}" if path.parent.name == "ptcore" and path.parent.parent.name == "include" else path.name


def without_comments(text):
    """A text's code on the lines that it stood on: comments are for readers of the sources."""
    text = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)
    return "\n".join(re.sub(r"\s*//.*", "", line).rstrip() for line in text.split("\n"))


def main():
    output, *inputs = [Path(a) for a in sys.argv[1:]]
    text = ['// Generated: the sources of kernels.', '#include "sources.hpp"', "namespace pt_cuda {"]
    for k, path in enumerate(inputs):
        data = ",".join(str(b) for b in without_comments(path.read_text()).encode())
        text.append(f"static const unsigned char text_{k}[] = {{{data},0}};")
    text.append("const Source sources[] = {")
    text += [f'    {{"{name_of(path)}", reinterpret_cast<const char *>(text_{k})}},' for k, path in enumerate(inputs)]
    text += ["    {nullptr, nullptr}};", "}"]
    output.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
