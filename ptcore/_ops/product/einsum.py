"""``einsum``: a sum of products named by letters, from left to right, each step one product.

A dim is a *label*: a letter of the equation, or an int for a dim under the ellipsis (-1 the last
one). Every label has one size; a dim of size 1 is broadcast to any size. An
operand is held as ``(tensor, labels)`` with distinct labels. The ops called here record
themselves, so this file does not handle gradients.
"""
from ptcore._errors import ChoiceError, DTypeError, ShapeError
from ptcore._ops.call.autocast import is_enabled
from ptcore._ops.functions import bmm, diagonal, expand, mm, permute, reshape, squeeze, sum
from ptcore._tensor import Tensor

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def einsum(equation, operands):
    if isinstance(equation, Tensor):
        equation, operands = _from_sublists((equation, *operands))
    elif not isinstance(equation, str):
        raise TypeError(f"einsum: equation must be str, got {type(equation).__name__}")
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = operands[0]
    if not operands:
        raise ChoiceError("einsum: at least one operand is needed, got none")
    for x in operands:
        if not isinstance(x, Tensor):
            raise TypeError(f"einsum: operands must be Tensors, got {type(x).__name__}")
    terms, output = _parse(equation, operands)
    _check_sizes(equation, operands, terms)
    terms = [_distinct(x, labels) for x, labels in zip(operands, terms)]
    x, labels = _summed(*terms[0], _needed(terms[1:], output))
    for i, (y, other) in enumerate(terms[1:], 2):
        needed = _needed(terms[i:], output)
        y, other = _summed(y, other, needed | set(labels))
        x, labels = _summed(x, labels, needed | set(other))
        x, labels = _product(x, labels, y, other, needed, output)
    return _in_order(x, labels, output)


# -- the equation ------------------------------------------------------------------------------

def _from_sublists(args):
    """The equation and operands of ``einsum(x, [0, 1], y, [1, 2], [0, 2])``."""
    operands, terms = args[0:len(args) - len(args) % 2:2], [_letters(s) for s in args[1::2]]
    equation = ",".join(terms)
    if len(args) % 2:
        equation += "->" + _letters(args[-1])
    return equation, operands


def _letters(sublist):
    if not isinstance(sublist, (tuple, list)):
        raise TypeError(f"einsum: each operand must be followed by its list of subscripts, got "
                        f"{type(sublist).__name__}")
    text = ""
    for i in sublist:
        if i is not Ellipsis and (type(i) is not int or not 0 <= i < len(LETTERS)):
            raise ChoiceError(f"einsum: subscripts must be ints in [0, {len(LETTERS) - 1}] or "
                              f"Ellipsis, got {i!r}")
        text += "..." if i is Ellipsis else LETTERS[i]
    return text


