"""``Library``: ops defined by schemas, and functions registered for them, during its lifetime."""
import contextlib
import functools
import re
import weakref

from ptcore._device import column_of
from ptcore._ops import namespaces
from ptcore._ops.table.function_schema import parse_schema
from ptcore.library import _definition
from ptcore.library.tag import Tag, tags_of

__all__ = ["Library", "define", "fallthrough_kernel", "impl"]

_RESERVED = ("prim",)
_DEVICES = {"CPU": "cpu", "CUDA": "cuda", "HIP": "cuda", "XPU": "xpu", "MPS": "mps", "MTIA": "mtia", "HPU": "hpu",
            "XLA": "xla", "IPU": "ipu", "PrivateUse1": "privateuseone"}
_KEYS = {"": _definition.IMPLICIT, "CompositeImplicitAutograd": _definition.IMPLICIT,
         "CompositeExplicitAutograd": _definition.EXPLICIT,
         "CompositeExplicitAutogradNonFunctional": _definition.EXPLICIT, "default": _definition.EXPLICIT,
         "Meta": "meta",
         **_DEVICES}
pending = {}                        # name of an op that is not defined yet -> its registrations
_keep_alive = []


def fallthrough_kernel():
    """A placeholder for a key without a kernel."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def key_of(dispatch_key):
    """(kind, key) for a name of PyTorch's dispatch keys, or for a type of device."""
    key = dispatch_key.name if hasattr(dispatch_key, "name") else dispatch_key
    if key in _KEYS:
        return "kernel", _KEYS[key]
    for word in ("Autocast", "Autograd"):
        if key.startswith(word) and (key == word or key[len(word):] in _DEVICES):
            return word.lower(), _DEVICES.get(key[len(word):])
    if key == "Autocast":
        return "autocast", "cuda"
    try:
        column_of(key)
    except (RuntimeError, TypeError, ValueError):
        if key not in _DEVICES.values():
            raise NotImplementedError(f"impl: the dispatch key {key!r} is one of a part of PyTorch that ptcore has "
                                      f"not; there are {', '.join(k for k in _KEYS if k)}, Autograd, AutogradCPU, "
                                      "AutocastCPU and those of other devices, and types of device") from None
    return "kernel", key


def parse_namespace(qualname):
    """(namespace, name) of ``"namespace::name"``."""
    space, colons, name = qualname.partition("::")
    if not colons or not space or not name or "::" in name:
        raise ValueError(f"Expected `qualname` to be of the form \"namespace::name\", but got {qualname}. The qualname "
                         "passed to the torch.library APIs must consist of a namespace and a name, e.g. aten::sin")
    return space, name


def when_defined(name, register):
    """Calls ``register(definition)`` for an op, at once or when it is defined."""
    definition = _definition.find(name)
    if definition is not None:
        register(definition)
        return
    space = name.partition("::")[0]
    if space in namespaces.ATEN:
        raise NotImplementedError(f"{name}: ops of ptcore itself are not overridden by a Library; ops.register_kernel "
                                  "enters a kernel for one of them, ops.register_backend a type of device")
    pending.setdefault(name, []).append(register)


