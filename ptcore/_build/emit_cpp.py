"""C++ text from rows: formulas and loops by family, the op table, the choice of ISA level."""
import re

import emit_shapes
import levels
from tables import expr, grad_mask, schema

LEVELS = ("base", "v3", "v4")
# What stands in namespace pt::fast too: the branch-free part, NaN where that does not hold.
FAST = "sin|cos|tan|fmod|remainder|floor_divide|spherical_bessel_j0"
CPP = {"bool": "bool", "uint8": "uint8_t", "int8": "int8_t", "uint16": "uint16_t",
       "int16": "int16_t", "uint32": "uint32_t", "int32": "int32_t", "uint64": "uint64_t",
       "int64": "int64_t", "float32": "float", "float64": "double",
       "complex64": "pt::complex<float>", "complex128": "pt::complex<double>"}
OPMATH = {"float32": "float", "float64": "double", "complex64": "pt::complex<float>",
          "complex128": "pt::complex<double>"}
OUT_DTYPE = {"cast": 0, "exact": 1, "cast one": 2, "own": 3, "any": 4}
INTEGERS = {"any": 0, "nonzero": 1, "nonnegative": 2}
SELECTS = {None: 0, "one": 1, "second": 2}
PROMOTE = {"default": 0, "float": 1, "none": 2, "where": 3, "first": 4, "dtype": 5, "whole": 6}
OUT = {"same": 0, "bool": 1, "real": 2}
KIND = {"elementwise": 0, "view": 2, "composite": 3}


def wraps_around(op):
    """Signed and unsigned integers may share one loop: + - * alone, no division, no compare."""
    text = expr.to_cpp(op.row.formula, op.name, {a.name for a in op.params})
    return op.row.out == "same" and not any(c in text for c in "/<>=?&|^!") and not expr.called(
        op.row.formula)


def powers(op):
    """Whether loops for one exponent have shorter code for some exponents."""
    return "pow" in expr.called(op.row.formula)


def formula(op):
    names = {a.name for a in op.params}
    body = expr.to_cpp(op.row.formula, f"{op.family}/rows.py, {op.name}", names)
    tensors = [f"T {n}" for n in expr.TENSOR_NAMES[:len(op.tensors)]]
    params = [f"P p_{a.name}" for a in op.params]
    result = {"same": "T", "bool": "bool", "real": "pt::real_of<T>"}[op.row.out]
    given = ", ".join(tensors + params)
    fast = re.sub(rf"\bpt::({FAST})\(", r"pt::fast::\1(", body)
    in_blocks = fast != body and not re.search(r"[?<>=!]", body)       # a comparison would hide that one is NaN
    unused = "".join(f"        (void)p_{a.name};\n" for a in op.params)
    unused += "".join(f"        (void){n};\n" for n in expr.TENSOR_NAMES[:len(op.tensors)]
                      if not re.search(rf"\b{n}\b", body))
    return (f"// {op.family}/rows.py: {op.name}\n"
            f"struct op_{op.name} {{\n"
            f"    static constexpr int ninputs = {len(op.tensors)}, nparams = {len(op.params)};\n"
            f"    static constexpr bool wraps = {'true' if wraps_around(op) else 'false'};\n"
            f"    static constexpr bool powers = {'true' if powers(op) else 'false'};\n"
            f"    static constexpr bool in_blocks = {'true' if in_blocks else 'false'};\n"
            + "".join(f"    template <class T, class P = T>\n"
                      f"    static PT_INLINE {result} {name}({given}) {{\n"
                      f"{unused}"
                      f"        return static_cast<{result}>({text});\n    }}\n"
                      for name, text in (("apply", re.sub(r"\bpt::(?=\w+\()", "PT_MATH::", body)),
                                         ("fast", fast))[:1 + in_blocks])
            + "};\n")


def formulas(family, ops):
    """A family's formulas: read by its loops, and by CUDA one at a time."""
    text = [f"// Generated from _ops/{family}/rows.py.", "#pragma once", '#include "ptcore/formula.h"', "", "namespace {", ""]
    text += [formula(op) for op in ops]
    return "\n".join([*text, "}  // namespace"]) + "\n"


