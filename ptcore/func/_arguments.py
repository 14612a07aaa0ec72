"""Arguments of transformations: ``argnums``, and checks of inputs and outputs."""
from ptcore._errors import at_users_line
from ptcore._tensor import Tensor
from ptcore._trees.tree import tree_leaves


def _place(argnum, count):
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum % count


@at_users_line
def places(argnums, count):
    """The places that ``argnums`` names among ``count`` arguments: an int, or a tuple of them."""
    if isinstance(argnums, int):
        return _place(argnums, count)
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    found = tuple([_place(n, count) for n in argnums])
    if len(set(found)) < len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


def chosen(args, argnums, as_tuple=True):
    """The arguments that ``argnums`` names; a single one is returned by itself unless ``as_tuple``."""
    found = places(argnums, len(args))
    if isinstance(found, int):
        return (args[found],) if as_tuple else args[found]
    return tuple([args[n] for n in found])


def replaced(args, new, argnums):
    """All arguments, with ``new`` in the places that ``argnums`` names."""
    found = places(argnums, len(args))
    if isinstance(found, int):
        found, new = (found,), (new,)
    result = list(args)
    for n, x in zip(found, new):
        result[n] = x
    return tuple(result)


@at_users_line
def refuse_complex(api, tree, is_input):
    of = "inputs" if is_input else "outputs"
    for k, x in enumerate(tree_leaves(tree)):
        if isinstance(x, Tensor) and x.dtype.is_complex:
            raise RuntimeError(f"{api}: Expected all {of} to be real but received complex tensor at flattened input "
                               f"idx: {k}")


@at_users_line
def check_outputs(api, flat):
    """Refuses a function that returns nothing or objects other than tensors."""
    if not flat or (len(flat) == 1 and flat[0] is None):
        raise RuntimeError(f"{api}: Expected f to be a function that has non-empty output (got output = {flat})")
    for y in flat:
        if not isinstance(y, Tensor):
            raise RuntimeError(f"{api}: expected f(*primals) to return only tensors, got unsupported type {type(y)}")


@at_users_line
def pair(api, output):
    """The output and the other object that a function returns with ``has_aux``."""
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{api}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


@at_users_line
def check_floating(y):
    if y.dtype.kind not in "fc":
        raise RuntimeError("vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with "
                           f"dtype {y.dtype}")


@at_users_line
def check_scalar(output):
    api = "grad_and_value(f)(*args)"
    if not isinstance(output, Tensor):
        raise RuntimeError(f"{api}: Expected f(*args) to return a Tensor, got {type(output)}")
    if output.ndim:
        raise RuntimeError(f"{api}: Expected f(*args) to return a scalar Tensor, got tensor with {output.ndim} dims. "
                           "Maybe you wanted to use the vjp or jacrev APIs instead?")

