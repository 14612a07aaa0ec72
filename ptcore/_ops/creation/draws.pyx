"""Random tensors, and the in-place fills with random values.

A fill writes to a tensor's own memory, without a temporary, if that memory is one plain run. It uses the kernel of
the row that makes a new tensor, so that both give the same numbers.

With a generator of PyTorch's kind, elements are drawn in the order of memory, and what is composed of other draws
otherwise has a row of its own.
"""
from cpython.object cimport PyObject
from libc.math cimport log1p, sqrt
from libc.stdint cimport INT64_MIN

from ptcore._types cimport *
from ptcore._dtype cimport CATEGORY, REAL_OF, as_code, default_float, dtype_of
from ptcore._device cimport as_device, device as Device
from ptcore._dtype import finfo, iinfo
from ptcore._random cimport is_pytorch
from ptcore._shape import dims_inside_out
from ptcore._shape cimport read_index
from ptcore._tensor cimport *
from ptcore._ops.creation.creation cimport asks_class, created, device_for, dtype_for, fresh, made
from ptcore._ops.call.elementwise cimport write_to
from ptcore._ops.call.operands cimport fitting
from ptcore._ops.call.offer import seen_by_modes
from ptcore._ops.call.call cimport Call, begin_new
from ptcore._ops.call.read cimport read_numbers
from ptcore._ops.call.run cimport call_with as call, launch_over
from ptcore._ops.view.views cimport view_as_complex, view_as_real
from ptcore._ops.history cimport *
from ptcore._ops.table.ids cimport *
from ptcore._ops.table.ids import op_id
from ptcore._ops.table.shapes import broadcast_shapes
from ptcore._ops.results import NOT_GIVEN
from ptcore._ops.creation.creation import empty_like, full
from ptcore._ops.history import ValueCheck
from ptcore._memory_format import contiguous_format
from ptcore._errors import DTypeError, UnsupportedDTypeError
from ptcore._subclass import of_class

cdef int OP_UNIFORM = op_id("random_uniform")
cdef int OP_NORMAL = op_id("random_normal")
cdef int OP_EXPONENTIAL = op_id("random_exponential")
cdef int OP_INTEGERS = op_id("random_integers")
cdef int OP_RANDPERM = op_id("randperm_values")
cdef int OP_BERNOULLI = op_id("bernoulli_of")
cdef int OP_ONE_BY_ONE = op_id("random_one_by_one")
cdef int OP_LOG_NORMAL = op_id("random_log_normal")
cdef int OP_CAUCHY = op_id("random_cauchy")
cdef int OP_GEOMETRIC = op_id("random_geometric")
cdef int OP_WHOLE = op_id("random_whole")
cdef int OP_BERNOULLI_NUMBER = op_id("random_bernoulli_number")
cdef int OP_VIEW_AS_REAL = op_id("view_as_real")
cdef int OP_VIEW_AS_COMPLEX = op_id("view_as_complex")


cdef bint as_pytorch(Tensor t, object generator) except -1:
    """Whether the tensor is filled by PyTorch's ways."""
    if not is_pytorch(generator, DEVICE_CPU):
        return False
    if t.flags & PT_INTERPOSED:         # the tensor behind a stand-in may be one of meta
        return (<Device>t.device).column == DEVICE_CPU
    return not t.flags & PT_NON_CPU


cdef tuple sizes_of(object size, tuple rest):
    if rest:
        return size, *rest
    return tuple(size) if isinstance(size, (tuple, list)) else (size,)


cdef bint lies_otherwise(object out, int code, tuple sizes, object generator) except -1:
    """Whether a result of that dtype and these sizes is drawn in the order of ``out``, which is not row-major."""
    return (isinstance(out, Tensor) and (<Tensor>out).flags & PT_NONCONTIGUOUS and (<Tensor>out).dt == code
            and not needs_grad(<Tensor>out) and tuple((<Tensor>out).shape) == sizes
            and as_pytorch(<Tensor>out, generator))


cdef list memory_order(Tensor t):
    """The dims, the outermost first."""
    return dims_inside_out(t.shape, t.stride())[0][::-1]


cdef list undone(list order):
    """The permutation that undoes another one."""
    return sorted(range(len(order)), key=order.__getitem__)