def loops(family, ops):
    """The translation unit of a family: compiled once per ISA level."""
    text = [f"// Generated from _ops/{family}/rows.py: one table of loops.",
            '#include "ptcore/config.h"', '#include "loops.hpp"', f'#include "formulas_{family}.h"', "",
            f'extern "C" const pt_elementwise PT_CAT(pt_loops_{family}_, PT_ISA)[] = {{']
    for op in ops:
        n = len(op.tensors)
        share = wraps_around(op)
        functions = expr.called(op.row.formula)
        entries, vs, sv = [], [], []
        for d in schema.DTYPES:
            if d not in op.row.types or d not in CPP:
                cell = scalar_v = scalar_s = "nullptr"
            else:
                t = CPP[d]
                if share and d in schema.SIGNED:
                    t = "u" + t
                level = "FLOAT" if levels.has_lanes(functions, d) else "BASE"
                cell = f"PT_{level}((loop{n}<op_{op.name}, {t}>))"
                both = (op.row.scalar_loops or powers(op)) and n == 2
                last = "vs" if both else "vvs" if powers(op) else None
                scalar_v = f"PT_{level}((loop_{last}<op_{op.name}, {t}>))" if last else "nullptr"
                scalar_s = f"PT_{level}((loop_sv<op_{op.name}, {t}>))" if both else "nullptr"
            entries.append(cell)
            vs.append(scalar_v)
            sv.append(scalar_s)
        text.append(f'    {{"{op.name}",\n     {{{", ".join(entries)}}},\n'
                    f'     {{{", ".join(vs)}}},\n     {{{", ".join(sv)}}}, {n}, {op.row.cost}, {int(powers(op))}}},')
    text.append("    {nullptr, {}, {}, {}, 0, 0, 0}};")
    return "\n".join(text) + "\n"


def condition(row):
    """1 + the operand of an elementwise row that must be bool; 0: none."""
    if row.kind != "elementwise":
        return 0
    return 1 if row.promote == "where" else row.letters.find("I") + 1


def families(ops):
    """family -> its elementwise ops, in id order."""
    result = {}
    for op in ops:
        if op.row.kind == "elementwise":
            result.setdefault(op.family, []).append(op)
    return result


def letters():
    """_letters.h: names for the letters of arguments, ``PT_ARG_OPT_TENSOR`` for ``OptTensor``."""
    named = {re.sub("(?<=[a-z])(?=[A-Z])", "_", name).upper(): letter
             for name, letter in {**schema.LETTERS, "Word": schema.WORD_LETTER}.items()}
    return "\n".join(["/* Generated: the letters of arguments, see _ops/table/schema.py. */", "enum {",
                      *[f"    PT_ARG_{name} = '{letter}'," for name, letter in named.items()], "};", ""])


def optable(ops):
    """_optable.h: the compiled columns."""
    text = ["/* Generated: one line per op. */", '#include "_opinfo.h"',
            f"enum {{ PT_N_BUILTIN_OPS = {len(ops)} }};",
            "static const pt_opinfo pt_builtin_ops[] = {"]
    for op in ops:
        row = op.row
        letters = "".join(a.letter for a in op.args)
        argnames = ",".join(a.name for a in op.args)
        words = ";".join(f"{k}:{'|'.join(a.choices)}" for k, a in enumerate(op.args) if a.choices)
        npositional = sum(not a.keyword_only for a in op.args)
        saved = ", ".join(str(code) for code, _ in op.saved) or "0"
        need = ", ".join(str(mask) for _, mask in op.saved) or "0"
        types = sum(1 << schema.DTYPES.index(t) for t in (*row.types, *row.stored))
        kernel = f'"{row.kernel}"' if row.kernel else "NULL"
        node = f'"{row.node}"' if row.node else "NULL"
        sparse = f'"{row.sparse}"' if row.sparse else "NULL"
        hint = f'"{row.hint}"' if row.hint else "NULL"
        out = OUT[row.out] if row.kind == "elementwise" else 0
        text.append(
            f'    {{"{op.row.called}", "{op.name}", "{letters}", "{argnames}", "{words}", {kernel}, "{op.family}", {node}, {sparse}, {hint}, '
            f"{KIND.get(row.kind, 1)}, {PROMOTE[row.promote]}, {out}, {len(op.tensors)}, "
            f"{npositional}, {op.nout}, {int(row.random)}, {layout(row)}, {int(row.prefill)}, {int(row.updates)}, {letters.count('L')}, "
            f"{int(op.differentiable)}, {len(op.saved)}, {int(emit_shapes.takes_positions(op))}, {INTEGERS[row.integers]}, {SELECTS[row.selects]}, "
            f"{condition(row)}, {OUT_DTYPE[row.out_dtype]}, {int(op.name in schema.stored.WIDE)}, "
            f"{{{schema.AUTOCAST.index(row.autocast_on('cpu'))}, {schema.AUTOCAST.index(row.autocast_on('cuda'))}}}, 0, "
            f"0x{types:x}, 0x{grad_mask(op):x}, 0x{mutates(op):x}, "
            f"{{{saved}}}, {{{need}}}, NULL}},")
    text.append("};")
    return "\n".join(text) + "\n"


