"""Methods of shapes that are rarely called."""
from ptcore._errors import ShapeError


def fill_diagonal_(self, fill_value, wrap=False):
    """Sets the elements whose indices are equal; with ``wrap`` the diagonal of a tall matrix starts again."""
    shape = tuple(self.shape)
    if len(shape) < 2:
        raise ShapeError(f"fill_diagonal_: at least 2 dimensions are needed, got {len(shape)}")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ShapeError(f"fill_diagonal_: all dimensions must be of equal length, got {list(shape)}")
    step = sum(self.stride())
    self.as_strided((min(shape),), (step,), self.storage_offset()).fill_(fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        fill_diagonal_(self[shape[1] + 1:], fill_value, True)
    return self


def sum_to_size(self, *size):
    """Summed over the dims by which ``size`` would be broadcast to this shape."""
    shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    own = tuple(self.shape)
    lead = len(own) - len(shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(shape, own[lead:])):
        raise ShapeError(f"sum_to_size: size {list(shape)} is not expandable to size {list(own)}")
    dims = [d for d, m in enumerate(own) if d < lead or (shape[d - lead] == 1 and m != 1)]
    return self.sum(tuple(dims), True).reshape(shape) if dims else self