cdef object drawn_like(Tensor t, int op, tuple params, object generator):
    """New values in t's sizes, drawn in the order of its memory."""
    cdef list order = memory_order(t)
    sizes = t.shape
    return call(OP_ONE_BY_ONE if op == OP_NORMAL else op,
                params + (tuple([sizes[k] for k in order]), t.dtype, t.device, generator), None).permute(undone(order))


cdef object drawn(int op, tuple params, object size, tuple rest, object dtype, object where, object generator,
                  const char *name, object out, object layout, object pin_memory, object requires_grad):
    cdef Tensor t
    cdef int code
    dtype, where = dtype_for(dtype, out, name), device_for(where, out)
    code = default_float() if dtype is None else as_code(dtype, name, b"dtype")
    if lies_otherwise(out, code, sizes_of(size, rest), generator):
        return refill(<Tensor>out, op, params, generator, name)
    if CATEGORY[code] == 3 and (op == OP_UNIFORM or op == OP_NORMAL):
        t = fresh(size, rest, dtype, where, name)
        refill(t, op, params, generator, name)
        t.storage.version = 0
    else:
        if CATEGORY[code] != 2 and (op == OP_UNIFORM or op == OP_NORMAL):
            raise UnsupportedDTypeError(f"{name.decode()}: dtype must be floating point, got {dtype_of(code).name}")
        t = created(op, params, size, rest, dtype, where, name, (generator,))
    return made(t, name, out, layout, pin_memory, None, requires_grad)


@seen_by_modes
def rand(size, *sizes, generator=None, out=None, dtype=None, layout=None, device=None, pin_memory=False,
         requires_grad=False):
    """Uniform values in [0, 1); both parts of complex ones are.

    Examples
    --------
    >>> import ptcore
    >>> bool((ptcore.rand(100) < 1).all())
    True
    """
    return drawn(OP_UNIFORM, (0.0, 1.0), size, sizes, dtype, device, generator,
                 b"rand", out, layout, pin_memory, requires_grad)


@seen_by_modes
def randn(size, *sizes, generator=None, out=None, dtype=None, layout=None, device=None, pin_memory=False,
          requires_grad=False):
    """Standard normal values; the parts of complex ones have variance 1/2 each, so that the whole has 1.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.randn(2, 3).shape
    ptcore.Size([2, 3])
    """
    return drawn(OP_NORMAL, (0.0, 1.0), size, sizes, dtype, device, generator,
                 b"randn", out, layout, pin_memory, requires_grad)


@seen_by_modes
def randint(low=None, high=None, size=None, *, generator=None, out=None, dtype=None, layout=None,
            device=None, pin_memory=False, requires_grad=False):
    """Uniform integers in [low, high); ``randint(high, size)`` starts at 0.

    Raises
    ------
    RuntimeError
        If low is not below high, or the dtype does not reach so far.

    Examples
    --------
    >>> import ptcore
    >>> int(ptcore.randint(3, 4, (1,)))
    3
    >>> ptcore.randint(high=5, size=(2, 3)).shape
    ptcore.Size([2, 3])
    """
    if size is None:
        high, size = None, high
    if size is None:
        raise TypeError("randint: size is required")
    if high is None:
        low, high = 0, low
    if high is None:
        raise TypeError("randint: high is required")
    low, high = read_index(0 if low is None else low, b"randint", b"low"), read_index(high, b"randint", b"high")
    if dtype is None and out is None:
        dtype = dtype_of(PT_INT64)
    dtype = dtype_for(dtype, out, b"randint")
    check_range(default_float() if dtype is None else as_code(dtype, b"randint", b"dtype"), low, high, b"randint",
                "low", "high")
    return drawn(OP_INTEGERS, (low, high), size, (), dtype, device, generator,
                 b"randint", out, layout, pin_memory, requires_grad)


cdef dict _limits = {PT_BOOL: (0, 1)}      # dtype -> (its least number, its largest one), as they are asked for


cdef tuple found_limits(int dt):
    info = (iinfo if CATEGORY[dt] == 1 else finfo)(dtype_of(dt))
    _limits[dt] = info.min, info.max
    return _limits[dt]