class Library:
    """Ops of one namespace, and functions registered for them.

    When the object is freed, its definitions and registrations are removed.

    Parameters
    ----------
    ns : str
        The namespace.
    kind : {"DEF", "FRAGMENT", "IMPL"}
        "DEF": the one library that defines a namespace; "FRAGMENT": defines ops of it beside others; "IMPL": defines
        none.
    dispatch_key : str, default: ""
        For what functions are registered unless ``impl`` says so: "CPU", "CUDA", "Meta", "Autograd",
        "CompositeExplicitAutograd" (all devices), "CompositeImplicitAutograd" (all devices, gradients by its parts;
        what "" means), "AutocastCPU".

    Raises
    ------
    ValueError
        For another kind, or a reserved namespace.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.library import Library
    >>> lib = Library("doc_library", "DEF")
    >>> lib.define("twice(Tensor x) -> Tensor")
    'twice'
    >>> lib.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
    >>> ptcore.ops.doc_library.twice(ptcore.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _RESERVED and kind != "IMPL":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF" and ns in _defined:
            raise RuntimeError(f"Only a single Library can be of kind DEF for the namespace {ns}: there is one "
                               "already; use FRAGMENT")
        self.ns, self.kind, self.dispatch_key, self.m = ns, kind, dispatch_key, True
        self._undo = []                 # functions that undo registrations, the last one first
        if kind == "DEF":
            _defined.add(ns)
            self._undo.append(lambda: _defined.discard(ns))
        self._finalizer = weakref.finalize(self, _take_back, self._undo)

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema, alias_analysis="", *, tags=()):
        """Defines an op.

        Parameters
        ----------
        schema : str
            ``"name(Tensor x, float by=1.0) -> Tensor"``; ``Tensor(a!)`` is written to.
        alias_analysis : {"", "FROM_SCHEMA", "CONSERVATIVE"}
        tags : Tag or sequence of Tag

        Returns
        -------
        str
            The name.

        Raises
        ------
        RuntimeError
            If the schema is none, or the op is defined already.
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        self._defines(schema, tags_of(tags), False)
        return schema.split("(")[0].strip()

    def _defines(self, text, tags, demands_formula):
        self._alive()
        if self.kind == "IMPL":
            raise RuntimeError(f"{self!r} is of kind IMPL, which defines no ops")
        schema = parse_schema(text)
        if not schema.name:
            raise RuntimeError(f"define: the schema must begin with a name, got {text!r}")
        space, colons, _ = schema.name.partition("::")
        if colons and space != self.ns:
            raise RuntimeError(f"define: {schema.name} is of another namespace than {self.ns}")
        if not colons:
            schema = _definition.with_namespace(schema, self.ns)
        check_tags(schema, tags)
        made = _definition.define(schema, tags, demands_formula)
        self._undo.append(functools.partial(_definition.remove, made))
        for register in pending.pop(made.qualname, ()):
            register(made)
        return made

    def _name(self, op_name, api):
        """``"namespace::name"`` of an op that a caller names."""
        if not isinstance(op_name, str):
            name = getattr(op_name, "_name", None)
            if not isinstance(name, str):
                raise RuntimeError(f"{api} should be passed either a name or an OpOverload object as the first "
                                   f"argument, got {type(op_name)}")
            op_name = name
        space, colons, _ = op_name.partition("::")
        if colons and space != self.ns:
            raise RuntimeError(f"{api}: {op_name} is of another namespace than {self.ns}")
        return op_name if colons else f"{self.ns}::{op_name}"

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=True):
        """Registers a function for an op, which may be defined later.

        Parameters
        ----------
        op_name : str or OpFunction
            With the overload, if it is not the default one.
        fn : callable
        dispatch_key : str, default: ""
            See the class; "" means the library's own key.
        with_keyset : bool, default: False
            Whether the function takes the keys of the call first (here None).
        allow_override : bool, default: True
            Whether there may be a function for the key already.

        Raises
        ------
        RuntimeError
            If there is one and it may not be overridden.
        NotImplementedError
            For a key of a part of PyTorch that ptcore has not, or an op of ptcore itself.
        """
        self._alive()
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        name = self._name(op_name, "impl")
        what, key = key_of(dispatch_key or self.dispatch_key)
        undo = self._undo

        def register(definition):
            if what == "autograd":
                if fn is not fallthrough_kernel:
                    undo.append(_set(definition, "autograd", fn, allow_override))
            elif what == "autocast":
                undo.append(_put(definition.autocast, key or "cuda", fn, allow_override, definition))
            elif key == "meta":
                if _definition.IMPLICIT in definition.kernels:
                    raise RuntimeError(f"We should not register a meta kernel directly to the operator '{name}', "
                                       "because it has a CompositeImplicitAutograd kernel; it is decomposed instead")
                undo.append(_set(definition, "fake", fn, allow_override))
            else:
                undo.append(_put(definition.kernels, key, fn, allow_override, definition))
            if with_keyset:
                definition.with_keyset.add(fn)
        when_defined(name, register)

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=True):
        """Registers the fake of an op."""
        self.impl(op_name, fn, "Meta", allow_override=allow_override)

    def _sets(self, name, field, value):
        """Registers a part of an op that has no dispatch key."""
        when_defined(name, lambda definition: self._undo.append(_set(definition, field, value, True)))

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        """Refused: no function can handle all ops of a key.

        Raises
        ------
        NotImplementedError
        """
        raise NotImplementedError("Library.fallback: ptcore has no fallbacks for keys; overrides.TorchFunctionMode "
                                  "sees all calls of a thread")

    def _alive(self):
        if self.m is None:
            raise AssertionError("Library object has been destroyed")

    def _destroy(self):
        self.m = None
        _take_back(self._undo)


