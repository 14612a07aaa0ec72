"""The layouts that compiled packages rely on, against those that were written down: they grow at their ends alone."""
import ctypes
import re
from pathlib import Path

import ptcore as pt
from ptcore.utils.cpp_extension import load_inline

KNOWN = Path(__file__).parent / "api_table.txt"
HEADERS = Path(pt.get_include()) / "ptcore"


def fields(name, header):
    """(declaration, field) of a struct, in order."""
    text = re.sub(r"/\*.*?\*/", "", (HEADERS / header).read_text(), flags=re.S)
    body = re.search(r"typedef struct " + name + r"\w* \{(.*?)\n\}", text, re.S).group(1)
    for declaration in body.split(";"):
        declaration = " ".join(declaration.split())
        if not declaration:
            continue
        function = re.search(r"\(\*(\w+)\)", declaration)
        if function:
            yield declaration, function.group(1)
        else:
            kind, *names = re.split(r"(?<=[\w*]) (?=\*?\w+(?:\[\w+\])?(?:,|$))|, ", declaration)
            for x in names:
                yield f"{kind} {x}", re.match(r"\**(\w+)", x).group(1)


STRUCTS = (("pt_api", "api.h"), ("pt_view", "kernel.h"), ("pt_param", "kernel.h"), ("pt_call_3", "kernel.h"))


def test_layouts_are_those_written_down(root):
    """A field that has moved, changed or gone needs another PT_ABI, and then another list."""
    lines = []
    for struct, header in STRUCTS:
        for declaration, field in fields(struct, header):
            offset = f"std::to_string(offsetof({struct}, {field}))"
            lines.append(f'    lines.push_back("{struct} " + {offset} + " {declaration}");')
    source = "\n".join(["std::vector<std::string> layouts() {", "    std::vector<std::string> lines;",
                        '    lines.push_back("PT_ABI " + std::to_string(PT_ABI));', *lines, "    return lines;", "}"])
    found = load_inline("layouts", source, functions=["layouts"], extra_cflags=["-Wno-invalid-offsetof"],
                        build_directory=root).layouts()
    known = KNOWN.read_text().splitlines()
    for struct in ("PT_ABI", *[name for name, _ in STRUCTS]):
        now, before = ([line for line in lines if line.split()[0] == struct] for lines in (found, known))
        assert now[:len(before)] == before
        # A new field is written down with the change that brings it.
        assert now == before


def test_the_cython_functions():
    """Signatures of what packages in Cython import: none goes or changes, new ones are written down."""
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    from ptcore import cython_ops, cython_tensor
    found = [f"cython {module.__name__.rpartition('.')[2]}.{name}: {name_of(capsule).decode()}"
             for module in (cython_ops, cython_tensor) for name, capsule in sorted(module.__pyx_capi__.items())]
    assert [line for line in KNOWN.read_text().splitlines() if line.startswith("cython ")] == found


def test_the_table_of_this_build():
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    from ptcore import c_api
    address = get(c_api.table, b"ptcore.c_api.table")
    abi, size = (ctypes.c_uint32 * 2).from_address(address)
    known = KNOWN.read_text().splitlines()
    assert f"PT_ABI {abi}" == known[0]
    entries = [line for line in known if line.startswith("pt_api ")]
    assert size == int(entries[-1].split()[1]) + ctypes.sizeof(ctypes.c_void_p)
    pointers = (ctypes.c_void_p * (len(entries) - 2)).from_address(address + 8)
    assert all(pointers)