cdef int check_range(int dt, object low, object high, const char *op, str lower, str upper) except -1:
    """Raises for an empty range of integers, and for a range that the dtype does not hold."""
    if CATEGORY[dt] == 3:
        raise UnsupportedDTypeError(f"{op.decode()}: dtype must be real, got {dtype_of(dt).name}")
    if low >= high:
        raise RuntimeError(f"{op.decode()}: {lower} must be below {upper}, got {low} and {high}")
    least, most = _limits[dt] if dt in _limits else found_limits(dt)
    if low < least or high - 1 > most:
        raise RuntimeError(f"{op.decode()}: the range must be within {dtype_of(dt).name}, got {low} to {high}")
    return 0


# dtype -> the number up to which it holds all integers. PyTorch takes any n for bfloat16.
cdef dict EXACT = {PT_FLOAT16: 2048, PT_FLOAT32: 1 << 24, PT_FLOAT64: 1 << 53}


@seen_by_modes
def randperm(n, *, generator=None, out=None, dtype=None, layout=None, device=None, pin_memory=False,
             requires_grad=False):
    """The integers below ``n`` in random order.

    Examples
    --------
    >>> import ptcore
    >>> int(ptcore.randperm(5).sum())
    10
    """
    n = read_index(n, b"randperm", b"n")
    if n < 0:
        raise RuntimeError(f"randperm: n must be non-negative, got {n}")
    dtype = dtype_of(PT_INT64) if dtype is None and out is None else dtype_for(dtype, out, b"randperm")
    if n:
        code = default_float() if dtype is None else as_code(dtype, b"randperm", b"dtype")
        check_range(code, 0, n, b"randperm", "0", "n")
        if code in EXACT and n - 1 > EXACT[code]:
            raise RuntimeError(f"randperm: n must be at most {EXACT[code] + 1} for {dtype_of(code).name}, which "
                               f"holds no larger integers exactly, got {n}")
    return drawn(OP_RANDPERM, (n,), (n,), (), dtype, device, generator, b"randperm", out, layout, pin_memory,
                 requires_grad)


cdef bint is_drawn_on_cpu(Tensor input, object where, object generator) except -1:
    """Whether a tensor like input, on that device if one is given, is filled by PyTorch's ways."""
    if where is None:
        return as_pytorch(input, generator)
    return is_pytorch(generator, as_device(where, b"rand_like").column)


cdef object alike(int op, object input, object dtype, object where, object generator, const char *name,
                  object layout, object pin_memory, object memory_format, object requires_grad):
    if not isinstance(input, Tensor):
        raise TypeError(f"{name.decode()}: input must be a Tensor, got {type(input).__name__}")
    if (memory_format is not None or (<Tensor>input).flags & PT_NONCONTIGUOUS) and is_drawn_on_cpu(
            <Tensor>input, where, generator):
        t = empty_like(input, dtype=dtype, layout=layout, device=where, pin_memory=pin_memory,
                       memory_format=memory_format)
        return refill(<Tensor>t, op, (0.0, 1.0), generator, name).requires_grad_(requires_grad)
    if memory_format is not None:
        from ptcore._memory_format import checked, contiguous
        memory_format = checked(name.decode(), memory_format)
        if memory_format is not None:
            t = contiguous(alike(op, input, dtype, where, generator, name, layout, pin_memory, None, False),
                           memory_format, name.decode())
            return t.requires_grad_(requires_grad)
    return drawn(op, (0.0, 1.0), tuple(input.shape), (), input.dtype if dtype is None else dtype,
                 input.device if where is None else where, generator, name, None, layout, pin_memory,
                 requires_grad)


def rand_like(input, *, dtype=None, layout=None, device=None, pin_memory=False,
              requires_grad=False, generator=None, memory_format=None):
    """Uniform values in [0, 1) in input's shape."""
    if asks_class(input):
        return of_class(rand_like, input, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory,
                        requires_grad=requires_grad, memory_format=memory_format, generator=generator)
    return alike(OP_UNIFORM, input, dtype, device, generator, b"rand_like", layout, pin_memory,
                 memory_format, requires_grad)


def randn_like(input, *, dtype=None, layout=None, device=None, pin_memory=False,
               requires_grad=False, generator=None, memory_format=None):
    """Standard normal values in input's shape."""
    if asks_class(input):
        return of_class(randn_like, input, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory,
                        requires_grad=requires_grad, memory_format=memory_format, generator=generator)
    return alike(OP_NORMAL, input, dtype, device, generator, b"randn_like", layout, pin_memory,
                 memory_format, requires_grad)