def _parse(equation, operands):
    """The labels of each operand, and those of the output."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(operands):
        raise ChoiceError(f"einsum: equation {equation!r} names {len(texts)} operands, got "
                          f"{len(operands)}")
    terms = [_labels(equation, text, x.ndim) for text, x in zip(texts, operands)]
    # The largest number of dims under an ellipsis; in the output they come first, in order.
    depth = 0
    for labels in terms:
        for label in labels:
            if type(label) is int and -label > depth:
                depth = -label
    covered = list(range(-depth, 0))
    if not arrow:
        every = [label for labels in terms for label in labels]
        return terms, covered + [c for c in LETTERS if every.count(c) == 1]
    output = _labels(equation, right, len(right.replace("...", "")) + depth * ("..." in right))
    for i, label in enumerate(output):
        if label in output[:i]:
            raise ChoiceError(f"einsum: the output of {equation!r} names {label!r} twice")
        if not any([label in labels for labels in terms]):
            raise ChoiceError(f"einsum: the output of {equation!r} names {label!r}, but no operand "
                              "does")
    return terms, output


def _labels(equation, text, ndim):
    """The labels of one term; its ellipsis stands for the dims that no letter names."""
    before, dots, after = text.partition("...")
    for c in before + after:
        if c not in LETTERS:
            raise ChoiceError(f"einsum: subscripts must be letters, '...', ',' and '->', got {c!r} "
                              f"in {equation!r}")
    depth = ndim - len(before) - len(after)
    if depth < 0 or (depth > 0 and not dots):
        raise ShapeError(f"einsum: {text!r} in {equation!r} names {len(before) + len(after)} "
                         f"dimensions, got an operand of {ndim}")
    return [*before, *range(-depth, 0), *after]


def _check_sizes(equation, operands, terms):
    sizes = {}
    for x, labels in zip(operands, terms):
        for n, label in zip(x.shape, labels):
            if sizes.setdefault(label, n) == 1:
                sizes[label] = n
            elif n != 1 and n != sizes[label]:
                what = repr(label) if isinstance(label, str) else "a dim under '...'"
                raise ShapeError(f"einsum: {what} in {equation!r} has size {sizes[label]} and "
                                 f"size {n}")


# -- steps -------------------------------------------------------------------------------------

def _needed(terms, output):
    return set(output).union(*[labels for _, labels in terms])


def _distinct(x, labels):
    """Takes the diagonal of dims with a repeated label."""
    labels = list(labels)
    for label in set(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ShapeError(f"einsum: {label!r} names dims of sizes {x.shape[first]} and "
                                 f"{x.shape[second]} of one operand")
            x = diagonal(x, 0, first, second)
            del labels[second], labels[first]
            labels.append(label)
    return x, labels


def _summed(x, labels, needed):
    """x summed over the labels that no other term and no output needs."""
    dims = tuple([i for i, label in enumerate(labels) if label not in needed])
    if not dims:
        return x, labels
    return sum(x, dims), [label for label in labels if label in needed]


def _product(x, labels, y, other, needed, output):
    """x times y, summed over their common labels that no other term and no output needs."""
    for label in [c for c in labels if c in other and c not in needed]:
        i, j = labels.index(label), other.index(label)
        if x.shape[i] != y.shape[j]:        # one of the sizes is 1: the sum is over the other's dim
            x = squeeze(x, i) if x.shape[i] == 1 else sum(x, i)
            y = squeeze(y, j) if y.shape[j] == 1 else sum(y, j)
            labels, other = labels[:i] + labels[i + 1:], other[:j] + other[j + 1:]
    both = [c for c in labels if c in other and c in needed]
    inner = [c for c in labels if c in other and c not in needed]
    mine = [c for c in labels if c not in other]
    theirs = [c for c in other if c not in labels]
    result = both + mine + theirs
    if not inner:                       # in the order of the output, so that the output is dense
        result = [c for c in output if c in result] + [c for c in result if c not in output]
        return _spread(x, labels, result) * _spread(y, other, result), result
    if x.dtype is not y.dtype and not is_enabled(x.device.type):    # autocast gives products one dtype
        raise DTypeError(f"einsum: operands must have one dtype, got {x.dtype.name} and "
                         f"{y.dtype.name}")
    x = permute(x, [labels.index(c) for c in both + mine + inner])
    y = permute(y, [other.index(c) for c in both + inner + theirs])
    b, m, n = len(both), len(mine), len(theirs)
    batch = tuple([p if q == 1 else q for p, q in zip(x.shape[:b], y.shape[:b])])
    rows, columns, depth = x.shape[b:b + m], y.shape[y.ndim - n:], x.shape[b + m:]
    if b:
        x = expand(x, (*batch, *x.shape[b:]))
        y = expand(y, (*batch, *y.shape[b:]))
        x = reshape(x, (_size(batch), _size(rows), _size(depth)))
        y = reshape(y, (_size(batch), _size(depth), _size(columns)))
        return reshape(bmm(x, y), (*batch, *rows, *columns)), result
    x = mm(reshape(x, (_size(rows), _size(depth))), reshape(y, (_size(depth), _size(columns))))
    return reshape(x, (*rows, *columns)), result


def _spread(x, labels, result):
    """x with its dims in the order of result, and a dim of size 1 for each label that x lacks."""
    x = permute(x, [labels.index(c) for c in result if c in labels])
    sizes = iter(x.shape)
    return reshape(x, [next(sizes) if c in labels else 1 for c in result])


def _size(sizes):
    n = 1
    for size in sizes:
        n *= size
    return n


def _in_order(x, labels, output):
    order = [labels.index(c) for c in output]
    return x if order == list(range(len(order))) else permute(x, order)
