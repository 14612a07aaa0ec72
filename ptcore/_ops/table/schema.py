"""Row constructors: one op is one row of plain data, declared in ``_ops/<topic>/rows.py``.

A row is read twice: at build time by ``_build/generate_ops.py`` (loops, typed functions,
stubs, pages), at run time by autograd's slow paths, the compiler, tests and people. This
file, the rows and ``expr`` import only the standard library.

A signature is Python's, with these annotations (an unannotated parameter without a default
is a Tensor; a default of float, int or bool implies its type):

=========== ======================================================== ======
annotation  meaning                                                   letter
=========== ======================================================== ======
Tensor      takes part in dtype promotion                             T
OptTensor   a Tensor or None                                          O
Index       an integer or bool tensor that keeps its dtype            I
OptIndex    an Index or None                                          J
Tensors     a non-empty sequence of Tensors                           L
Int, Float, Bool, Scalar                                              i f b s
OptInt, OptFloat                                                      j g
Dim         a dim of the first tensor                                 d
OptDim      a dim of the first tensor or None                         e
NewDim      a dim of the result, which has one more                   n
Dims        one or several dims; None and () mean all                 D
DimList     one or several dims; () means none                        R
Sizes       a shape, or numbers for its dims: at most 64 ints         z
Ints        ints, as many as there are                                Z
DType       a dtype or None                                           t
"a|b|c"     one of these words                                        w
Obj         anything else (a Generator); kernels do not see it        o
=========== ======================================================== ======
"""
import ast
import sys

from ptcore._ops.table import expr, stored

BOOL = ("bool",)
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
SIGNED = ("int8", "int16", "int32", "int64")
INTEGRAL = UNSIGNED + SIGNED
HALF = ("float16", "bfloat16")
REAL = HALF + ("float32", "float64")
COMPLEX = ("complex64", "complex128")
FLOATING = REAL + COMPLEX
NUMERIC = INTEGRAL + FLOATING
ORDERED = BOOL + INTEGRAL + REAL
ALL = BOOL + NUMERIC

DTYPES = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
          "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
          "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "complex32")

LETTERS = {"Tensor": "T", "OptTensor": "O", "Index": "I", "OptIndex": "J", "Tensors": "L",
           "Int": "i", "Float": "f", "Bool": "b", "Scalar": "s", "OptInt": "j", "OptFloat": "g",
           "Dim": "d", "OptDim": "e", "NewDim": "n", "Dims": "D",
           "DimList": "R", "Sizes": "z", "Ints": "Z", "DType": "t",
           "Obj": "o"}
TENSOR_LETTERS = "TOIJL"
WORD_LETTER = "w"
AUTOCAST = (None, "low", "high", "widest", "off", "refused")
BATCH = ("broadcast", "shift", "whole", "sizes", "permute", "squeeze", "strided", "product", "index",
         "rows", "merge", "stack", "convolution", "each", "decompose", "constant", "refused:")
JVP = ("partial", "linear", "bilinear", "reduced", "rule", "decompose", None)
KINDS = ("elementwise", "linear", "bilinear", "structured", "view", "composite",
         "nondifferentiable", "custom")


class Arg:
    """One parameter of a signature."""

    __slots__ = ("choices", "default", "keyword_only", "letter", "name", "required")

    def __init__(self, name, letter, default, required, keyword_only, choices=None):
        self.name, self.letter, self.default = name, letter, default
        self.required, self.keyword_only, self.choices = required, keyword_only, choices

    @property
    def is_tensor(self):
        return self.letter in TENSOR_LETTERS