def randint_like(Tensor input not None, low, high=None, *, dtype=None, layout=None, device=None, pin_memory=False,
                 requires_grad=False, generator=None, memory_format=None):
    """Uniform integers in [low, high) in input's shape and dtype."""
    if asks_class(input):
        return of_class(randint_like, input, low, high, dtype=dtype, device=device, generator=generator)
    if high is None:
        low, high = 0, low
    if input.flags & PT_NONCONTIGUOUS and is_drawn_on_cpu(input, device, generator):
        r = empty_like(input, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory,
                       memory_format=memory_format)
        return random_(<Tensor>r, low, high, generator=generator).requires_grad_(requires_grad)
    r = randint(low, high, input.shape, dtype=dtype or input.dtype, device=device or input.device,
                generator=generator)
    return made(r, b"randint_like", None, layout, pin_memory, memory_format, requires_grad)


@ValueCheck
def check_deviation(std):
    if not bool((std.detach() >= 0).all()):
        raise RuntimeError("normal: std must be non-negative, got a tensor with others")


@seen_by_modes
def normal(mean=0.0, std=1.0, size=None, *, generator=None, out=None, dtype=None, layout=None,
           device=None, pin_memory=False, requires_grad=False):
    """Normal values; mean and std may be tensors that broadcast, element by element.

    Parameters
    ----------
    mean, std : float or Tensor
        ``std`` is real and not negative; of complex values it is that of both parts together. Neither gets a
        gradient other than 0.
    size : sequence of ints, optional
        The shape, required where both are numbers.
    dtype : dtype, optional
        That of mean, or of std where mean is a number, unless given.

    Raises
    ------
    RuntimeError
        If std is negative or complex.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.normal(ptcore.tensor([1., 2.]), 0.)
    tensor([1., 2.])
    """
    cdef Tensor like
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        like = <Tensor>mean if isinstance(mean, Tensor) else <Tensor>std
        if isinstance(std, Tensor):
            if CATEGORY[(<Tensor>std).dt] == 3:
                raise RuntimeError(f"normal: std must be real, got {std.dtype.name}")
            if (<Tensor>std).count:
                check_deviation(std)
        elif not std >= 0:
            raise RuntimeError(f"normal: std must be non-negative, got {std}")
        if size is None:
            size = broadcast_shapes("normal", *[tuple(t.shape) for t in (mean, std) if isinstance(t, Tensor)])
        dtype = dtype_for(dtype, out, b"normal")
        std_of, mean_of = [t.detach() if isinstance(t, Tensor) else t for t in (std, mean)]
        scale = 1.0
        if as_pytorch(like, generator) and not isinstance(std, Tensor):     # the kernel multiplies before it rounds
            scale, std_of = float(std), 1.0
        dtype = like.dtype if dtype is None else dtype
        if CATEGORY[as_code(dtype, b"normal", b"dtype")] == 2 and lies_otherwise(
                out, as_code(dtype, b"normal", b"dtype"), tuple(size), generator):
            z = drawn_like(<Tensor>out, OP_NORMAL, (0.0, scale), generator)
        else:
            z = drawn(OP_NORMAL, (0.0, scale), size, (), dtype, like.device, generator, b"normal", None, None, False,
                      False)
        if pt_tls.mode & PT_INTERPOSED:         # in a batch z may be one tensor for all samples and the others not
            z = (z * std_of + mean_of).to(z.dtype)
        else:
            z.mul_(std_of)
            z.add_(mean_of)
        if pt_tls.grad_enabled and any([isinstance(t, Tensor) and t.requires_grad for t in (mean, std)]):
            z = z + (mean + std).mul(0).nan_to_num(0)
        return made(z, b"normal", out, layout, pin_memory, None, requires_grad)
    if size is None:
        raise TypeError("normal: size is required when mean and std are numbers")
    if not std >= 0:
        raise RuntimeError(f"normal: std must be non-negative, got {std}")
    return drawn(OP_NORMAL, (float(mean), float(std)), size, (), dtype, device,
                 generator, b"normal", out, layout, pin_memory, requires_grad)


