"""C++ text of the steps of optimizers (``_ops/table/steps.py``): a struct for each, for loops of the CPU and of CUDA."""
import ast

from tables import expr, steps


def _cpp(line, where):
    return expr.to_cpp(ast.unparse(line.value), where)


def _given(names, used, array, kind):
    return [f"const {kind} {name} = {array}[{k}];" for k, name in enumerate(names) if name in used]


def _numbers(name, step):
    """The body that fills the array of numbers and changes the counters, of the lines that do either."""
    needed, kept = {*step.shared, *step.own}, []
    for line in reversed(step.numbers):
        if line.targets[0].id in needed or line.targets[0].id in step.counters:
            needed |= steps.names(line.value)
            kept.insert(0, line)
    text = _given(step.options, needed, "options", "double")
    text += [f"double {c} = counters[{k}];" for k, c in enumerate(step.counters)]
    for line in kept:
        target, value = line.targets[0].id, _cpp(line, name)
        counted = target in step.counters
        text.append(f"{target} = rounded({value}, single);" if counted else f"const double {target} = {value};")
    text += [f"numbers[{k}] = {n};" for k, n in enumerate(step.shared + step.own)]
    text += [f"counters[{k}] = {c};" for k, c in enumerate(step.counters)]
    if not step.counters:
        text.append("(void)counters, (void)single;")
    return text


def _update(name, step):
    text = [f"C {n} = at[{k}];" for k, n in enumerate(step.written)]
    text += [f"const C g = at[{len(step.written)}];"]
    text += [f"const C {n} = number[{k}];" for k, n in enumerate(step.shared + step.own)]
    for line in step.update:
        target = line.targets[0].id
        text.append(f"{'' if target in step.written else 'const C '}{target} = {_cpp(line, name)};")
    return text + [f"at[{k}] = {n};" for k, n in enumerate(step.written)]


def _struct(name, step):
    counts = {"written": step.written, "options": step.options, "counters": step.counters, "shared": step.shared,
              "own": step.own}
    numbers, update = ("\n".join(f"        {line}" for line in f(name, step)) for f in (_numbers, _update))
    return f"""template <class C> struct {name}_step {{
    static constexpr int {", ".join(f"{k} = {len(v)}" for k, v in counts.items())};
    C number[shared + own];

    static PT_HOST_DEVICE void numbers_of(const double *options, double *counters, bool single, double *numbers) {{
        typedef double T;
{numbers}
    }}
    PT_INLINE void apply(C *at) const {{
        typedef C T;
{update}
    }}
}};
"""


def header():
    """Everything, and PT_STEPS(X): X of each name."""
    return "\n".join([
        "// Generated from _ops/table/steps.py: apply() is given the operands that a step writes and the gradient.",
        "#pragma once", '#include "ptcore/scalar.h"', "", "namespace pt { namespace {", "",
        "template <class T> PT_INLINE T clamp(T x, T low, T high) { return minimum(maximum(x, low), high); }",
        "PT_INLINE double power(double x, double y) { return ::pow(x, y); }",
        "PT_INLINE double rounded(double x, bool single) { return single ? (double)(float)x : x; }", "",
        *[_struct(name, step) for name, step in steps.STEPS.items()],
        "}}  // namespace pt, unnamed", "",
        "#define PT_STEPS(X) " + " ".join(f"X({name})" for name in steps.STEPS), ""])
