"""Lists and dictionaries in arguments of nodes. They are immutable, so that the uses of nodes stay known."""
from ptcore._trees.tree import register_pytree_node

__all__ = ["immutable_dict", "immutable_list"]

_WHY = "{} in the arguments of a Node cannot be written to: make another one, and set node.args or node.kwargs"


def _refusing(base, names, text):
    def refuse(self, *args, **kwargs):
        """Raises TypeError."""
        raise TypeError(_WHY.format(text))
    return {name: refuse for name in names}


class immutable_list(list):
    """An immutable list, equal to a list of the same items.

    Examples
    --------
    >>> from ptcore.fx.immutable_collections import immutable_list
    >>> immutable_list([1, 2]) == [1, 2]
    True
    """

    locals().update(_refusing(list, ("append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort",
                                     "__delitem__", "__iadd__", "__imul__", "__setitem__"), "a list"))

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        return type(self), (tuple(self),)


class immutable_dict(dict):
    """An immutable dictionary, equal to a dictionary of the same items."""

    locals().update(_refusing(dict, ("clear", "pop", "popitem", "setdefault", "update", "__delitem__", "__ior__",
                                     "__setitem__"), "a dictionary"))

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return type(self), (tuple(self.items()),)


register_pytree_node(immutable_list, lambda node: (list(node), None), lambda children, _: immutable_list(children))
register_pytree_node(immutable_dict, lambda node: (list(node.values()), list(node)),
                     lambda children, keys: immutable_dict(zip(keys, children)))