def bernoulli(input, p=None, *, generator=None, out=None):
    """1 with the probability that each element of input says, or with p for tensors of its shape, else 0.

    Parameters
    ----------
    input : Tensor
        Of any shape, of floating point unless p is given: probabilities from 0 to 1.
    p : float or Tensor, optional
        The probability of all elements, or of each (it broadcasts to input); then input gives shape and dtype.
    generator : Generator, optional
    out : Tensor, optional
        Without p.

    Returns
    -------
    Tensor
        Of the shape and the dtype of input.

    Raises
    ------
    RuntimeError
        If a probability is not from 0 to 1.
    TypeError
        If p and out are given.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.bernoulli(ptcore.tensor([0.0, 1.0, 1.0]))
    tensor([0., 1., 1.])
    >>> ptcore.bernoulli(ptcore.zeros(3), 1.0)
    tensor([1., 1., 1.])
    """
    if asks_class(input):
        return of_class(bernoulli, input, p, generator=generator, out=out)
    if p is None:
        if isinstance(input, Tensor) and lies_otherwise(out, (<Tensor>input).dt, tuple(input.shape), generator):
            return out.bernoulli_(input, generator=generator)
        return call(OP_BERNOULLI, (input, generator), out)
    if out is not None:
        raise TypeError("bernoulli: out is for probabilities in input, p must be None")
    return empty_like(input, memory_format=contiguous_format).bernoulli_(p, generator=generator)


# -- in-place fills, as methods ------------------------------------------------------------------

cdef bint drawn_into(Tensor t, int op, tuple params, object generator, const char *name) except -1:
    """Fills t by the kernel of a random row. False, with nothing done, if t is not one plain
    run of memory or the call is to be offered."""
    cdef Call c
    cdef (PyObject *)[1] args
    if (t.flags | pt_tls.mode) & (PT_SLOW | PT_NON_CPU | PT_NONCONTIGUOUS) or kernel_of(op, DEVICE_CPU) == NULL:
        return False
    if pt_tls.grad_enabled and needs_grad(t):
        return False
    begin_new(&c, op, t.dt, DEVICE_CPU, -1)
    if not read_numbers(&c, params):
        return False
    check_inplace(t, name, False)
    args[0] = <PyObject *>generator
    c.args, c.n = args, 1
    launch_over(&c, t)
    finish_inplace(t, None)
    return True


cdef bint is_wide(Tensor t) noexcept:
    """Whether a transformed draw starts from draws of the tensor's own dtype."""
    return t.dt == PT_FLOAT32 or t.dt == PT_FLOAT64


cdef object refill(Tensor self, int op, tuple params, object generator, const char *name):
    """Writes freshly drawn values into self."""
    if CATEGORY[self.dt] == 3 and (op == OP_UNIFORM or op == OP_NORMAL):
        return refill_parts(self, op, params, generator, name)
    if op != OP_INTEGERS and CATEGORY[self.dt] != 2:
        raise DTypeError(f"{name.decode()}: dtype must be floating point, got {dtype_of(self.dt).name}")
    return refilled(self, op, params, generator, name)


cdef object refilled(Tensor self, int op, tuple params, object generator, const char *name):
    """Writes the values of any row of draws into self."""
    check_inplace(self, name, pt_tls.grad_enabled and needs_grad(self))
    if drawn_into(self, op, params, generator, name):
        return self
    if self.flags & PT_NONCONTIGUOUS and as_pytorch(self, generator):
        return write_to(self, drawn_like(self, op, params, generator))
    values = call(op, params + (tuple(self.shape), self.dtype, self.device, generator), None)
    return write_to(self, values)


cdef object refill_parts(Tensor self, int op, tuple params, object generator, const char *name):
    """Writes freshly drawn parts into a complex tensor, for each element the real one first. Both parts of a normal
    number together have the requested variance."""
    cdef int dt = REAL_OF[self.dt]
    cdef bint as_torch = as_pytorch(self, generator)
    if op == OP_NORMAL:
        params = params[0], params[1] / sqrt(2.0) if as_torch else params[1] * sqrt(0.5)
    check_inplace(self, name, pt_tls.grad_enabled and needs_grad(self))
    if as_torch and self.flags & PT_NONCONTIGUOUS:
        refilled(<Tensor>view_as_real(OP_VIEW_AS_REAL, self), op, params, generator, name)
        return self
    if (not (self.flags | pt_tls.mode) & (PT_SLOW | PT_NON_CPU | PT_NONCONTIGUOUS) and not needs_grad(self)
            and drawn_into(<Tensor>view_as_real(OP_VIEW_AS_REAL, self), op, params, generator, name)):
        return self
    values = call(op, params + ((*self.shape, 2), dtype_of(dt), self.device, generator), None)
    return write_to(self, view_as_complex(OP_VIEW_AS_COMPLEX, values))