class Row:
    """One op. See the constructors below for the columns of each kind. Every row has

    ``batch``: how the op runs on tensors with a hidden first dim (batching.py). "broadcast"
    aligns dims; "shift" moves the dims that parameters name by one ("shift a b": if a tensor other
    than a and b has a hidden dim, the op decomposes); "whole" is for ops that depend on no dim; "sizes"
    takes a shape; "strided" is ``as_strided``; "product ik,kj->ij" is an einsum; "rows" searches
    sorted rows; "merge" makes the hidden dim part of the first one, "stack" the first of the leading dims that are a
    batch; "convolution" merges it, or makes samples groups of channels; "each" runs one sample after another;
    "decompose" runs the body of a composite or the function of <topic>/decompositions.py; "constant" takes no tensor;
    "refused: why" raises.

    ``autocast``: "low" runs in autocast's lower precision, "high" in float32, "widest" in the
    widest dtype among its tensors, None in the given dtypes; "off" is None for an op that also keeps its parts from
    casts; "refused" raises if a tensor would be cast.
    A pair has the rule for the CPU and the rule for accelerators.

    ``jvp``, forward mode (autograd/_forward.py): "partial" sums the partials times tangents; "linear"
    applies the op to the tangents, "bilinear" to one at a time; "reduced" sums the vjp of ones
    times the tangent; a list of texts, one for each tensor, with ``t`` its tangent; "rule"
    names the function that ``@jvp(name)`` marks; "decompose" as for batch; None: no tangent.

    ``called``: the name in messages for a row that is not public: the name of the function that
    the user called.

    ``numpy``: the function that NumPy's function of this name corresponds to. NumPy calls the method with
    ``axis`` and an explicit ``out``, which no method of PyTorch takes.

    ``method``: whether the function is a method of Tensor, or the name of the method if it is not that of the row.

    ``inplace_argument``: the function takes ``inplace=False`` after its parameters, as functions of
    nn.functional do.

    ``out_argument``: whether the function takes ``out=``; "inside" if the body of a composite handles ``out`` itself,
    and returns ``out`` if it has written there.

    ``out_dtype``: "exact" if ``out=`` must have the result's dtype; "cast" if it may have any dtype that the result can
    be cast to; "cast one" if that holds for a single result, but several must match; "own" if the op computes in out='s
    dtype unless the call names a dtype; "any" if it may have any dtype. PyTorch's functions differ in this;
    elementwise rows are "cast", others "exact", unless the row has another value.

    ``inplace``: whether there is a form that ends in "_"; "inside" if the bodies of composites have a function of
    that name, which may return None to leave the call to the plain form.

    ``sparse``: the name of the kernel for tensors that are not strided; without a kernel these tensors are refused.

    ``mutates``: the positions of the arguments that the op writes to; rows give their names. In a structured op with
    several results they are also outputs of the kernel, after its results (call/run.pyx); they are optional and keep
    their dtype. An interpreter sees the op without them, then the writes as ops: the function in ``WRITES`` of
    <topic>/decompositions.py, which gets the results and the op's arguments.

    ``file``: the module of the topic that has a composite's body.

    ``spells``: for a composite that is another row with different parameters (see ``spelling``): the name of that row
    and the expressions for its parameters.

    ``definition``: for a custom op (``ptcore.library``), the object with its functions. Graphs keep its calls whole.

    ``wide``: whether the body of a composite gets half types as float32, and its results are rounded: it is made of
    several ops, each of which would round, or overflow where the result does not.

    ``stored``: which types of PT_KIND_STORED (kernel.h) the row takes beside ``types``; table/stored.py has them.

    ``node``: the result of ``grad_fn.name()``, if it is not of the form ``MulBackward0`` for ``mul``.
    """

    def __init__(self, kind, signature, **columns):
        self.kind = kind
        self.signature = signature
        self.name, self.args = columns.pop("parsed", None) or parse_signature(signature)
        self.family = None                      # the topic; set by declare()
        self.types = columns.pop("types", ALL)
        self.stored = columns.pop("stored", stored.types_of(self.name))
        self.formula = columns.pop("formula", None)
        self.partial = columns.pop("partial", None)
        self.exact = columns.pop("exact", None)
        self.vjp = columns.pop("vjp", None)
        self.jvp = columns.pop("jvp", self.default_jvp())
        self.promote = columns.pop("promote", "default")
        self.out = columns.pop("out", "same")
        self.kernel = columns.pop("kernel", None)
        self.public = columns.pop("public", None)
        self.method = columns.pop("method", True)
        self.inplace = columns.pop("inplace", kind == "elementwise")
        self.out_argument = columns.pop("out_argument", kind not in ("view", "composite", "custom"))
        self.out_dtype = columns.pop("out_dtype", "cast" if kind == "elementwise" else "exact")
        self.select = columns.pop("select", None)
        self.absent = columns.pop("absent", None)
        self.numpy = columns.pop("numpy", None)
        self.integers = columns.pop("integers", "any")
        self.selects = columns.pop("selects", None)
        self.hint = columns.pop("hint", None)
        self.sparse = columns.pop("sparse", None)
        self.scalar_loops = columns.pop("scalar_loops", False)
        self.alias = columns.pop("alias", ())
        self.fields = columns.pop("fields", None)
        self.varargs = columns.pop("varargs", None)
        self.random = columns.pop("random", False)
        self.layout = columns.pop("layout", "any")
        self.keeps = columns.pop("keeps", None)
        self.prefill = columns.pop("prefill", False)
        self.updates = columns.pop("updates", False)
        self.batch = columns.pop("batch", self.default_batch())
        self.autocast = columns.pop("autocast", None)
        self.cost = columns.pop("cost", 1)
        self.sample = columns.pop("sample", None)
        self.reference = columns.pop("reference", None)
        self.doc = columns.pop("doc", None)
        self.returns = columns.pop("returns", None)     # the type of the result, if it is not Tensor(s)
        self.internal = columns.pop("internal", False)
        self.inplace_argument = columns.pop("inplace_argument", False)
        self.node = columns.pop("node", None)
        self.called = columns.pop("called", None)
        self.mutates = self.places(columns.pop("mutates", ()))
        self.file = columns.pop("file", "bodies")
        self.spells = columns.pop("spells", None)
        self.definition = columns.pop("definition", None)
        self.qualname = columns.pop("qualname", self.name)
        self.wide = columns.pop("wide", False)
        if columns:
            raise TypeError(f"{self.name}: unknown columns {sorted(columns)}")
        self.check()

    def places(self, arguments):
        """The positions of arguments that are given by name or by position."""
        names = [a.name for a in self.args]
        return tuple([names.index(a) if isinstance(a, str) else a for a in arguments])

    @property
    def method_name(self):
        """The name as a method of Tensor."""
        return self.method if isinstance(self.method, str) else self.name

    @property
    def tensors(self):
        return [a for a in self.args if a.is_tensor]

    @property
    def params(self):
        return [a for a in self.args if not a.is_tensor]

    @property
    def letters(self):
        return "".join(a.letter for a in self.args)

    def default_jvp(self):
        if self.kind == "elementwise":
            return "partial" if self.partial else None
        return {"linear": "linear", "view": "linear", "bilinear": "bilinear",
                "composite": "decompose"}.get(self.kind)

    def default_batch(self):
        if self.kind in ("elementwise", "composite", "custom"):
            return "broadcast" if self.kind == "elementwise" else "decompose"
        if self.random:
            return "refused: it draws random numbers, and whether samples share them is not said"
        if self.kind == "nondifferentiable" and not self.tensors:
            return "constant"
        return "shift"

    def autocast_on(self, device_type):
        """The autocast rule for tensors of a device type."""
        if not isinstance(self.autocast, tuple):
            return self.autocast
        return self.autocast[device_type != "cpu"]

    def check(self):
        """Raises with the row's name if columns contradict each other."""
        if self.kind not in KINDS:
            raise ValueError(f"{self.name}: kind must be one of {KINDS}, got {self.kind!r}")
        if self.kind == "elementwise" and self.formula is None:
            raise ValueError(f"{self.name}: an elementwise row needs a formula")
        if self.partial is not None and len(self.partial) != len(self.tensors):
            raise ValueError(f"{self.name}: one partial for each of {len(self.tensors)} tensors, "
                             f"got {len(self.partial)}")
        if self.autocast_on("cpu") not in AUTOCAST or self.autocast_on("cuda") not in AUTOCAST:
            raise ValueError(f"{self.name}: autocast must be one of {AUTOCAST}, or a pair of them, got "
                             f"{self.autocast!r}")
        if not callable(self.batch) and self.batch.partition(" ")[0] not in BATCH:
            raise ValueError(f"{self.name}: batch must begin with one of {BATCH}, got "
                             f"{self.batch!r}")
        if isinstance(self.jvp, (list, tuple)):
            if len(self.jvp) != len(self.tensors):
                raise ValueError(f"{self.name}: one jvp text for each of {len(self.tensors)} "
                                 f"tensors, got {len(self.jvp)}")
        elif not callable(self.jvp) and self.jvp not in JVP:
            raise ValueError(f"{self.name}: jvp must be texts or one of {JVP}, got {self.jvp!r}")
        if self.kind == "structured" and self.mutates and (
                self.out_argument or not self.fields or any(self.args[k].letter != "J" for k in self.mutates)):
            raise ValueError(f"{self.name}: what a structured row mutates must be OptIndex, beside several results "
                             "that no out= takes")
        if self.called is None:
            self.called = self.name
        if self.public is None:
            self.public = [] if self.internal else [self.name]

    def __repr__(self):
        return f"<{self.kind} {self.signature}>"


