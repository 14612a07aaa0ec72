"""Two threads in one context of devices at once: current devices and streams are the thread's, as in PyTorch."""
import types

import pytest
from _reach import THREAD, Entry, reach_of, walked

import ptcore

cuda = ptcore.cuda


def other_stream(T):
    return T.cuda.Stream(1)


def of_stream(T):
    return T.cuda.current_stream(1) == T.cuda.default_stream(1), T.cuda.current_device()


CONTEXTS = {
    "device": Entry(THREAD, lambda T: T.cuda.current_device(), lambda T: T.cuda.device(1)),
    "device_of": Entry(THREAD, lambda T: T.cuda.current_device(), lambda T: T.cuda.device_of(
        T.empty(1, device="cuda:1"))),
    "accelerator.device_index": Entry(THREAD, lambda T: T.cuda.current_device(),
                                      lambda T: T.accelerator.device_index(1)),
    "stream": Entry(THREAD, of_stream, lambda T: T.cuda.stream(other_stream(T))),
    "StreamContext": Entry(THREAD, of_stream, lambda T: T.cuda.StreamContext(other_stream(T))),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_two_threads(name):
    if cuda.device_count() < 2:
        pytest.skip("needs two devices")
    entry = CONTEXTS[name]
    seen = walked(ptcore, entry)
    base, here = seen[0][1], seen[1][1]
    assert reach_of(seen) == THREAD
    for moment, *found, new in seen:
        inside = {"before": "", "A inside": "a", "both inside": "ab", "one inside": "b", "after": ""}[moment]
        assert found == [here if one in inside else base for one in "ab"] and new == base


@pytest.mark.parametrize("name", CONTEXTS)
def test_functions_in_c(name):
    if cuda.device_count() < 2:
        pytest.skip("needs two devices")
    context = type(CONTEXTS[name].context(ptcore))
    assert not isinstance(context.__enter__, types.FunctionType)
    assert not isinstance(context.__exit__, types.FunctionType)


def test_one_object_again_and_again():
    if cuda.device_count() < 2:
        pytest.skip("needs two devices")
    context = cuda.device(1)
    assert context.prev_idx == -1
    with context, context:
        assert cuda.current_device() == 1 and context.prev_idx == 1
    assert cuda.current_device() == 0
    for nothing in (cuda.device(None), cuda.device(-1), cuda.stream(None), ptcore.accelerator.device_index(None)):
        with nothing:
            assert cuda.current_device() == 0
