"""Generator: the key and call offset of the counter-based random streams.

Philox4x32-10; key = seed; the counter holds the call offset (64 bits), the block index (40)
and the draw number (24). Every random call advances the offset by one, so that a stream
depends on the seed and the number of calls alone.
"""
import operator
import struct

cimport cython
from ptcore._types cimport *
from ptcore._device cimport CPU, as_device, device as Device, device_of
from ptcore._errors import DeviceError
from ptcore._state cimport Mode


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class Generator:
    """A stream of random numbers.

    Parameters
    ----------
    device : device, optional
        Where tensors are filled from it. The bits are the same everywhere: they depend on the seed and on the
        number of calls before.

    Examples
    --------
    >>> import ptcore
    >>> g = ptcore.Generator().manual_seed(0)
    >>> g.initial_seed()
    0
    """
    cdef uint64_t seed_, offset_
    cdef readonly Device device
    cdef object __weakref__

    def __cinit__(self, device=None):
        self.device = CPU if device is None else as_device(device, b"Generator")
        self.seed_ = 67280421310721

    def manual_seed(self, seed):
        """Sets the seed (any 64-bit integer, negative ones wrap) and goes to the start of the stream."""
        self.seed_ = whole(seed, -0x8000000000000000, "manual_seed: seed") & 0xFFFFFFFFFFFFFFFF
        self.offset_ = 0
        return self

    def seed(self):
        """Sets a seed from the system's entropy and returns it."""
        import os
        self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        return self.seed_

    def initial_seed(self):
        """The seed that the stream began with."""
        return self.seed_

    def get_state(self):
        """16 bytes as a uint8 tensor: seed and offset, little-endian."""
        from ptcore._exchange.convert import tensor
        return tensor(list(struct.pack("<QQ", self.seed_, self.offset_)), dtype="uint8", device="cpu")

    def set_state(self, state):
        """Goes to a state that ``get_state`` returned; returns the generator."""
        if getattr(getattr(state, "dtype", None), "name", "") != "uint8":
            raise TypeError("set_state: state must be a uint8 tensor from get_state, got "
                            f"{getattr(state, 'dtype', type(state).__name__)}")
        if getattr(state, "is_meta", False):
            raise TypeError("set_state: state must have values, got a tensor of meta")
        if tuple(state.shape) != (16,):
            raise RuntimeError(f"set_state: state must be a vector of 16 bytes, got shape {list(state.shape)}")
        data = bytes(state.tolist())
        self.seed_, self.offset_ = struct.unpack("<QQ", data)
        return self

    def get_offset(self):
        """The number of random calls since the start of the stream."""
        return self.offset_

    def set_offset(self, offset):
        """Goes to where the stream is after a number of random calls; returns the generator."""
        self.offset_ = whole(offset, 0, "set_offset: offset")
        return self

    def clone_state(self):
        """A new generator in the same state."""
        other = Generator(self.device)
        (<Generator>other).seed_ = self.seed_
        (<Generator>other).offset_ = self.offset_
        return other

    def __reduce__(self):
        return _restore, (str(self.device), self.seed_, self.offset_)

    def __repr__(self):
        return f"Generator(device={str(self.device)!r}, seed={self.seed_})"


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


def _restore(d, seed, offset):
    g = Generator(d)
    (<Generator>g).seed_, (<Generator>g).offset_ = seed, offset
    return g


default_generator = Generator()

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


cdef int next_random(object generator, int column, int index, uint64_t *seed, uint64_t *offset) except -1:
    """Seed and offset of one random call that fills a tensor of a device; advances the stream."""
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
    seed[0], offset[0] = g.seed_, g.offset_
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
    return _seed_of_all, {g: (g.initial_seed(), g.get_offset()) for g in (default_generator, *_of_devices.values())}


def set_states(states):
    """Goes back to ``get_states()``; a device's generator that was first used since then goes to its start."""
    global _seed_of_all
    _seed_of_all, known = states
    for g in (default_generator, *_of_devices.values()):
        (<Generator>g).seed_, (<Generator>g).offset_ = known.get(g, (_seed_of_all, 0))


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
