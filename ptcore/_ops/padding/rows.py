"""Rows: padding with a number or with elements at the edges."""
from ptcore._ops.table.schema import ALL, COMPLEX, REAL, composite, functional, linear, structured

structured(
    "pad_constant(input, pad: Ints, value: Scalar)", kernel="pad_constant", internal=True, called="pad",
    node="ConstantPadNdBackward0", out="padded", keeps="channels_last",
    vjp=["pad_constant(g, negated(pad), 0)"], jvp=["pad_constant(t, pad, 0)"],
    reference="_pad_constant(x, pad, value)",
    doc="``input`` with ``value`` around it: pairs for the last dims, the last dim first.")

for _name, _other, _spec in (("pad_edges", "pad_edges_transposed", "edge_padded"),
                             ("pad_edges_transposed", "pad_edges", "edge_unpadded")):
    linear(
        f"{_name}(input, pad: Ints, mode: 'reflect|replicate|circular')",
        types=ALL if _name == "pad_edges" else (*REAL, *COMPLEX), kernel=_name, internal=True, called="pad",
        node="PadEdgesBackward0", out=_spec, keeps="channels_last", vjp=[f"{_other}(g, pad, mode)"],
        layout="any" if _name == "pad_edges" else "contiguous", reference=f"_{_name}(x, pad, mode)",
        doc="``input`` with its own elements around it: pairs for the last dims, the last dim first."
            if _name == "pad_edges" else "Elements added up where those of ``pad_edges`` came from.")

functional(
     "pad(input, pad: Obj, mode: Obj = 'constant', value: Obj = None)",
     """``input`` made larger, or smaller by negative numbers, at the ends of its last dims.

``pad`` holds pairs (before, after), that of the last dim first. ``mode`` is "constant" (``value``, 0
unless given), "reflect" (mirrored without the edge), "replicate" (the edge again) or "circular"; the
last three take 1 to 3 dims of (C, ...) or (N, C, ...).

>>> import ptcore
>>> ptcore.nn.functional.pad(ptcore.tensor([[1, 2, 3]]), (2, 1), "reflect")
tensor([[3, 2, 1, 2, 3, 2]])
""", "_pad(x, pad, mode, value)", also_top=False)

composite("constant_pad_nd(input, pad: Obj, value: Obj = 0)", method=False, reference="_pad(x, pad, 'constant', value)",
          doc="""``nn.functional.pad`` with a constant.
>>> import ptcore
>>> ptcore.constant_pad_nd(ptcore.tensor([1]), (1, 0), 5)
tensor([5, 1])
""")
