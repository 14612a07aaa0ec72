"""``Tag``: properties of an op beside its schema."""
import enum

__all__ = ["Tag"]


class Tag(enum.Enum):
    """Properties of ops; ``inplace`` and ``out`` allow a custom op other results."""

    core = enum.auto()
    cudagraph_unsafe = enum.auto()
    data_dependent_output = enum.auto()
    dynamic_output_shape = enum.auto()
    flexible_layout = enum.auto()
    generated = enum.auto()
    inplace = enum.auto()
    inplace_view = enum.auto()
    maybe_aliasing_or_mutating = enum.auto()
    needs_contiguous_strides = enum.auto()
    needs_exact_strides = enum.auto()
    needs_fixed_stride_order = enum.auto()
    nondeterministic_bitwise = enum.auto()
    nondeterministic_seeded = enum.auto()
    out = enum.auto()
    pointwise = enum.auto()
    pt2_compliant_tag = enum.auto()
    reduction = enum.auto()
    view_copy = enum.auto()


def tags_of(tags):
    """Tags as a tuple without repetitions."""
    if tags is None:
        return ()
    return (tags,) if isinstance(tags, Tag) else tuple(dict.fromkeys(tags))