def mutates(op):
    """pt_opinfo.mutates: the tensor arguments that a structured op writes to."""
    if op.row.kind != "structured":
        return 0
    return sum(1 << k for k, a in enumerate(op.tensors) if op.position(a.name) in op.row.mutates)


def layout(row):
    """pt_opinfo.contiguous: bit 0 for inputs that are made row-major, bits 1 and 2 for what results keep of them."""
    return int(row.layout == "contiguous") + {None: 0, "channels_last": 2, "layout": 4}[row.keeps]


def select(ops, kernels):
    """_select.cpp: fills the tables from the best ISA level that the CPU has.

    ``kernels`` says of each kernel file the highest level that it is compiled at, which serves those above.
    """
    by_family = families(ops)
    compiled = {level: [f for f in kernels if LEVELS.index(level) <= LEVELS.index(kernels[f])] for level in LEVELS}
    out = ['// Generated: tables of every family and level, and which level is in use.',
           '#include "select.hpp"', ""]
    for level in LEVELS:
        out.append(f"#ifdef PT_HAVE_{level.upper()}")
        for f in by_family:
            out.append(f'extern "C" const pt_elementwise pt_loops_{f}_{level}[];')
        out += [f'extern "C" const pt_kernel_entry pt_kernels_{f}_{level}[];' for f in compiled[level]]
        out.append(f'extern "C" const pt_loop pt_cast_table_{level}[PT_NDTYPES][PT_NDTYPES];')
        out.append(f'extern "C" const pt_chain_table pt_chains_{level};')
        out.append("#endif")
    for f, members in by_family.items():
        out.append(f"static const int ids_{f}[] = {{{', '.join(str(o.id) for o in members)}}};")
    for level in LEVELS:
        out.append(f"#ifdef PT_HAVE_{level.upper()}")
        out.append(f"static const pt_loop_family loops_{level}[] = {{")
        out += [f"    {{pt_loops_{f}_{level}, ids_{f}}}," for f in by_family]
        out.append("    {nullptr, nullptr}};")
        out.append(f"static const pt_kernel_entry *const kernels_{level}[] = {{")
        out += [f"    pt_kernels_{f}_{level}," for f in compiled[level]]
        out.append("    nullptr};")
        out.append("#endif")
    out.append("static const pt_level levels[] = {")
    for level in LEVELS:
        out.append(f"#ifdef PT_HAVE_{level.upper()}")
        out.append(f'    {{"{level}", loops_{level}, kernels_{level}, pt_cast_table_{level}, &pt_chains_{level}}},')
        out.append("#endif")
    out.append("    {nullptr, nullptr, nullptr, nullptr, nullptr}};")
    out.append(f"static pt_elementwise merged[{len(ops)}];")
    out.append(f'extern "C" const pt_elementwise *pt_loops(int op) {{ return &merged[op]; }}')
    out.append('extern "C" const pt_kernel_entry *const *pt_level_kernels(const char *name) '
               "{ return kernels_of(levels, name); }")
    out.append('extern "C" int pt_select(const char *wanted, pt_enter_kernels enter) '
               "{ return select_level(levels, merged, wanted, enter); }")
    return "\n".join(out) + "\n"
