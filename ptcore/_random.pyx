"""Generator: the random streams, of two kinds.

"ptcore": Philox4x32-10; key = seed; the counter holds the call offset (64 bits), the block index (40)
and the draw number (24). Every random call advances the offset by one, so that a stream
depends on the seed and the number of calls alone.

"pytorch", on the CPU: PyTorch's Mersenne twister. A call takes as many words as PyTorch's does, so that the
stream depends on the ops and on the number of elements.

A generator has the kind that is in use when it is made. The default generator of the CPU alone can change:
it has a stream of each kind, and ``use_kind`` says which it draws from.
"""
import operator
import struct
import sys

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from ptcore._types cimport *
from ptcore._device cimport CPU, as_device, device as Device, device_of
from ptcore._errors import DeviceError
from ptcore._state cimport Mode, Switch


cdef extern from "random/mersenne.h" nogil:
    enum:
        PT_MERSENNE_BYTES
    ctypedef struct pt_mersenne:
        uint64_t seed
    pt_mersenne *pt_mersenne_new(uint64_t)
    void pt_mersenne_free(pt_mersenne *)
    void pt_mersenne_seed(pt_mersenne *, uint64_t)
    void pt_mersenne_store(const pt_mersenne *, char *)
    int pt_mersenne_load(pt_mersenne *, const char *)


KINDS = "ptcore", "pytorch"
default_generator = None                    # until it is made below


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class Generator:
    """A stream of random numbers.

    Parameters
    ----------
    device : device, optional
        Where tensors are filled from it. The bits are the same everywhere: they depend on the seed and on the
        number of calls before. After ``random.use("pytorch")`` those of the CPU are PyTorch's instead.

    Examples
    --------
    >>> import ptcore
    >>> g = ptcore.Generator().manual_seed(0)
    >>> g.initial_seed()
    0
    """
    cdef uint64_t seed_, offset_
    cdef pt_mersenne *twister               # NULL: a stream of PyTorch's kind was never asked for
    cdef bint is_twister
    cdef readonly Device device
    cdef object __weakref__

    def __cinit__(self, device=None):
        self.device = CPU if device is None else as_device(device, b"Generator")
        self.seed_ = 67280421310721
        if self.device.column == DEVICE_CPU and default_generator is not None:
            self.take_kind((<Generator>default_generator).is_twister)

    def __dealloc__(self):
        pt_mersenne_free(self.twister)

    cdef int take_kind(self, bint is_twister) except -1:
        """Draws from the stream of that kind from now on. The other one stays where it is."""
        if is_twister and self.twister == NULL:
            self.twister = pt_mersenne_new(self.seed_)
            if self.twister == NULL:
                raise MemoryError("Generator: no memory for the state")
        self.is_twister = is_twister
        return 0

    @property
    def kind(self):
        """"ptcore", or "pytorch" where the numbers are PyTorch's; see :func:`ptcore.random.use`."""
        return KINDS[self.is_twister]

    def manual_seed(self, seed):
        """Sets the seed (any 64-bit integer, negative ones wrap) and goes to the start of the stream."""
        self.seed_ = whole(seed, -0x8000000000000000, "manual_seed: seed") & 0xFFFFFFFFFFFFFFFF
        self.offset_ = 0
        if self.twister != NULL:
            pt_mersenne_seed(self.twister, self.seed_)
        return self

    def seed(self):
        """Sets a seed from the system's entropy and returns it."""
        import os
        self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        return self.seed_

    def initial_seed(self):
        """The seed that the stream began with."""
        return self.twister.seed if self.is_twister else self.seed_

    def get_state(self):
        """The state as a uint8 tensor: 16 bytes, seed and offset, little-endian; of the kind "pytorch" the 5,056 bytes
        that PyTorch has."""
        from ptcore._exchange.convert import tensor
        state = self._position()
        if not self.is_twister:
            state = struct.pack("<QQ", *state)
        return tensor(list(state), dtype="uint8", device="cpu")

    def set_state(self, state):
        """Goes to a state that ``get_state`` returned; returns the generator.

        Raises
        ------
        RuntimeError
            If the state is that of a generator of the other kind, or none at all.
        """
        if getattr(getattr(state, "dtype", None), "name", "") != "uint8":
            raise TypeError("set_state: state must be a uint8 tensor from get_state, got "
                            f"{getattr(state, 'dtype', type(state).__name__)}")
        if getattr(state, "is_meta", False):
            raise TypeError("set_state: state must have values, got a tensor of meta")
        sizes = 16, PT_MERSENNE_BYTES
        shape = tuple(state.shape)
        if shape == (sizes[not self.is_twister],):
            raise RuntimeError(f"set_state: state must be that of a generator of the kind {self.kind!r}, "
                               f"{sizes[self.is_twister]} bytes, got the {shape[0]} bytes of one of the kind "
                               f"{KINDS[not self.is_twister]!r}; ptcore.random.use chooses the kind")
        if shape != (sizes[self.is_twister],):
            raise RuntimeError(f"set_state: state must be a vector of {sizes[self.is_twister]} bytes, got shape "
                               f"{list(shape)}")
        data = bytes(state.tolist())
        self._go_to(data if self.is_twister else struct.unpack("<QQ", data))
        return self

    def _position(self):
        """Where the generator stands, with its kind: seed and offset, or the bytes of PyTorch's state."""
        cdef bytes state
        if not self.is_twister:
            return self.seed_, self.offset_
        state = PyBytes_FromStringAndSize(NULL, PT_MERSENNE_BYTES)
        pt_mersenne_store(self.twister, PyBytes_AS_STRING(state))
        return state

    def _go_to(self, position):
        """Goes to where a generator stood; the default generator takes its kind, too."""
        cdef bint is_twister = isinstance(position, bytes)
        if is_twister and len(position) != PT_MERSENNE_BYTES:
            raise RuntimeError(f"set_state: a state of the kind 'pytorch' has {PT_MERSENNE_BYTES} bytes, got "
                               f"{len(position)}")
        if is_twister and self.device.column != DEVICE_CPU:
            raise RuntimeError(f"set_state: a generator of {self.device} has no state of the kind 'pytorch'")
        self.take_kind(is_twister)
        if not is_twister:
            self.seed_, self.offset_ = position
        elif not pt_mersenne_load(self.twister, PyBytes_AS_STRING(position)):
            raise RuntimeError("set_state: Invalid mt19937 state: the bytes are no state of PyTorch's CPU generator")

    def get_offset(self):
        """The number of random calls since the start of the stream."""
        self.want_offset("get_offset")
        return self.offset_

    def set_offset(self, offset):
        """Goes to where the stream is after a number of random calls; returns the generator."""
        self.want_offset("set_offset")
        self.offset_ = whole(offset, 0, "set_offset: offset")
        return self

    cdef int want_offset(self, str op) except -1:
        if self.is_twister:
            raise RuntimeError(f"{op}: a generator of the kind 'pytorch' has no offset; get_state and set_state tell "
                               "its place")
        return 0

    def clone_state(self):
        """A new generator in the same state."""
        other = Generator(self.device)
        other._go_to(self._position())
        return other

    def __reduce__(self):
        position = self._position()
        return _restore, (str(self.device), *((0, 0, position) if self.is_twister else position))

    def __repr__(self):
        kind = ", kind='pytorch'" if self.is_twister else ""
        return f"Generator(device={str(self.device)!r}, seed={self.initial_seed()}{kind})"


