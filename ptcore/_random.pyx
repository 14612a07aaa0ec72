"""Generator: the key and call offset of the counter-based random streams.

Philox4x32-10; key = seed; the counter holds the call offset (64 bits), the block index (40)
and the draw number (24). Every random call advances the offset by one, so that a stream
depends on the seed and the number of calls alone.
"""
import struct

from ptcore._types cimport *
from ptcore._device cimport CPU, as_device, device as Device


cdef class Generator:
    """A stream of random numbers.

    Parameters
    ----------
    device : device, optional
        Where tensors are filled from it; the bits are the same everywhere.

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
        """Sets the seed (any 64-bit integer, negative ones wrap) and goes to the start."""
        seed = int(seed)
        if not -0x8000000000000000 <= seed <= 0xFFFFFFFFFFFFFFFF:
            raise RuntimeError(f"manual_seed: seed must fit in 64 bits, got {seed}")
        self.seed_ = seed & 0xFFFFFFFFFFFFFFFF
        self.offset_ = 0
        return self

    def seed(self):
        """Sets a seed from the system's entropy and returns it."""
        import os
        self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        return self.seed_

    def initial_seed(self):
        return self.seed_

    def get_state(self):
        """16 bytes as a uint8 tensor: seed and offset, little-endian."""
        from ptcore._convert import tensor
        return tensor(list(struct.pack("<QQ", self.seed_, self.offset_)), dtype="uint8")

    def set_state(self, state):
        """Goes to a state from ``get_state``."""
        try:
            data = bytes(state.tolist())
        except (AttributeError, TypeError, ValueError):
            raise TypeError("set_state: state must be a uint8 tensor from get_state, got "
                            f"{getattr(state, 'dtype', type(state).__name__)}") from None
        if len(data) != 16:
            raise RuntimeError(f"set_state: state must hold 16 bytes, got {len(data)}")
        self.seed_, self.offset_ = struct.unpack("<QQ", data)

    def get_offset(self):
        return self.offset_

    def set_offset(self, offset):
        self.offset_ = offset

    def clone_state(self):
        """A generator in the same state."""
        other = Generator(self.device)
        (<Generator>other).seed_ = self.seed_
        (<Generator>other).offset_ = self.offset_
        return other

    def __reduce__(self):
        return _restore, (str(self.device), self.seed_, self.offset_)

    def __repr__(self):
        return f"Generator(device={str(self.device)!r}, seed={self.seed_})"


def _restore(d, seed, offset):
    g = Generator(d)
    (<Generator>g).seed_, (<Generator>g).offset_ = seed, offset
    return g


default_generator = Generator()


def next_random(generator):
    """(seed, offset) for one random call; advances the stream."""
    cdef Generator g
    if generator is None:
        generator = default_generator
    if not isinstance(generator, Generator):
        raise TypeError(f"generator must be a ptcore.Generator, got {type(generator).__name__}")
    g = <Generator>generator
    g.offset_ += 1
    return g.seed_, g.offset_ - 1


def manual_seed(seed):
    """Sets the seed of the default generator and returns it."""
    return default_generator.manual_seed(seed)


def seed():
    """Sets a random seed for the default generator and returns it."""
    return default_generator.seed()


def initial_seed():
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state():
    """State of the default generator, as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state):
    """Sets the state of the default generator."""
    default_generator.set_state(new_state)
