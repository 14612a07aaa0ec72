"""What a worker sends to its loader, taken by itself: tensors beside the pickle, segments that come back."""
import copyreg
import io
import pickle
import random
import sys
import threading
from typing import NamedTuple

import numpy as np
import pytest

import ptcore
from ptcore import Tensor
from ptcore._lending import Arrival, Packet, Returns, take_dropped
from ptcore._untyped_storage import lend_memory
from ptcore.multiprocessing import _recycle, _segments

LARGE = 50_000                  # elements


@pytest.fixture
def descriptors():
    if _segments.STRATEGIES[0] != "file_descriptor":
        pytest.skip("segments are lent by descriptors, which pipes carry on Linux alone")


@pytest.fixture
def pipe(monkeypatch, descriptors):
    """(function that sends an object and returns what comes, the sender's Spares, the receiver's Borrowed)"""
    spares, borrowed = _recycle.Spares(8, 20, _segments.numbers), _recycle.Borrowed()
    monkeypatch.setattr(_segments, "spares", spares)
    spares.lend(_segments.SMALL + 1)
    from ptcore.multiprocessing._connection import Pipe
    here, there = Pipe()

    def carry(obj):
        failed = []

        def send():
            try:
                letter = _recycle.Letter(spares, io.BytesIO())
                letter.add([obj])
                letter.send(here, ())
            except Exception as e:
                failed.append(e)
                here.send_bytes(b"")

        thread = threading.Thread(target=send)          # a packet may be longer than the pipe
        thread.start()
        try:
            (found,) = _recycle.receive(there, borrowed)[-1]
            return found.load() if isinstance(found, _recycle.Later) else found
        except ValueError:
            if failed:
                raise failed[0] from None
            raise
        finally:
            thread.join()

    yield carry, spares, borrowed
    lend_memory(None)
    here.close()
    there.close()


def give_back(spares, borrowed):
    spares.give_back(take_dropped(borrowed.dropped, borrowed.segments))


