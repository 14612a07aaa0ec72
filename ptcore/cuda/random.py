"""The generators that CUDA devices draw from: one a device, seeded together with the CPU's by ``ptcore.manual_seed``.

The same seed gives the bits that it gives on the CPU.
"""
from ptcore import _random
from ptcore.cuda.driver.loading import index_of, runtime

__all__ = ["default_generators", "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all",
           "seed", "seed_all", "set_rng_state", "set_rng_state_all"]


def _of(device, op):
    return _random.default_generator_of(1, index_of(device, op))


def _all():
    """The generators of all devices; none if no device is available."""
    from ptcore.cuda import is_available
    return [_random.default_generator_of(1, i) for i in range(runtime().device_count())] if is_available() else []


class _Generators:
    """The devices' generators by their number."""

    def __len__(self):
        from ptcore.cuda import device_count
        return device_count()

    def __getitem__(self, index):
        return _all()[index]

    def __repr__(self):
        return f"<the generators of {len(self)} CUDA devices>"


default_generators = _Generators()


def get_rng_state(device="cuda"):
    """The state of a device's generator: 16 bytes on the CPU, as a uint8 tensor."""
    return _of(device, "get_rng_state").get_state()


def get_rng_state_all():
    """The states of all devices' generators."""
    return [g.get_state() for g in _all()]


def set_rng_state(new_state, device="cuda"):
    """Makes a device's generator go to a state from ``get_rng_state``."""
    _of(device, "set_rng_state").set_state(new_state)


def set_rng_state_all(new_states):
    """Makes the generators of the devices 0, 1, ... go to states, one each."""
    generators = _all()
    if len(new_states) > len(generators):
        raise RuntimeError(f"set_rng_state_all: there are {len(generators)} devices, got {len(new_states)} states")
    for g, state in zip(generators, new_states):
        g.set_state(state)


def manual_seed(seed):
    """Seeds the current device's generator; nothing happens where no device is available, as in PyTorch."""
    from ptcore.cuda import is_available
    if is_available():
        _of(None, "manual_seed").manual_seed(seed)


def manual_seed_all(seed):
    """Seeds the generators of all devices; nothing happens where none is available."""
    for g in _all():
        g.manual_seed(seed)


def seed():
    """Seeds the current device's generator from the system's entropy; nothing happens where there is no device."""
    from ptcore.cuda import is_available
    if is_available():
        _of(None, "seed").seed()


def seed_all():
    """Seeds the generators of all devices with one number from the system's entropy."""
    generators = _all()
    if generators:
        manual_seed_all(generators[0].seed())


def initial_seed():
    """The seed of the current device's generator."""
    return _of(None, "initial_seed").initial_seed()