def parse_signature(text):
    """(name, [Arg]) from ``"softplus(input, beta=1.0)"``."""
    node = ast.parse(f"def {text}: pass").body[0]
    spec = node.args
    positional = spec.posonlyargs + spec.args
    defaults = [None] * (len(positional) - len(spec.defaults)) + list(spec.defaults)
    args = [_arg(a, d, False) for a, d in zip(positional, defaults)]
    args += [_arg(a, d, True) for a, d in zip(spec.kwonlyargs, spec.kw_defaults)]
    return node.name, args


def _arg(node, default, keyword_only):
    required = default is None
    value = None if required else ast.literal_eval(default)
    choices = None
    if node.annotation is None:
        letter = ("T" if required else {bool: "b", int: "i", float: "f"}[type(value)])
    elif isinstance(node.annotation, ast.Constant):
        letter, choices = WORD_LETTER, tuple(node.annotation.value.split("|"))
    else:
        letter = LETTERS[node.annotation.id]
    return Arg(node.arg, letter, value, required, keyword_only, choices)


def shape_rule(out):
    """(name, arguments) of the shape rule in a row's ``out``.

    ``"gather"`` names a rule of ``_sizes/rules``; its arguments are those of the row with its parameters' names.
    ``"as_input(g)"`` gives arguments of other names, or a dtype; the result then has their list, otherwise None.
    """
    node = ast.parse(out, mode="eval").body
    if isinstance(node, ast.Name):
        return node.id, None
    return node.func.id, [a.id for a in node.args]