cdef object whole(object value, object low, str what):
    """An integer of 64 bits, from ``low`` on."""
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be an integer, got {type(value).__name__}") from None
    if not low <= value <= 0xFFFFFFFFFFFFFFFF:
        raise ValueError(f"{what} must fit in 64 bits" + (" and not be negative" if low == 0 else "") +
                         f", got {value}")
    return value


def _restore(d, seed, offset, state=None):
    g = Generator(d)
    g._go_to((seed, offset) if state is None else state)
    return g


default_generator = Generator()


def kind_in_use():
    """The kind that generators of the CPU have when they are made, and that the default one has now."""
    return (<Generator>default_generator).kind


def use_kind(kind):
    """Says from which of its two streams the CPU's default generator draws, and of which kind new generators are."""
    if kind not in KINDS:
        raise ValueError(f"use: kind must be 'ptcore' or 'pytorch', got {kind!r}")
    if kind != kind_in_use():
        (<Generator>default_generator).take_kind(kind == "pytorch")
        compiled = sys.modules.get("ptcore.jit.compiled")
        if compiled is not None:        # what was captured has the other kind's ways from words to numbers
            compiled.reset()


@cython.binding(False)                  # so that methods check their self
cdef class Kind(Switch):
    """A context in which generators are of one kind.

    Parameters
    ----------
    kind : {"ptcore", "pytorch"}
    """
    cdef object kind

    def __init__(self, kind):
        if kind not in KINDS:
            raise ValueError(f"use: kind must be 'ptcore' or 'pytorch', got {kind!r}")
        self.kind = kind

    cdef bint is_shared(self):
        return True

    cdef object begin(self):
        before = kind_in_use()
        use_kind(self.kind)
        return before

    cdef int end(self, object before) except -1:
        use_kind(before)
        return 0


cdef bint is_pytorch(object generator, int column) except -1:
    """Whether what fills a tensor of that device is drawn by PyTorch's ways."""
    cdef object g = default_generator if generator is None else generator
    return column == DEVICE_CPU and isinstance(g, Generator) and (<Generator>g).is_twister


def draws_as_pytorch(generator, where):
    """Whether what fills a tensor of the device ``where`` is drawn by PyTorch's ways."""
    return is_pytorch(generator, (<Device>where).column)