cdef object low_end(object low, dict named, const char *op):
    """The lower bound. PyTorch's name for it, ``from``, is a keyword of Python and comes in ``named``."""
    if not named:
        return low
    if "from" not in named or len(named) > 1:
        wrong = [name for name in named if name != "from"][0]
        raise TypeError(f"{op.decode()}: there is no argument {wrong!r}")
    return named["from"]


def uniform_(Tensor self not None, double from_=0.0, double to=1.0, *, generator=None, **named):
    """Fills with uniform values in [from, to), both parts of complex ones."""
    from_ = low_end(from_, named, b"uniform_")
    if not from_ <= to:
        raise RuntimeError(f"uniform_: from must not exceed to, got {from_} and {to}")
    dt = REAL_OF[self.dt] if CATEGORY[self.dt] == 3 else self.dt
    for bound in (from_, to):
        if fitting(bound, dt, b"uniform_") in (float("inf"), -float("inf")):
            raise RuntimeError(f"uniform_: from and to must be finite, got {from_} and {to}")
    if CATEGORY[dt] == 2 and fitting(to - from_, dt, b"uniform_") == float("inf"):
        raise RuntimeError(f"uniform_: to - from must fit {dtype_of(dt).name}, got {from_} and {to}")
    return refill(self, OP_UNIFORM, (from_, to), generator, b"uniform_")


def normal_(Tensor self not None, double mean=0.0, double std=1.0, *, generator=None):
    """Fills with normal values; the variance of complex ones is that of both parts together."""
    if not std >= 0:
        raise RuntimeError(f"normal_: std must be non-negative, got {std}")
    return refill(self, OP_NORMAL, (mean, std), generator, b"normal_")


def exponential_(Tensor self not None, double lambd=1.0, *, generator=None):
    """Fills with exponential values of rate lambd."""
    if not lambd > 0:
        raise RuntimeError(f"exponential_: lambd must be positive, got {lambd}")
    return refill(self, OP_EXPONENTIAL, (lambd,), generator, b"exponential_")


cdef object transformed(Tensor self, object values):
    """Writes values that were computed from draws into self."""
    check_inplace(self, b"copy", pt_tls.grad_enabled and needs_grad(self))
    return write_to(self, values)


cdef Tensor float_draws(Tensor self, int op, tuple params, object generator, const char *name):
    """Draws of self's shape, in float64 for a float64 tensor and float32 for others."""
    if CATEGORY[self.dt] == 3:
        raise RuntimeError(f"{name.decode()}: the tensor must be real, got {self.dtype.name}")
    dtype = dtype_of(PT_FLOAT64 if self.dt == PT_FLOAT64 or CATEGORY[self.dt] < 2 else PT_FLOAT32)
    return <Tensor>call(op, params + (tuple(self.shape), dtype, self.device, generator), None)


cdef int want_floats(Tensor self, const char *name) except -1:
    if CATEGORY[self.dt] != 2:
        raise RuntimeError(f"{name.decode()}: the tensor must be real floating-point, got {self.dtype.name}")
    return 0


def cauchy_(Tensor self not None, double median=0.0, double sigma=1.0, *, generator=None):
    """Fills with values of the Cauchy distribution."""
    want_floats(self, b"cauchy_")
    if not sigma > 0:
        raise RuntimeError(f"cauchy_: sigma must be positive, got {sigma}")
    if as_pytorch(self, generator):
        return refilled(self, OP_CAUCHY, (median, sigma), generator, b"cauchy_")
    if is_wide(self) and drawn_into(self, OP_UNIFORM, (0.0, 1.0), generator, b"cauchy_"):
        self.sub_(0.5).mul_(3.141592653589793).tan_()
        if sigma != 1:
            self.mul_(sigma)
        return self.add_(median) if median else self
    u = float_draws(self, OP_UNIFORM, (0.0, 1.0), generator, b"cauchy_")
    return transformed(self, ((u - 0.5) * 3.141592653589793).tan() * sigma + median)