def declare(kind, signature, **columns):
    """A row of the topic whose ``rows.py`` calls one of the constructors below. The module of that file holds the row:
    another thread may read the table at the same time, and anybody may have imported the file before.
    """
    row = Row(kind, signature, **columns)
    caller = sys._getframe(1)
    while caller.f_globals is globals():
        caller = caller.f_back
    row.family = caller.f_globals["__name__"].split(".")[-2]        # ptcore._ops.<topic>.rows
    caller.f_globals.setdefault("DECLARED", []).append(row)
    return row


def elementwise(signature, **columns):
    """One formula applied to each element after broadcasting.

    Columns: ``types`` with loops, ``formula`` (x, y, z: the tensors in order; parameters by
    name), ``partial`` (one text per tensor, None: no gradient), ``exact`` (of a function of one tensor: the partial in
    ``x`` for real numbers, where that in ``out`` loses digits because ``out`` has none left; the rule uses it if it has
    the operand: see ``is_kept`` in call.pxd), ``promote`` ("default",
    "float": integers become the default float), ``out`` ("same", "bool", "real"),
    ``integers`` (the allowed values of the last operand for integers: "any", "nonzero" for divisors,
    "nonnegative" for exponents given as numbers), ``selects`` ("one": each element of the result is an element of an
    operand, so that a number must fit the dtype; "second": of the second one), ``hint`` (advice for bool tensors, which
    the op refuses),
    ``scalar_loops`` (separate loops for a Python scalar), ``select`` ({parameter: {value: op}}, or
    {parameter: op} for the op of every value but the default, which gets the parameter too; "methods.f" is
    a function of that module), ``absent`` (parameters, and the function of methods.pyx that is called with the first
    argument if none of them is given).
    """
    return declare("elementwise", signature, **columns)


def structured(signature, **columns):
    """An op with a kernel by name, a shape rule and vjp texts or functions.

    Columns: ``out`` (the shape rule: see ``shape_rule``), ``kernel`` (its name; ``"file:name"`` is registered when the
    topic's module ``file`` is imported, at the op's first call), ``vjp`` (a text for each tensor; absent: the function
    marked by ``@vjp(name)`` in autograd/rules/), ``fields`` (names of several outputs),
    ``prefill`` (the output starts as a copy of the first input), ``updates`` (the kernel may be
    given its first input as its output, and changes it in place), ``layout`` ("contiguous":
    the kernel requires row-major inputs), ``keeps`` ("channels_last": if an input has the channels-last memory format
    and as many dims as the result, the call runs in it: the CPU kernel writes results in it, and gets such inputs dense
    in it where ``layout`` is "contiguous"; what kernels of other devices write is copied; "layout": results get the
    strides of the first input, if they have its sizes; the kernel may write otherwise), ``select`` ({parameter:
    function of methods.pyx}: called with the
    tensors and any value except the default).
    """
    return declare("structured", signature, **columns)


def linear(signature, **columns):
    """A structured op that is linear in its first tensor: its JVP is the op itself."""
    return declare("linear", signature, **columns)


def bilinear(signature, **columns):
    """A structured op that is linear in each of two tensors: vjp holds the two transposes."""
    return declare("bilinear", signature, **columns)


def view(signature, **columns):
    """A window of the input's memory, made by the function of the same name in views.pyx."""
    return declare("view", signature, **columns)