def as_plain(position):
    """What ``Generator._position`` gives, as a list of plain data, for files."""
    return ["pytorch", position.hex()] if isinstance(position, bytes) else list(position)


def from_plain(position):
    """The position that ``as_plain`` described."""
    first, second = position
    return bytes.fromhex(second) if first == "pytorch" else (first, second)


# (column, index) -> the default generator of a device, once used; and the seed of those made later
cdef dict _of_devices = {}
cdef object _seed_of_all = default_generator.initial_seed()


def default_generator_of(int column, int index):
    """The generator that a device draws from by default. ``manual_seed`` seeds those of all devices together; after
    that they advance separately."""
    if column == DEVICE_CPU or column == DEVICE_META:
        return default_generator
    found = _of_devices.get((column, index))
    if found is None:
        found = _of_devices.setdefault((column, index), Generator(device_of(column, index)).manual_seed(_seed_of_all))
    return found


# (column, index) -> during the capture of a CUDA graph there: the generator with the offset that launches read from
# memory, whether this thread's work becomes part of the graph, and seed and offset at the start of the capture
cdef dict _held = {}


def hold(generator, captures):
    """Reserves a device's generator for captured work; ``captures()`` tells whether this thread's work is captured."""
    cdef Generator g = generator
    _held[g.device.column, g.device.index] = g, captures, g.seed_, g.offset_


def let_go(generator):
    cdef Generator g = generator
    _held.pop((g.device.column, g.device.index), None)


cdef int check_held(Generator g, int column, int index) except -1:
    """Raises unless captured work draws from the reserved generator, and other work does not."""
    found = _held.get((column, index))
    if found is None:
        return 0
    held, captures, seed, offset = found
    if not captures():
        if g is held:
            raise RuntimeError(f"generator: a CUDA graph that is being captured has the default generator of "
                               f"{device_of(column, index)}: wait for the capture's end, or give another generator")
    elif g is not held:
        raise RuntimeError("generator: what a CUDA graph captures draws from the device's default generator alone")
    elif g.seed_ != seed or g.offset_ < offset:
        raise RuntimeError("generator: it was seeded or set back within the capture of a CUDA graph")
    return 0


cdef int next_random(object generator, int column, int index, uint64_t *seed, uint64_t *offset,
                     void **twister) except -1:
    """Seed and offset of one random call that fills a tensor of a device; advances the stream. A generator of
    PyTorch's kind gives its twister instead, which the kernel advances."""
    cdef Generator g
    if generator is None:
        generator = default_generator_of(column, index)
    if not isinstance(generator, Generator):
        raise TypeError(f"generator must be a ptcore.Generator, got {type(generator).__name__}")
    g = <Generator>generator
    if _held:
        check_held(g, column, index)
    if g.device.column != column and column != DEVICE_META:
        raise DeviceError(f"generator: it must be one of the tensor's device, {device_of(column, index)}, got one of "
                          f"{g.device}")
    twister[0] = g.twister if g.is_twister and column == DEVICE_CPU else NULL
    seed[0], offset[0] = g.seed_, g.offset_
    if not g.is_twister:
        g.offset_ += 1
    return 0


def manual_seed(seed):
    """Sets the seed of the default generators of the CPU and of all devices; returns the CPU's."""
    global _seed_of_all
    seed = int(seed)
    default_generator.manual_seed(seed)
    _seed_of_all = default_generator.initial_seed()
    for g in list(_of_devices.values()):
        g.manual_seed(seed)
    return default_generator


def seed():
    """Sets a random seed for the default generators of the CPU and of all devices and returns it."""
    chosen = default_generator.seed()
    manual_seed(chosen)
    return chosen


def get_states():
    """The states of all default generators, for ``set_states``."""
    return _seed_of_all, {g: g._position() for g in (default_generator, *_of_devices.values())}


def set_states(states):
    """Goes back to ``get_states()``; a device's generator that was first used since then goes to its start."""
    global _seed_of_all
    _seed_of_all, known = states
    for g in (default_generator, *_of_devices.values()):
        g._go_to(known.get(g, (_seed_of_all, 0)))


@cython.binding(False)                  # so that methods check their self
cdef class States(Mode):
    """A context that restores all default generators at its end.

    Parameters
    ----------
    states : object, optional
        The states at its start, from ``get_states``; None: generators go on from where they are.
    """
    cdef object states

    def __init__(self, states=None):
        self.states = states

    cdef bint is_shared(self):
        return True

    cdef object begin(self):
        before = get_states()
        if self.states is not None:
            set_states(self.states)
        return before

    cdef int end(self, object before) except -1:
        set_states(before)
        return 0


def initial_seed():
    """The seed of the CPU's default generator."""
    return default_generator.initial_seed()


def get_rng_state():
    """State of the CPU's default generator, as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state):
    """Sets the state of the CPU's default generator."""
    default_generator.set_state(new_state)