_defined = set()                    # namespaces with a library of kind DEF


def _take_back(undo):
    while undo:
        undo.pop()()


def _set(definition, field, value, allow_override):
    if not allow_override and getattr(definition, field) is not None:
        raise RuntimeError(f"{definition.qualname} has a function for this already ({field})")
    setattr(definition, field, value)

    def undo():
        if getattr(definition, field) is value:
            setattr(definition, field, None)
    return undo


def _put(table, key, value, allow_override, definition):
    if not allow_override and key in table:
        raise RuntimeError("This is not allowed since there's already a kernel registered from python overriding "
                           f"{definition.qualname}'s behavior for {key}")
    table[key] = value

    def undo():
        if table.get(key) is value:
            del table[key]
    return undo


def check_tags(schema, tags):
    """Raises if a schema contradicts ``Tag.inplace`` or ``Tag.out``."""
    written = [a for a in schema.arguments if a.is_write]
    if Tag.out in tags:
        aliases = [a.alias_info.before_set for a in written]
        if not written or any(not a.kwarg_only or str(a.type) != "Tensor" for a in written) or aliases != [
                r.alias_info.before_set if r.is_write else None for r in schema.returns]:
            raise ValueError("Schema tagged with torch.Tag.out requires all mutable arguments to be keyword-only "
                             f"Tensors, and to return them all in their order. Got: {schema}")
    if Tag.inplace in tags:
        first = schema.arguments[0] if schema.arguments else None
        if written != [first] or first.kwarg_only or str(first.type) != "Tensor" or len(schema.returns) != 1 or not (
                schema.returns[0].is_write
                and schema.returns[0].alias_info.before_set == first.alias_info.before_set):
            raise ValueError("Schema tagged with torch.Tag.inplace must only mutate its first positional argument, a "
                             f"Tensor, and return it (Tensor(a!)). Got: {schema}")


@contextlib.contextmanager
def _scoped_library(*args, **kwargs):
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


def library_for(space, lib):
    """The library for registrations by functions of this module: the caller's, otherwise one that lives on."""
    if lib is None:
        lib = Library(space, "FRAGMENT")
        _keep_alive.append(lib)
    return lib


def define(qualname, schema, *, lib=None, tags=()):
    """Defines an op.

    Parameters
    ----------
    qualname : str
        ``"namespace::name"``.
    schema : str
        Without the name: ``"(Tensor x) -> Tensor"``.
    lib : Library, optional
        The op is there as long as it; without one, for good.
    tags : Tag or sequence of Tag

    Raises
    ------
    ValueError
        If the name has no namespace, or the schema a name.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore import library
    >>> library.define("doc_define::plus_one", "(Tensor x) -> Tensor")
    >>> library.impl("doc_define::plus_one", "cpu", lambda x: x + 1)
    >>> ptcore.ops.doc_define.plus_one(ptcore.zeros(2))
    tensor([1., 1.])
    """
    if isinstance(qualname, Library):           # the older form: a decorator
        def wrap(f):
            qualname.impl(qualname.define(schema), f)
            return f
        return wrap
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    space, name = parse_namespace(qualname)
    if not re.fullmatch(r"\(.*\) -> .*", schema):
        raise ValueError('define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but '
                         f'got "{schema}"')
    library_for(space, lib).define(name + schema, tags=tags)
    return None


def impl(qualname, types, func=None, *, lib=None):
    """Registers a kernel of an op for types of devices; without a function, returns a decorator.

    Parameters
    ----------
    qualname : str
        ``"namespace::name"``.
    types : str or sequence of str
        "cpu", "cuda", ..., or "default" for all; names of dispatch keys are taken too.
    func : callable, optional
    lib : Library, optional
        As in :func:`define`.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore import library
    >>> library.define("doc_impl::half", "(Tensor x) -> Tensor")
    >>> @library.impl("doc_impl::half", "default")
    ... def half(x):
    ...     return x / 2
    >>> ptcore.ops.doc_impl.half(ptcore.ones(2))
    tensor([0.5000, 0.5000])
    """
    if isinstance(qualname, Library):           # the older form: impl(lib, name, dispatch_key="")
        def wrap(f):
            qualname.impl(types, f, func or "")
            return f
        return wrap
    keys = (types,) if isinstance(types, str) else tuple(types)

    def register(f):
        library = library_for(parse_namespace(qualname)[0], lib)
        for key in keys:
            library.impl(qualname, f, key)
    return register if func is None else register(func)
