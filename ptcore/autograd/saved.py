"""The attributes by which programs look into a node of the graph: saved tensors, arguments, metadata.

The names are PyTorch's: ``_saved_self`` for the first argument, which rows call ``input``, ``_saved_other`` and
``_saved_dim`` for others, ``_saved_result`` for the output. ``_raw_saved_NAME`` is the place of a tensor, which takes
hooks. A node of a custom Function has the attributes of its context.
"""
from typing import NamedTuple

from ptcore._ops import row
from ptcore._ops.history import repack, slots_of
from ptcore._ops.table.ids import op_name
from ptcore._tensor import Tensor


class SavedTensor(NamedTuple):
    """The place in a node where a tensor is saved."""
    node: object
    slot: int

    def register_hooks(self, pack_hook, unpack_hook):
        """Replaces the saved tensor by ``pack_hook(tensor)``; the backward gets ``unpack_hook`` of that.

        Raises
        ------
        RuntimeError
            If the place has hooks already, holds no tensor, or has been freed.
        """
        def unpacked(value):
            t = unpack_hook(value)
            if not isinstance(t, Tensor):
                raise TypeError(f"register_hooks: unpack_hook must return a Tensor, got {type(t).__name__}")
            return t
        repack(self.node, self.slot, pack_hook, unpacked)

    def unpack(self):
        """The saved tensor."""
        return self.node.saved(self.slot)


def context_of(node):
    """The context of the custom Function that made a node, or None."""
    return getattr(node.fn, "ctx", None) if node.op < 0 else None


def _params_of(node):
    """{name: value} of the arguments of a row that are no tensors."""
    if node.op < 0 or node.params is None:
        return {}
    names = [arg.name for arg in row(op_name(node.op)).args if not arg.is_tensor]
    return dict(zip(names, node.params))


def _places(node):
    return {"self" if name == "input" else name: slot for name, slot in slots_of(node).items()}


def names_of(node):
    """The names that `value_of` knows."""
    places = _places(node)
    return [*(f"_saved_{n}" for n in (*places, *_params_of(node))), *(f"_raw_saved_{n}" for n in places)]


def value_of(node, name):
    """What a node saves under a name that begins with ``_saved_`` or ``_raw_saved_``.

    Raises
    ------
    AttributeError
        If the node saves nothing of that name.
    RuntimeError
        If it was freed by a backward, or written to in place since.
    """
    raw, _, word = name.partition("saved_")
    places, word = _places(node), "self" if word == "input" else word
    if word in places:
        return SavedTensor(node, places[word]) if raw == "_raw_" else node.saved(places[word])
    params = _params_of(node) if raw == "_" else {}
    if word not in params:
        raise AttributeError(f"{node.name()!r} object has no attribute {name!r}; it has "
                             f"{', '.join(names_of(node)) or 'no saved values'}")
    return params[word]
