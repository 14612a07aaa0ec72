"""``infer_schema``: makes the schema of a function from its annotations."""
import collections.abc
import inspect
import types as python_types
import typing

import ptcore
from ptcore._device import device
from ptcore._dtype import dtype
from ptcore._tensor import Tensor
from ptcore.library.tag import Tag, tags_of

__all__ = ["infer_schema"]

Number = typing.Union[int, float, bool]                 # noqa: UP007  torch.types.Number


def _known(cls):
    """The schema's word for a class, and its allowed containers: lists, lists with None, lists or None.
    """
    return {Tensor: ("Tensor", True, True, False), int: ("SymInt", True, False, True),
            float: ("float", True, False, True), bool: ("bool", True, False, True), str: ("str", False, False, False),
            dtype: ("ScalarType", False, False, False), device: ("Device", False, False, False)}.get(cls)


def _is_number(annotation):
    return typing.get_origin(annotation) in _UNIONS and set(typing.get_args(annotation)) == {int, float, bool}


_UNIONS = (typing.Union, python_types.UnionType)
_LISTS = (list, collections.abc.Sequence)


def _without_none(annotation):
    """The other type of an optional annotation, or None if it is not optional."""
    if typing.get_origin(annotation) not in _UNIONS:
        return None
    args = typing.get_args(annotation)
    if type(None) not in args:
        return None
    rest = tuple([a for a in args if a is not type(None)])
    return rest[0] if len(rest) == 1 else typing.Union[rest]    # noqa: UP007


def _word(annotation):
    """The type of a parameter in the notation of schemas, or None."""
    if _is_number(annotation):
        return "Scalar"
    try:
        known = _known(annotation)
    except TypeError:
        known = None
    if known is not None:
        return known[0]
    inner = _without_none(annotation)
    if inner is not None:
        if typing.get_origin(inner) in _LISTS:
            item = typing.get_args(inner)
            known = _known(item[0]) if item else None
            return f"{known[0]}[]?" if known is not None and known[3] else None
        word = _word(inner)
        return None if word is None else f"{word}?"
    if typing.get_origin(annotation) in _LISTS and typing.get_args(annotation):
        (item,) = typing.get_args(annotation)
        if _is_number(item):
            return "Scalar[]"
        optional = _without_none(item)
        known = _known(item if optional is None else optional)
        if known is None or not known[1 if optional is None else 2]:
            return None
        return f"{known[0]}{'' if optional is None else '?'}[]"
    return None


_SUPPORTED = ("Tensor, int, float, bool, str, Number, dtype, device; Optional of these; list or Sequence of Tensor, "
              "Optional[Tensor], int, float, bool, Number; Optional list of int, float, bool")


def _returned(annotation, error):
    if annotation is None or annotation is type(None):
        return "()"
    if annotation is inspect.Parameter.empty:
        error("No return type annotation was provided. Please add one.")

    def single(a):
        word = _word(a)
        if word not in ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar"):
            error(f"Return has unsupported type {annotation}. The valid types are: Tensor, list[Tensor], int, float, "
                  "bool, Number, and tuples of them.")
        return word
    if typing.get_origin(annotation) is not tuple:
        return single(annotation)
    words = ", ".join(map(single, typing.get_args(annotation)))
    return f"(({words}))" if len(typing.get_args(annotation)) == 1 else f"({words})"


def _default(value, error):
    if value is None or isinstance(value, (int, float, bool)):
        return str(value)
    if isinstance(value, (str, device)):
        return f'"{value}"'
    if isinstance(value, dtype):
        return value.name
    return error(f"a parameter has an unsupported default value type {type(value)}.")


