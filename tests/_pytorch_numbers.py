"""The same draws by ptcore and by PyTorch: values and states, to the bit."""
import pytest

import ptcore as pt


def states(lib):
    return bytes(lib.get_rng_state().tolist())


def bits(lib, x):
    """dtype, shape and bytes of tensors, in lists as they are."""
    if isinstance(x, (list, tuple)):
        return [bits(lib, e) for e in x]
    if not isinstance(x, lib.Tensor):
        return x
    x = x.detach()
    return str(x.dtype).split(".")[1], tuple(x.shape), x.contiguous().reshape(-1).view(lib.uint8).numpy().tobytes()


def uses_mkl(torch):
    """Whether PyTorch draws Bernoulli numbers by MKL, as on Intel's processors: four then take other words than 8."""
    torch.manual_seed(0)
    torch.empty(4).bernoulli_(0.5)
    return int.from_bytes(states(torch)[8:12], "little") != 624 - 7


def need_own_flags(torch):
    """Skips a test of Bernoulli numbers, or of dropout, where PyTorch takes these from MKL."""
    if uses_mkl(torch):
        pytest.skip("PyTorch draws Bernoulli numbers by MKL on this processor")


def same(torch, call, seed=11, times=1):
    """Calls both libraries from one seed; the values and the states after each call must be equal to the bit."""
    for lib in (pt, torch):
        lib.manual_seed(seed)
    for _ in range(times):
        mine, theirs = [bits(lib, call(lib)) for lib in (pt, torch)]
        assert mine == theirs
        assert states(pt) == states(torch)