def composite(signature, **columns):
    """A Python function of other ops in the topic's bodies.py; derivatives are inherited."""
    return declare("composite", signature, **columns)


def made(signature, reference, text, example, result, **columns):
    """A composite row whose docstring is a text and an example."""
    composite(signature, reference=reference, doc=f"""{text}

>>> import ptcore
>>> {example}
{result}
""", **columns)


def spelling(base, signature, where="", columns=(), **given):
    """A function with the name and parameters of ``signature`` that calls the function of the row ``base``.

    Parameters of the same name are passed on, unless ``given`` has an expression of the parameters for them; others
    exist only for PyTorch's programs. A reduction that is an int stands for a word. The build writes the body
    (``ptcore/_names/spellings.py``).
    """
    node, (name, args) = ast.parse(f"def {signature}: pass").body[0], parse_signature(signature)
    columns = dict(columns)
    method = columns.setdefault("method", False)
    own = f"{name}inplace" if name.endswith("_") else name if where or method else f"{name}__top"
    home = "" if method else "nn.functional."
    return declare("composite", signature, parsed=(own, args), called=name, spells=(base, given),
                public=[] if method else [f"{where}.{name}" if where else name],
                returns=ast.unparse(node.returns) if node.returns else None,
                doc=f"See :func:`ptcore.{home}{base.removesuffix('_function')}`.", **columns)


def draw(signature, text, example, result, **columns):
    """``made`` for an op with a random result."""
    made(signature, "random", text, example, result, random=True, **columns)


def network(signature, reference, text, example, result, *, public=(), method=False, **columns):
    """``made`` for a function of nn.functional, which is ``F`` in the example."""
    name = signature.partition("(")[0]
    made(signature, reference, text, f"F = ptcore.nn.functional\n>>> {example}", result,
          public=[*public, f"nn.functional.{name}"], method=method, **columns)


def functional(signature, doc, reference, also_top=True, **columns):
    """A composite row of nn.functional, and of the package itself if ``also_top``."""
    name = signature.partition("(")[0]
    columns.setdefault("public", [f"nn.functional.{name}"] + ([name] if also_top else []))
    composite(signature, method=False, reference=reference, doc=doc, **columns)


def nondifferentiable(signature, **columns):
    """A structured op without a gradient (integer results, random fills, creation)."""
    return declare("nondifferentiable", signature, **columns)


def declared(module):
    """The rows that a ``rows.py`` declares, in order; ``module`` is the module of that file."""
    return vars(module).get("DECLARED", ())


def derived(row):
    """The fused gradients of an elementwise row: {input: the Row of ``gradient * partial``}, one for each partial that
    is neither a constant nor a name. That of ``exact`` is under "x" beside a partial in ``out``, else in its place.

    ``uses`` of such a row has the tensors (``x``, ``y``, ``z``, ``out``) and the parameters of the original row that
    follow ``gradient`` in the signature, by their original names. In the signature ``out`` is called ``result``.
    """
    found = {}
    if row.kind != "elementwise":
        return found
    texts = dict(enumerate(row.partial or ()))
    if row.exact:                       # complex numbers have no fused gradients
        texts["x" if "out" in expr.uses(row.partial[0])[0] else 0] = row.exact
    for i, text in texts.items():
        if text is None or expr.trivial(text):
            continue
        data, _ = expr.uses(text)
        tensors = [n for n in ("x", "y", "z", "out") if n in data]
        if not 0 < len(tensors) < len(expr.TENSOR_NAMES):
            continue
        params = [a.name for a in row.params if a.name in data and a.name not in (row.select or {})]
        arguments = ["gradient", *["result" if n == "out" else n for n in tensors]]
        name, given = f"{row.name}__d{i}", f"({', '.join([*arguments, *params])})"
        signature = f"{name}({', '.join([*arguments, *[f'{p}: Scalar' for p in params]])})"
        found[i] = Row(
            "elementwise", signature, types=tuple(t for t in row.types if t in REAL),
            formula=expr.times("x", expr.renamed(text, dict(zip(tensors, expr.TENSOR_NAMES[1:])))),
            jvp=[f"slope_of('{name}', {k}, expand(t.to(out.dtype), out.shape), {given})"
                 for k in range(len(arguments))],
            internal=True, called=row.called, inplace=False, method=False, cost=row.cost + 2,
            doc=f"Gradient of {row.name} for its input {i}.")
        found[i].family, found[i].uses = row.family, (tensors, params)
    return found


def uniform(low, high):
    """A sampling domain for tests: uniform reals in [low, high]."""
    return ("uniform", low, high)
