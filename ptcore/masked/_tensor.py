"""Tensors that carry a mask of the elements that count."""
from operator import index

import ptcore
from ptcore import Tensor
from ptcore._ops.checked import flag
from ptcore._subclass import check_plain

call = None                             # the functions of masked tensors, set by _calls.py


def is_masked_tensor(obj, /):
    """Whether an object is a :class:`MaskedTensor`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.masked.is_masked_tensor(ptcore.ones(2))
    False
    """
    return isinstance(obj, MaskedTensor)


def masked_tensor(data, mask, requires_grad=False):
    """A :class:`MaskedTensor` that is a leaf, like the tensors of :func:`ptcore.tensor`.

    Parameters
    ----------
    data : Tensor
        Copied.
    mask : Tensor
        Bools of the same shape, True where an element counts. Copied.
    requires_grad : bool

    Returns
    -------
    MaskedTensor

    Raises
    ------
    TypeError
        If data or mask is no plain tensor, or the mask is not of bools.
    ValueError
        If their shapes differ.

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.tensor([1., 2., 3.])
    >>> ptcore.masked.masked_tensor(x, x > 1)
    MaskedTensor(
      [      --,   2.0000,   3.0000]
    )
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data, mask):
    """A :class:`MaskedTensor` with the history of its data.

    Parameters
    ----------
    data : Tensor
    mask : Tensor
        Bools of the same shape, True where an element counts.

    Returns
    -------
    MaskedTensor
        Gradients reach `data` where the mask is True; elsewhere they are 0.

    Raises
    ------
    TypeError
        If data or mask is no plain tensor, or the mask is not of bools.
    ValueError
        If their shapes differ.

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.tensor([1., 2.], requires_grad=True)
    >>> ptcore.masked.as_masked_tensor(x, x.detach() > 1).sum().backward()
    >>> x.grad
    tensor([0., 1.])
    """
    check(data, mask)
    mask = mask.clone()
    # A clone would hand on NaN where the slope at a masked-out element is infinite: 0 times infinity.
    copied = ptcore.where(mask, data, data.detach()) if data.requires_grad else data.clone()
    return wrapped(copied, mask)


def wrapped(data, mask):
    """A masked tensor over this memory, with this history."""
    result = data.as_subclass(MaskedTensor)
    result._masked_mask = mask
    return result


def check(data, mask):
    """Raises unless data and mask fit together."""
    for name, x in (("data", data), ("mask", mask)):
        if is_masked_tensor(x) or not isinstance(x, Tensor):
            raise TypeError(f"MaskedTensor: {name} must be a Tensor, got {type(x).__name__}")
    if data.layout is not ptcore.strided or mask.layout is not ptcore.strided:
        raise TypeError(f"MaskedTensor: data and mask must be strided, got {data.layout} and {mask.layout}")
    if mask.dtype is not ptcore.bool:
        raise TypeError(f"MaskedTensor: mask must have dtype bool, got {mask.dtype.name}")
    if data.shape != mask.shape:
        raise ValueError(f"MaskedTensor: data and mask must have one shape, got {list(data.shape)} and "
                         f"{list(mask.shape)}")


class MaskedTensor(Tensor):
    """A tensor and a mask of the elements that count; PyTorch's prototype of the same name, for strided tensors.

    Elementwise functions apply to all elements and keep the mask, which must be the same for both operands. Functions
    that pick, join or move elements do the same with the mask. Reductions leave masked-out elements out; an element of
    their result is masked out if no element counted. Other functions raise TypeError.

    Parameters
    ----------
    data : Tensor
        Copied, without its history; :func:`as_masked_tensor` keeps that.
    mask : Tensor
        Bools of the same shape, True where an element counts.
    requires_grad : bool

    Raises
    ------
    TypeError
        If data or mask is no plain tensor, or the mask is not of bools.
    ValueError
        If their shapes differ.

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.masked.MaskedTensor(ptcore.tensor([[1., 2.], [3., 4.]]),
    ...                                ptcore.tensor([[True, False], [False, False]]))
    >>> x * 2
    MaskedTensor(
      [
        [  2.0000,       --],
        [      --,       --]
      ]
    )
    >>> x.sum(1)
    MaskedTensor(
      [  1.0000,       --]
    )
    >>> x.to_tensor(0)
    tensor([[1., 0.],
            [0., 0.]])
    """

    def __new__(cls, data, mask, requires_grad=False):
        check(data, mask)
        requires_grad = flag("MaskedTensor", "requires_grad", requires_grad)
        result = Tensor._make_subclass(cls, data.detach().clone(), requires_grad)
        result._masked_mask = mask.detach().clone()
        return result

    def __init__(self, data, mask, requires_grad=False):
        pass

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if not all([issubclass(cls, t) for t in types]):
            return NotImplemented
        return call(func, args, kwargs or {})

    def get_data(self):
        """All elements, masked-out ones included, as a plain tensor over the same memory, with history."""
        return ptcore._disabled_torch_function_impl(ptcore.reshape, (), (self, self.shape))

    def get_mask(self):
        """The mask."""
        return self._masked_mask

    def to_tensor(self, value):
        """The elements as a plain tensor, with `value` in place of masked-out ones."""
        return self.get_data().masked_fill(~self.get_mask(), value)

    @property
    def grad(self):
        """The gradient under the same mask, or None."""
        found = Tensor.grad.__get__(self)
        return found if found is None or is_masked_tensor(found) else wrapped(found, self.get_mask())

    @grad.setter
    def grad(self, value):
        Tensor.grad.__set__(self, value.get_data().detach() if is_masked_tensor(value) else value)

    @grad.deleter
    def grad(self):
        Tensor.grad.__set__(self, None)

    def item(self):
        """The number in a tensor of one element; raises ValueError if it is masked out."""
        if self.numel() == 1 and not self.get_mask().item():
            raise ValueError("item: the element is masked out")
        return self.get_data().item()

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __complex__(self):
        return complex(self.item())

    def __index__(self):
        return index(self.item())

    _no_plain_form = "use get_data() or to_tensor(value)"

    def numpy(self, *args, **kwargs):
        """Refused, since the mask would be lost."""
        check_plain(self, "numpy")

    def __array__(self, *args, **kwargs):
        check_plain(self, "numpy")

    def __dlpack__(self, *args, **kwargs):
        check_plain(self, "__dlpack__")

    def __arrow_c_array__(self, *args, **kwargs):
        check_plain(self, "__arrow_c_array__")

    def tolist(self):
        """The elements as nested lists, with None for masked-out ones."""
        return _listed(self.get_data().tolist(), self.get_mask().tolist())

    def __bool__(self):
        return bool(self.item())

    def __lt__(self, other):
        data = other.get_data() if is_masked_tensor(other) else other
        result = self.get_data() < data
        return wrapped(result, self.get_mask().expand(result.shape))

    def __repr__(self, *, tensor_contents=None):
        data, mask = self.get_data().detach(), self.get_mask()
        if self.ndim == 0:
            return f"MaskedTensor({_text(data.item()) if mask.item() else '--'}, {mask.item()})"
        text = _block(data.tolist(), mask.tolist())
        return "MaskedTensor(\n" + "\n".join([f"  {line}" for line in text.split("\n")]) + "\n)"

    def __reduce_ex__(self, protocol):
        return _again, (self.get_data().detach(), self.get_mask(), self.requires_grad)


def _again(data, mask, requires_grad):
    """Rebuilds a pickled masked tensor."""
    return MaskedTensor(data, mask, requires_grad)


def _listed(data, mask):
    if isinstance(mask, list):
        return [_listed(d, m) for d, m in zip(data, mask)]
    return data if mask else None


def _text(number):
    return f"{number:8.4f}" if isinstance(number, float) else str(number)


def _block(data, mask):
    """Rows as PyTorch prints them."""
    if not mask or not isinstance(mask[0], list):
        texts = [_text(d) for d in data]
        width = max([len(t) if m else 8 for t, m in zip(texts, mask)], default=0)
        return "[" + ", ".join([t if m else "--".rjust(width) for t, m in zip(texts, mask)]) + "]"
    rows = [_block(d, m) for d, m in zip(data, mask)]
    return "[\n" + ",\n".join(["\n".join([f"  {line}" for line in row.split("\n")]) for row in rows]) + "\n]"