@pytest.mark.parametrize("size", [1, 7, 4096, LARGE])
def test_tensors_arrive_as_they_were(pipe, size):
    carry, spares, borrowed = pipe
    for dtype in ("bool", "uint8", "int16", "float16", "bfloat16", "float32", "float64", "complex128", "int64"):
        x = ptcore.arange(size).to(dtype)
        sent = {"whole": x, "matrix": x.reshape(1, 1, size, 1), "part": x[size // 3:], "steps": x[::2],
                "t": x.reshape(-1, 1).t(), "one": x[size // 2], "none": x[:0], "twice": [x, x]}
        got = carry(sent)
        for key, want in sent.items():
            if key == "twice":
                assert got[key][0] is got[key][1] is got["whole"]
                continue
            assert got[key].dtype is want.dtype
            assert got[key].shape == want.shape
            assert got[key].tolist() == want.tolist()
        if size == LARGE:       # views of one storage stay that
            got["part"][0] = 0
            assert got["whole"][size // 3] == 0
            assert got["steps"].stride() == (2,)
        del got, sent, x, want
        give_back(spares, borrowed)
    assert not spares.sent


class Marked_array(np.ndarray):
    """An array of another class."""


def arrays(size):
    """Arrays of all kinds, by name."""
    x = np.arange(size, dtype=np.float64)
    grid = x.reshape(-1, 2) if size % 2 == 0 else x.reshape(1, -1)
    found = {f"of {d}": x.astype(d) for d in ("?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8",
                                              "g", "F", "D", ">i4", ">f8", "M8[s]", "m8[ms]", "S5", "U7", "V3")}
    found |= {"matrix": grid, "fortran": np.asfortranarray(grid), "transposed": grid.T, "steps": x[::3],
              "backwards": x[::-1], "columns": grid[:, :1], "spread": np.broadcast_to(x[:1], (size,)), "permuted":
              np.zeros((size, 2, 3)).transpose(1, 2, 0), "one": x[size // 2], "point": np.array(3.5), "none": x[:0],
              "objects": np.array([{"a": 1}, None] * 3), "records": np.zeros(size, "f4,i8"),
              "field": np.zeros(size, "f4,i8")["f0"], "unaligned": np.zeros(8 * size + 1, "u1")[1:].view("f8"),
              "kind": x.view(Marked_array), "dates, steps": x.astype("M8[s]")[::2],
              "locked": np.frombuffer(x.tobytes()), "masked": np.ma.masked_array(x, x > 3)}
    return found


@pytest.mark.parametrize("size", [1, 12, 4096, LARGE])
def test_arrays_arrive_as_they_were(pipe, size):
    carry, spares, borrowed = pipe
    want = arrays(size)
    for _ in range(2):
        got = carry([want, list(want.values())])
        for (name, a), again in zip(got[0].items(), got[1], strict=True):
            b = want[name]
            assert a is again
            assert type(a) is type(b)
            if isinstance(b, np.generic):
                assert a == b
                continue
            assert a.dtype == b.dtype
            assert a.dtype.byteorder == b.dtype.byteorder
            assert a.shape == b.shape
            assert a.tolist() == b.tolist()
            assert a.flags.c_contiguous or not b.flags.c_contiguous
            assert a.flags.f_contiguous or not b.flags.f_contiguous
            assert a.flags.aligned
            if name not in ("locked", "records", "kind", "masked"):
                before = b.copy()
                a[...] = b[...] if name == "objects" else np.zeros((), b.dtype)         # it is the receiver's own
                assert (b == before).all()
        del got, a, again
        give_back(spares, borrowed)
        assert not spares.sent


def test_buffers_of_other_objects(pipe):
    """Protocol 5 as other libraries use it: writable or not, small and large."""
    carry, spares, borrowed = pipe
    for size in (10, LARGE):
        got = carry([Buffered(bytearray(b"a" * size)), Buffered(b"b" * size)])
        assert [bytes(x.data) for x in got] == [b"a" * size, b"b" * size]
        assert not memoryview(got[0].data).readonly
        assert memoryview(got[1].data).readonly
        assert bool(spares.sent) == (size == LARGE)
        del got
        give_back(spares, borrowed)


class Buffered:
    """An object whose memory travels beside the pickle where that is possible."""

    def __init__(self, data):
        self.data = data

    def __reduce_ex__(self, protocol):
        return Buffered, (_recycle.pickle.PickleBuffer(self.data),)


LONG = {"bytes": bytes(range(256)) * 1000, "text": "\xe4bc" * 100_000, "numbers": list(range(100_000)),
        "words": [f"word {i}" for i in range(50_000)], "tensors": [ptcore.full((500,), i) for i in range(200)],
        "both": [b"a" * 50_000, ptcore.arange(LARGE), b"b" * 300_000, np.arange(LARGE), "c" * 60_000]}


@pytest.mark.parametrize("form", LONG)
def test_long_messages_lie_in_lent_memory(pipe, form, monkeypatch):
    carry, spares, borrowed = pipe
    most = []
    received = _recycle.Borrowed.open
    monkeypatch.setattr(_recycle.Borrowed, "open", lambda self, data: (most.append(len(data)), received(self, data))[1])
    for k in range(6):
        got = carry(LONG[form])
        for a, b in zip(got, LONG[form], strict=True) if isinstance(got, list) else [(got, LONG[form])]:
            assert a.tolist() == b.tolist() if hasattr(a, "tolist") else a == b
        del got, a, b
        assert borrowed.brought > 100_000
        give_back(spares, borrowed)
        # The tensor that is held here waits when it was sent once, and then goes for good.
        assert list(spares.sent) == (spares.late if form == "both" and k == 0 else [])
        assert len(spares.sent) == (form == "both" and k == 0)
        assert max(most[::2]) < 1000 < min(most[1::2])          # through the pipe, in the memory
        assert len(borrowed.segments) < 5


def test_what_is_not_plain_goes_by_the_pickle(pipe):
    carry = pipe[0]

    class Marked(Tensor):
        pass

    sys.modules[__name__].Marked = Marked
    Marked.__qualname__ = "Marked"
    held = ptcore.ones(LARGE).share_memory_()
    held_place = held.untyped_storage()._place
    for make in (lambda: ptcore.ones(LARGE), lambda: ptcore.ones(3)):
        leaf = make().requires_grad_()
        leaf.grad = make()
        named = make()
        named.name = "a"
        got = carry([leaf, ptcore.nn.Parameter(make()), make().as_subclass(Marked), named, held, np.ones(4), {"a": 1}])
        assert got[0].requires_grad
        assert got[0].grad.tolist() == leaf.tolist()
        assert [type(x) for x in got[:4]] == [Tensor, ptcore.nn.Parameter, Marked, Tensor]
        assert got[3].name == "a"
        assert got[5].tolist() == [1, 1, 1, 1]
        assert all(x.detach().tolist() == make().tolist() for x in got[:4])
        got[4][0] = 5                                   # memory that is shared stays shared
        assert held[0] == 5
        assert held.untyped_storage()._place == held_place


def test_the_user_s_reducer_is_asked(pipe):
    carry = pipe[0]
    got = carry([Celsius(3), Celsius(4)])
    assert [c.degrees for c in got] == [103, 104]


class Celsius:
    def __init__(self, degrees):
        self.degrees = degrees


copyreg.pickle(Celsius, lambda c: (Celsius, (c.degrees + 100,)))


class Fleeting:
    """Makes its tensor while it is pickled."""

    def __init__(self, value):
        self.value = value

    def __reduce__(self):
        return list, ([ptcore.full((5,), self.value)],)


def test_tensors_made_by_pickling_are_told_apart(pipe):
    got = pipe[0]([Fleeting(float(i)) for i in range(50)])
    assert [x.tolist() for [x] in got] == [[float(i)] * 5 for i in range(50)]


def test_a_segment_comes_back_and_is_sent_by_its_number(pipe):
    carry, spares, borrowed = pipe
    received = []
    for i in range(20):
        got = carry(ptcore.full((LARGE,), float(i)))
        assert bool((got == i).all())
        received.append(len(borrowed.segments))
        del got
        give_back(spares, borrowed)
    assert received == [1] * 20
    assert len(spares.free) == 1


def test_what_is_sent_again_before_it_came_back_goes_for_good(pipe):
    carry, spares, borrowed = pipe
    x = ptcore.zeros(LARGE)
    first = carry(x)
    (lent,) = borrowed.segments
    second = carry(x)
    second[0] = 1
    assert first[0] == x[0] == 1
    assert lent not in borrowed.segments                # it was told to be gone
    assert not spares.gone
    assert len(spares.shown) == 1
    third = carry(x)
    assert third.data_ptr() == second.data_ptr()
    assert set(borrowed.segments) == set(spares.shown)
    del first, second, third
    give_back(spares, borrowed)
    assert not spares.free


def test_more_than_are_lent_at_once(pipe):
    carry, spares, borrowed = pipe
    held = [carry(ptcore.full((LARGE,), float(i))) for i in range(20)]
    assert len(spares.sent) == 8
    carry(0)                    # tells the rest
    assert set(borrowed.segments) == set(spares.sent)
    assert [x[0].item() for x in held] == list(range(20))


def test_more_than_are_lent_at_once_in_one_message(pipe):
    carry, spares, borrowed = pipe
    for value in range(3):
        got = carry([ptcore.full((LARGE,), float(value + i)) for i in range(20)])
        assert [bool((x == value + i).all()) for i, x in enumerate(got)] == [True] * 20
        assert len(spares.sent) == 8
        del got
        give_back(spares, borrowed)
    x = ptcore.ones(LARGE)
    assert carry([x] + [ptcore.zeros(LARGE) for _ in range(20)] + [x[1:]])[-1].tolist() == [1.0] * (LARGE - 1)


class Unknown(dict):
    """The segments of this process, as another one knows them."""

    def __setitem__(self, key, segment):
        pass


def test_what_the_sender_keeps_is_shown_until_it_goes(pipe, monkeypatch):
    carry, spares, borrowed = pipe
    monkeypatch.setattr(_segments, "known", Unknown())
    descriptors = []
    kept = [ptcore.full((LARGE,), float(i)).share_memory_() for i in range(30)]
    for x in kept:              # as those are that were shared without a loader
        x.untyped_storage()._place[0].alone = False
    for _ in range(3):
        for i, x in enumerate(kept[:15]):
            got = carry([x, x[5:]])
            assert got[0][0] == i
            assert got[1].data_ptr() == got[0].data_ptr() + 20
            descriptors.append(len(borrowed.segments))
    assert descriptors == [*range(1, 16), *[15] * 30]
    del kept[3:6], x, got
    carry(0)
    assert len(borrowed.segments) == len(spares.shown) == 12
    for _ in range(2):          # more than are shown at once
        for x in kept:
            assert bool((carry(x) == x[0]).all())
            assert len(borrowed.segments) <= 21


def test_more_than_are_shown_in_one_message(pipe):
    """None that the receiver is told to give up is used as if it knew it."""
    carry, spares, borrowed = pipe
    kept = [ptcore.full((LARGE,), float(i)).share_memory_() for i in range(30)]
    for x in kept:
        spares.forget(x.untyped_storage()._place[0])
    for part in (kept, kept[:5], kept[20:21], kept[:5], kept[5:], kept):
        got = carry(part)
        assert [bool((a == b).all()) for a, b in zip(got, part, strict=True)] == [True] * len(part)
        del got
    carry(0)
    assert len(spares.shown) <= 20
    assert set(borrowed.segments) == set(spares.shown)


@pytest.mark.parametrize("bad", [lambda: None, threading.Lock()], ids=["function", "lock"])
def test_a_message_that_cannot_be_sent_changes_nothing(pipe, bad):
    carry, spares, borrowed = pipe
    x = ptcore.ones(LARGE)
    for _ in range(3):
        with pytest.raises((TypeError, AttributeError, _recycle.pickle.PicklingError)):
            carry([x, bad])
        assert not spares.sent
    got = carry(x)
    assert bool((got == 1).all())
    assert len(spares.sent) == len(borrowed.segments) == 1


class Caught:
    """In the place of a connection."""

    def send_bytes(self, data):
        self.data = bytes(data)


@pytest.mark.parametrize("size", [3, LARGE])
def test_a_letter_goes_on_after_what_cannot_be_sent(descriptors, size, monkeypatch):
    spares, caught = _recycle.Spares(8, 20, _segments.numbers), Caught()
    monkeypatch.setattr(_segments, "spares", spares)
    letter = _recycle.Letter(spares, io.BytesIO())
    values = [ptcore.full((size,), 1.0), ptcore.full((size,), 2.0), np.full(size, 3.0)]
    letter.add([values[:1]])
    for _ in range(3):
        with pytest.raises(TypeError):
            letter.add([[*values, b"a" * 300_000, np.zeros(size, "V9"), threading.Lock()]])
    assert len(spares.sent) == (size == LARGE)
    letter.add([{*values[1:2]}])                # no form has a set
    letter.add([values[2]])
    letter.send(caught, ("head", 1))
    arrival = Arrival(caught.data, dict(spares.sent))
    assert len(arrival.new) == len(spares.sent) == 3 * (size == LARGE)
    assert not arrival.elsewhere
    head, (first, pickled, last) = pickle.loads(arrival.head)
    assert head == ("head", 1)
    assert pickled[1:] == (False, 0)
    read = arrival.made(first) + list(_recycle._Unpickler(arrival).load()) + [arrival.made(last)]
    assert [x.tolist() for x in read] == [[float(k)] * size for k in (1, 2, 3)]


def test_objects_are_packed_as_they_are_then(pipe):
    """The same memory with other elements, several times in one letter; what occurs twice in an object still does."""
    spares, borrowed = pipe[1:]
    from ptcore.multiprocessing._connection import Pipe
    here, there = Pipe()
    for size in (3, LARGE):
        letter, array = _recycle.Letter(spares, io.BytesIO()), np.zeros(size)
        for i in range(6):
            array[:] = i
            letter.add([([array, ptcore.from_numpy(array)], [array, array], {1: array}, array)[i % 4]])
        letter.send(here, (7,))
        head, got = _recycle.receive(there, borrowed)
        assert head == 7
        values = [x if isinstance(x, list) else [x[1]] if isinstance(x, dict) else [x] for x in got]
        assert [[set(x.tolist()) for x in value] for value in values] == [[{i}] * (2 - i % 4 // 2) for i in range(6)]
        assert values[0][0] is not values[0][1]
        assert values[1][0] is values[1][1]
        del got, values
    here.close()
    there.close()


@pytest.mark.parametrize("last", [np.zeros(0), np.zeros(3, "M8[s]"), np.zeros((2, 3), order="F"), np.zeros(2, ">i4"),
                                  ptcore.zeros(2, 0), ptcore.ones(2, requires_grad=True), {1}])
def test_what_has_no_form_is_copied_once(pipe, last):
    """Also where only the last thing in it has none; and the memory comes back."""
    carry, spares, borrowed = pipe
    large, copies, find_room = np.ones(LARGE), [], _segments.find_room
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_segments, "find_room", lambda nbytes: (copies.append(nbytes), find_room(nbytes))[1])
        for i in range(20):
            large[:] = i
            found = carry({"x": large, "last": last})
            assert found["x"].tolist() == [i] * LARGE
            assert type(found["last"]) is type(last)
            del found
            spares.give_back(take_dropped(borrowed.dropped, borrowed.segments))
    assert 1 <= len(copies) <= 3


class Pair(NamedTuple):
    x: Tensor
    n: int


def test_what_has_a_form(monkeypatch, descriptors):
    """Lists, tuples and dictionaries, as they are, of tensors, arrays and numbers need no pickle; others do."""
    spares = _recycle.Spares(8, 20, _segments.numbers)
    monkeypatch.setattr(_segments, "spares", spares)
    packet = Packet(spares, 1 << 14, [])
    x, y, large = ptcore.ones(3), np.zeros((2, 2)), ptcore.zeros(LARGE)
    packet.elsewhere = True
    forms = [x, y, large, None, 3, 2.5, True, "name", [], (), {}, (x, 7), [y, [x, {"a": large, "b": (1, "c")}]],
             ((((x,),),),), ([1] * 16,), "n" * 64, {"k" * 64: 1}, y[::-1], large[::2]]
    for obj in forms:
        packet.undo()
        form = packet.form(obj)
        assert form is not None, obj
        arrival = Arrival(packet.finish(b".", 0), dict(spares.sent))
        made = arrival.made(pickle.loads(pickle.dumps(form)))
        assert type(made) is type(obj)
        assert str(made) == str(obj)
    twice = [1]
    for obj in (ptcore.ones(2, requires_grad=True), ptcore.nn.Parameter(ptcore.ones(2)), ptcore.empty(0), np.zeros(0),
                np.zeros(2, "V4"), y.T, np.float64(3), 1j, b"bytes", "n" * 65, {1: 2}, {"k" * 65: 1}, {1}, [x, x],
                [twice, twice], [1] * 17, (((((x,),),),),), Pair(x, 1), [large, object()], np.ma.zeros(3)):
        packet.undo()
        assert packet.form(obj) is None, obj
        assert packet.mark() == (0, 0, 0, 0, 0)
    loop = []
    loop.append(loop)
    assert packet.form(loop) is None
    packet.elsewhere = False                            # where segments go by names
    assert packet.form(x) is None


@pytest.mark.parametrize("elsewhere", [False, True])
def test_damaged_packets_raise(monkeypatch, descriptors, elsewhere):
    """Whatever their last numbers say: an error, or a tensor inside the memory that there is."""
    spares, caught = _recycle.Spares(8, 20, _segments.numbers), Caught()
    monkeypatch.setattr(_segments, "spares", spares)
    x = ptcore.arange(LARGE)
    objects = [x, x.reshape(250, 200).t(), ptcore.ones(2, 3), ptcore.tensor(7), np.arange(5), np.arange(LARGE)[::-1],
               np.zeros(LARGE, "f4,i8")]
    letter = _recycle.Letter(spares, io.BytesIO())
    letter.add([[*objects, b"a" * 100_000] if elsewhere else objects])
    letter.add([{"x": objects[:3], "y": (objects[3:6], 7)}])
    letter.send(caught, ())
    data = caught.data
    segments = dict(spares.sent)
    rng = random.Random(0)
    outcomes = set()
    words, numbers = np.frombuffer(data, np.int64), (-1, 0, 1, 2, 5, 64, 65, 250, 2**31, 2**62, -2**63, 2**63 - 1)
    for k in range(20_000):
        if k < len(data):
            broken = data[:k]
        else:
            changed = words.copy()
            for _ in range(rng.choice((1, 1, 2, 4))):
                at = len(words) - rng.randint(1, min(110, len(words)))
                changed[at] = rng.choice((*numbers, changed[at] ^ 1))
            broken = changed.tobytes()
        try:
            arrival = Arrival(broken, segments)
            if arrival.elsewhere:
                arrival = Arrival(arrival.item(0), segments)
            _, (_, form) = pickle.loads(arrival.head)
            made = arrival.made(form)
            for t in (*_recycle._Unpickler(arrival).load(), *made["x"], *made["y"][0]):
                if isinstance(t, Tensor) and t.numel() < 1 << 20:
                    t.sum()
                elif isinstance(t, np.ndarray) and t.size < 1 << 20:
                    t.tobytes()
            outcomes.add("read")
        except Exception as e:
            outcomes.add(type(e).__name__)
    assert "read" in outcomes
    assert "ValueError" in outcomes


def test_a_packet_of_thousands_of_tensors(monkeypatch, descriptors):
    spares = _recycle.Spares(4, 4, _segments.numbers)
    monkeypatch.setattr(_segments, "spares", spares)
    packet = Packet(spares, 1 << 14, [])
    packet.elsewhere = True
    xs = [ptcore.full((k % 50 + 1,), float(k)) for k in range(5000)]
    ids = [packet.reduce(x)[1][0] for x in xs]
    there = Arrival(packet.finish(b".", 0), dict(spares.sent))
    assert there.elsewhere
    arrival = Arrival(there.item(0), {})
    for k, which in enumerate(ids):
        assert arrival.item(which).tolist() == [float(k)] * (k % 50 + 1)
    with pytest.raises(ValueError, match="no record"):
        arrival.item(1 << 40)


def test_moved_while_a_kernel_reads_it(descriptors):
    """The segment of a new tensor comes back although a thread's kernel reads the tensor while it is resized."""
    free = []
    segments = [_segments.Anonymous.new(1 << 20) for _ in range(2)]
    free.extend(segments)
    lend_memory(free, 1 << 19, 2)
    try:
        for _ in range(30):
            x = ptcore.empty(1 << 18)
            assert len(free) == 1                       # it lies in one of them
            x.zero_()
            begun = threading.Event()

            def read(x=x, begun=begun):
                begun.set()
                for _ in range(20):
                    x.reshape(512, 512) @ x.reshape(512, 512)

            thread = threading.Thread(target=read)
            thread.start()
            begun.wait()
            x.untyped_storage().resize_(1 << 21)
            thread.join()
            del x, read
            assert sorted(map(id, free)) == sorted(map(id, segments))
            assert all(s.is_idle() for s in segments)
    finally:
        lend_memory(None)


# -- what comes back -----------------------------------------------------------------------------------------------

@pytest.fixture
def page(descriptors):
    """Makes a segment with room for so many numbers."""
    return lambda count: _segments.Anonymous.new(8 * (16 + count))


def test_numbers_come_back_in_their_order(page):
    segment = page(5)
    loader, worker = Returns(segment), Returns(segment)
    assert worker.take() is None
    assert loader.put([]) == []
    assert worker.take() is None
    told, taken, left = 0, [], []
    for count in [1, 5, 0, 3, 7, 2, 5, 4, 9, 1] * 3:        # they go round, and have no room at times
        left = loader.put(left + list(range(told, told + count)))
        told += count
        assert len(left) < told
        if count % 2:
            taken += worker.take() or []
    while left:
        left = loader.put(left)
        taken += worker.take()
    assert taken + (worker.take() or []) == list(range(told))
    put = segment.storage(0, 8)
    assert loader.put([1, 2, 3, 4, 5, 6, 7]) == [6, 7]
    seen = put.tolist()
    assert Returns(segment).put([]) == []           # as a child of the loader's process does: nothing is written
    assert put.tolist() == seen
    assert loader.put([8]) == [8]
    assert worker.take() == [1, 2, 3, 4, 5]


def test_two_processes_see_the_same_returns(page):
    """Numbers are put as fast as can be by one process and taken by another; none is lost, twice there, or early."""
    segment = page(3)
    returns = Returns(segment)
    count = 20_000
    answers, mine = ptcore.multiprocessing.Pipe(duplex=False)
    process = ptcore.multiprocessing.get_context("spawn").Process(target=count_returns, args=(segment, count, mine))
    process.start()
    mine.close()
    left, at = [], 0
    while (at < count or left) and process.is_alive():
        if not left:
            left = list(range(at, min(at + 7, count)))
            at += len(left)
        left = returns.put(left)
    assert answers.recv() == "in order"
    process.join()
    assert process.exitcode == 0


def count_returns(segment, count, pipe):
    returns, at = Returns(segment), 0
    while at < count:
        for number in returns.take() or ():
            if number != at:
                pipe.send(f"{number} in the place of {at}")
                return
            at += 1
    pipe.send("in order")


def test_memory_of_returns(page):
    with pytest.raises(ValueError, match="more than 128 bytes, got 128"):
        Returns(page(0))
    with pytest.raises(TypeError, match="segment"):
        Returns(None)
    with pytest.raises(TypeError):
        Returns.__new__(Returns)


def test_what_is_shown_again_does_not_come_back(pipe, page):
    """A number goes back only while no storage lies in its segment; one that is gone does not."""
    carry, spares, borrowed = pipe
    returns = Returns(page(48))
    got = carry([ptcore.zeros(LARGE), ptcore.ones(LARGE)])
    kept, (first, second) = got[1], list(borrowed.segments)
    del got
    returns.give_back(borrowed.dropped, borrowed.segments)
    assert borrowed.dropped == []
    assert returns.take() == [first]
    again = borrowed.segments[second].storage(0, 4 * LARGE)
    del kept                                        # another storage of that segment lives
    returns.give_back(borrowed.dropped, borrowed.segments)
    assert returns.take() is None
    del again
    borrowed.keep_no_more([first])
    borrowed.dropped.append(first)
    spares.take_back(returns)
    returns.give_back(borrowed.dropped, borrowed.segments)
    assert set(spares.sent) == {first, second}
    spares.take_back(returns)
    assert set(spares.sent) == {first}
    assert [s.number for s in spares.free] == [second]


def test_a_number_that_was_noted_twice_comes_back_once(page):
    segment = _segments.Anonymous.new(64)
    returns, dropped = Returns(page(1)), [5, 5, 5]
    returns.give_back(dropped, {5: segment})
    assert dropped == []
    assert returns.take() == [5]
    returns.give_back(dropped, {5: segment})
    assert returns.take() is None


def test_what_the_sender_holds_still_waits(pipe, page):
    """Its segment is used again once the sender has dropped it too; what it sends again goes for good."""
    carry, spares, borrowed = pipe
    returns = Returns(page(8))

    def come_back():
        returns.give_back(borrowed.dropped, borrowed.segments)
        spares.take_back(returns)

    x = ptcore.zeros(LARGE)
    carry(x)
    come_back()
    (number,) = spares.sent
    assert spares.late == [number]
    come_back()
    assert spares.late == [number]
    assert not spares.free
    del x
    come_back()
    assert not spares.late
    assert not spares.sent
    assert [s.number for s in spares.free] == [number]
    x = ptcore.ones(LARGE)                              # lies there
    assert not spares.free
    carry(x)
    come_back()
    assert spares.late == [number]
    got = carry(x)
    assert not spares.sent
    x[0] = 2                                            # the receiver shows the same memory, which is not lent
    assert got[0] == 2
    come_back()
    del got
    come_back()
    assert not spares.late
    assert not spares.free