def infer_schema(prototype_function, /, *, mutates_args, op_name=None, tags=()):
    """The schema of a function, from the annotations of its parameters and its result.

    Parameters
    ----------
    prototype_function : callable
    mutates_args : iterable of str or "unknown"
        The names of the arguments that the function writes to; "unknown": it may write to all tensors.
    op_name : str, optional
        Stands in front.
    tags : Tag or sequence of Tag
        ``Tag.inplace``: the function writes to its first tensor and returns it. ``Tag.out``: it writes to tensors that
        are given by keyword and returns them.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If a parameter has no annotation, or one of a type that no schema has.

    Examples
    --------
    >>> from ptcore import Tensor
    >>> from ptcore.library import infer_schema
    >>> def scale(x: Tensor, by: float = 2.0) -> Tensor:
    ...     return x * by
    >>> infer_schema(scale, mutates_args=(), op_name="scale")
    'scale(Tensor x, float by=2.0) -> Tensor'
    """
    signature = inspect.signature(prototype_function)

    def error(what):
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    space = {"Tensor": Tensor, "device": device, "dtype": dtype, "Optional": typing.Optional, "List": list,
             "Sequence": typing.Sequence, "Union": typing.Union, "types": ptcore.types,
             **getattr(prototype_function, "__globals__", {})}

    def resolved(annotation):
        if not isinstance(annotation, str):
            return annotation
        try:
            return eval(annotation, space)
        except Exception as e:
            error(f"Unsupported type annotation {annotation}. It is not a type. ({type(e).__name__}: {e}). If you are "
                  "using 'from __future__ import annotations', all types that annotations name must be importable at "
                  "module scope.")

    tags = tags_of(tags)
    inplace, out = Tag.inplace in tags, Tag.out in tags
    if not isinstance(mutates_args, str):
        mutates_args = tuple(mutates_args)
    elif mutates_args != "unknown":
        raise ValueError("mutates_args must either be a sequence of the names of the arguments that are mutated or the "
                         f"string 'unknown', got {mutates_args!r}")
    parts, written, only = [], [], False
    for k, (name, p) in enumerate(signature.parameters.items()):
        if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            error("We do not support positional-only args, varargs, or varkwargs.")
        if p.kind == p.KEYWORD_ONLY and not only:
            parts.append("*")
            only = True
        if p.annotation is p.empty:
            error(f"Parameter {name} must have a type annotation.")
        annotation = resolved(p.annotation)
        word = _word(annotation)
        if word is None and typing.get_origin(annotation) is tuple:
            error(f"Parameter {name} has unsupported type {p.annotation}. We do not support Tuple inputs in schema. As "
                  "a workaround, please try to use List instead.")
        if word is None:
            error(f"Parameter {name} has unsupported type {p.annotation}. The valid types are: {_SUPPORTED}.")
        if word.startswith("Tensor") if mutates_args == "unknown" else name in mutates_args:
            if not word.startswith("Tensor"):
                error(f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated")
            if out and (p.kind != p.KEYWORD_ONLY or word != "Tensor"):
                error("torch.Tag.out only supports mutable keyword-only Tensor arguments.")
            word = f"Tensor(a{k}!){word[len('Tensor'):]}"
            written.append((name, f"a{k}"))
        parts.append(f"{word} {name}" + ("" if p.default is p.empty else f"={_default(p.default, error)}"))
    unknown = set() if mutates_args == "unknown" else set(mutates_args) - set(signature.parameters)
    if unknown:
        error(f"{unknown} in mutates_args were not found in the custom op's signature. mutates_args should contain the "
              "names of all args that the custom op mutates, or just the string 'unknown' if you don't know.")
    annotation = resolved(signature.return_annotation)
    result = _returned(annotation, error)
    if inplace:
        if len(written) != 1 or written[0][0] != next(iter(signature.parameters), None) or result != "Tensor":
            error("torch.Tag.inplace requires the first positional argument to be a Tensor, the one in mutates_args, "
                  "and the return annotation to be Tensor.")
        result = f"Tensor({written[0][1]}!)"
    if out:
        wanted = "Tensor" if len(written) == 1 else f"({', '.join(['Tensor'] * len(written))})"
        if not written or result != wanted:
            error("torch.Tag.out requires the return annotation to match the mutable keyword-only Tensor arguments "
                  f"{tuple([n for n, _ in written])}.")
        parts_out = ", ".join([f"Tensor({a}!)" for _, a in written])
        result = parts_out if len(written) == 1 else f"({parts_out})"
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"