def log_normal_(Tensor self not None, double mean=1.0, double std=2.0, *, generator=None):
    """Fills with values whose logarithms are normal."""
    want_floats(self, b"log_normal_")
    if not std > 0:
        raise RuntimeError(f"log_normal_: std must be positive, got {std}")
    if as_pytorch(self, generator):
        return refilled(self, OP_LOG_NORMAL, (mean, std), generator, b"log_normal_")
    if is_wide(self) and drawn_into(self, OP_NORMAL, (mean, std), generator, b"log_normal_"):
        return self.exp_()
    return transformed(self, float_draws(self, OP_NORMAL, (mean, std), generator, b"log_normal_").exp())


def geometric_(Tensor self not None, double p, *, generator=None):
    """Fills with numbers of trials up to the first success of probability p."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_: p must be in (0, 1), got {p}")
    if as_pytorch(self, generator) and CATEGORY[self.dt] != 3:
        return refilled(self, OP_GEOMETRIC, (p,), generator, b"geometric_")
    if is_wide(self) and drawn_into(self, OP_EXPONENTIAL, (1.0,), generator, b"geometric_"):
        return self.div_(-log1p(-p)).ceil_().clamp_min_(1)
    waits = float_draws(self, OP_EXPONENTIAL, (1.0,), generator, b"geometric_")
    return transformed(self, (waits / -log1p(-p)).ceil().clamp_min(1))


def random_(Tensor self not None, from_=None, to=NOT_GIVEN, *, generator=None, **named):
    """Fills with uniform integers in [from, to); of one bound alone in [0, to).

    Without bounds, or where ``to`` is None, they go up to the dtype's largest; those of floating dtypes up to where
    all integers are exact.

    Raises
    ------
    RuntimeError
        If from is not below to, or the dtype does not reach so far.
    """
    from_ = low_end(from_, named, b"random_")
    if from_ is not None and to is NOT_GIVEN and not named:
        from_, to = None, from_
    low = 0 if from_ is None else read_index(from_, b"random_", b"from")
    open_end = to is None or to is NOT_GIVEN
    if open_end:
        high = largest_of(self.dt) + 1
    else:
        high = read_index(to, b"random_", b"to")
    check_range(self.dt, low, high, b"random_", "from", "to")
    if open_end and as_pytorch(self, generator):
        if from_ is None:
            return refilled(self, OP_WHOLE, (), generator, b"random_")
        if self.dt == PT_INT64:
            high = INT64_MIN            # the kernel takes it for 2^63
    return refill(self, OP_INTEGERS, (low, high), generator, b"random_")


cdef object largest_of(int dt):
    """The largest integer that is drawn for a dtype."""
    if CATEGORY[dt] == 2:
        return 1 << {PT_FLOAT16: 11, PT_BFLOAT16: 8, PT_FLOAT32: 24}.get(dt, 53)
    return min(iinfo(dtype_of(dt)).max, 0x7FFFFFFFFFFFFFFE) if CATEGORY[dt] == 1 else 1


def bernoulli_(Tensor self not None, p=0.5, *, generator=None):
    """Fills with 1 with probability p (a number or a tensor), else 0."""
    if isinstance(p, Tensor):           # that may be on another device, as in PyTorch
        p = p.to(self.device)
    if as_pytorch(self, generator):
        if not isinstance(p, Tensor):
            return refilled(self, OP_BERNOULLI_NUMBER, (float(p),), generator, b"bernoulli_")
        order = memory_order(self)
        values = call(OP_BERNOULLI, (p.expand(self.shape).permute(order), generator), None)
        return write_to(self, values.permute(undone(order)))
    with_p = p.expand(self.shape) if isinstance(p, Tensor) else full(self.shape, float(p), device=self.device)
    values = call(OP_BERNOULLI, (with_p, generator), None)
    write_to(self, values)
    return self


# What this module adds to Tensor.
for _f in (uniform_, normal_, exponential_, cauchy_, log_normal_, geometric_, random_, bernoulli_):
    setattr(Tensor, _f.__name__, _f)
