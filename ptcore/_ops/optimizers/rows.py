"""Rows: the steps of optimizers, one for each formula of ``table/steps.py``.

A call takes lists of tensors, one of each for each parameter: the operands that the step writes, the gradients, the
counters. The options follow. What a step cannot run in one pass, it runs as smaller ops.
"""
from ptcore._ops.table.schema import composite
from ptcore._ops.table.steps import STEPS

# The optimizers of formulas that have not their names.
_OF = {"amsgrad": "adam"}

for _name, _step in STEPS.items():
    _parameters = [f"{n}: Tensors" for n in (*_step.written, "g", *_step.counters)]
    _parameters += [f"{n}: Obj" for n in _step.options]
    composite(
        f"step_{_name}({', '.join(_parameters)})", internal=True, method=False, file="optimizers", returns="None",
        called=_OF.get(_name, _name.partition("_")[0]), mutates=(*_step.written, *_step.counters),
        doc=f"One step of the formula {_name} for each parameter in p, with its gradient in g.")
