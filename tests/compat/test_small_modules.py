"""futures, hub, monitor, quasirandom and nn.parallel."""
import datetime
import hashlib
import sys
import threading

import numpy as np
import pytest
from scipy.stats import qmc

import ptcore as pt
from ptcore import futures, hub, monitor, nn

pytestmark = pytest.mark.core


def test_futures():
    future = futures.Future()
    seen = []
    future.add_done_callback(lambda f: seen.append(f.value()))
    follower = future.then(lambda f: f.value() + 1)
    failing = future.then(lambda f: 1 / 0)
    assert not future.done()
    with pytest.raises(RuntimeError, match="not done"):
        future.value()
    threading.Timer(0.01, future.set_result, (3,)).start()
    assert future.wait() == 3 and follower.wait() == 4 and seen == [3] and future.done()
    with pytest.raises(ZeroDivisionError):
        failing.wait()
    with pytest.raises(RuntimeError, match="once"):
        future.set_result(1)
    assert futures.wait_all([future, follower]) == [3, 4]
    assert futures.collect_all([]).wait() == []
    assert futures.collect_all([future]).wait() == [future]
    with pytest.raises(ZeroDivisionError):
        futures.wait_all([future, failing])
    with pytest.raises(AssertionError):
        futures.Future().set_exception("no")
    with pytest.raises(TypeError, match="callable"):
        future.then(3)
    with pytest.raises(TypeError, match="list of Future"):
        futures.collect_all([future, 3])


def test_collected_futures_fail_with_the_first_error():
    first, second = futures.Future(), futures.Future()
    both = futures.collect_all([first, second])
    second.set_exception(KeyError("second"))
    assert not both.done()
    first.set_exception(IndexError("first"))
    with pytest.raises(IndexError):
        both.wait()


def test_an_interrupt_in_a_callback_leaves_no_future_open():
    future, seen = futures.Future(), []

    def interrupt(f):
        raise KeyboardInterrupt

    follower = future.then(interrupt)
    future.add_done_callback(lambda f: seen.append(f.value()))
    with pytest.raises(KeyboardInterrupt):
        future.set_result(1)
    assert seen == [1] and follower.done()
    with pytest.raises(KeyboardInterrupt):
        follower.wait()

    def interrupted(future):
        raise KeyboardInterrupt
    source = futures.Future()
    left = source.then(interrupted)
    with pytest.raises(KeyboardInterrupt):
        source.set_result(1)
    with pytest.raises(KeyboardInterrupt):
        left.wait()


def test_hub(tmp_path):
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['numpy']\nfrom beside import K\ndef small(n=2):\n    'a model'\n    return n * K\n")
    (tmp_path / "beside.py").write_text("K = 10\n")
    folder = str(tmp_path)
    assert hub.list(folder) == ["small"] and hub.help(folder, "small") == "a model"
    assert hub.load(folder, "small", source="local", n=3) == 30
    (tmp_path / "later.py").write_text("K = 5\n")
    (tmp_path / "hubconf.py").write_text("def late():\n    import later\n    return later.K\n")
    path = list(sys.path)
    assert hub.load(folder, "late", source="local") == 5 and sys.path == path
    with pytest.raises(RuntimeError, match="Cannot find callable"):
        hub.load(folder, "large", source="local")
    assert sys.path == path
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(folder, "small", source="x")
    for call in (lambda: hub.load("a/b", "c"), lambda: hub.list("a/b"),
                 lambda: hub.download_url_to_file("http://x/y.pt", "y.pt")):
        with pytest.raises(NotImplementedError, match="downloads nothing"):
            call()


def test_hub_checkpoints(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "_folder", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert hub.get_dir() == str(tmp_path / "hub")
    hub.set_dir(tmp_path)
    places = tmp_path / "checkpoints"
    places.mkdir()
    pt.save({"a": pt.ones(2)}, places / "m.pt")
    digest = hashlib.sha256((places / "m.pt").read_bytes()).hexdigest()
    (places / "m.pt").rename(places / f"m-{digest[:8]}.pt")
    url = f"https://example.org/m-{digest[:8]}.pt?x=1"
    assert hub.load_state_dict_from_url(url, check_hash=True)["a"].tolist() == [1, 1]
    (places / "m-00000000.pt").write_bytes(b"x")
    with pytest.raises(RuntimeError, match="invalid hash"):
        hub.load_state_dict_from_url("https://example.org/m-00000000.pt", check_hash=True)
    with pytest.raises(NotImplementedError, match="downloads nothing"):
        hub.load_state_dict_from_url("https://example.org/other.pt")


def test_monitor():
    events = []
    handle = monitor.register_event_handler(events.append)
    stat = monitor.Stat("s", [monitor.Aggregation.SUM, monitor.Aggregation.MAX], datetime.timedelta(hours=1), 2)
    stat.add(1.0)
    assert stat.count == 1 and stat.get()[monitor.Aggregation.SUM] == 1
    stat.add(3.0)
    assert [e.data for e in events] == [{"s.sum": 4.0, "s.max": 3.0}] and stat.count == 0
    monitor.unregister_event_handler(handle)
    monitor.log_event(monitor.Event("x", datetime.datetime.now(), {}))
    assert len(events) == 1


def test_sobol():
    engine = pt.quasirandom.SobolEngine(3)
    first = engine.draw(5)
    assert first.dtype == pt.float32 and engine.num_generated == 5
    np.testing.assert_allclose(first.numpy(), qmc.Sobol(3, scramble=False).random(8)[:5], rtol=1e-6)
    engine.reset().fast_forward(2)
    assert engine.draw(3, dtype=pt.float64).tolist() == first[2:].double().tolist()
    with pytest.raises(ValueError, match="power of 2"):
        engine.draw_base2(3)
    scrambled = [pt.quasirandom.SobolEngine(2, scramble=True, seed=s).draw(4).tolist() for s in (1, 1, 2)]
    assert scrambled[0] == scrambled[1] != scrambled[2]
    with pt.device("meta"):
        assert pt.quasirandom.SobolEngine(2, scramble=True).draw(4).device.type == "cpu"
    for method in (engine.draw, engine.fast_forward):
        with pytest.raises(ValueError, match="n must not be negative, got -1"):
            method(-1)
        with pytest.raises(TypeError, match="n must be"):
            method(1.5)
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match="dimensionality"):
            pt.quasirandom.SobolEngine(dimension)


@pytest.mark.parametrize("dtype", [pt.float16, pt.bfloat16, pt.float32, pt.float64])
def test_sobol_points_are_below_1(dtype, monkeypatch):
    engine = pt.quasirandom.SobolEngine(1)
    monkeypatch.setattr(engine._engine, "random", lambda n: np.full((n, 1), 1 - 2.0**-30))
    points = engine.draw(3, dtype=dtype)
    assert points.dtype == dtype and bool((points < 1).all()) and bool((points > 0.99).all())


def test_parallel_apply():
    nets, x = [nn.Linear(2, 3), nn.Linear(2, 1)], pt.randn(4, 2)
    found = nn.parallel.parallel_apply(nets, [x, (x,)])
    assert pt.equal(found[0], nets[0](x)) and pt.equal(found[1], nets[1](x))
    for inputs, others in (([x], {}), ([x, x, x], {}), ([x, x], {"kwargs_tup": [{}]}), ([x, x], {"devices": [0]})):
        with pytest.raises(AssertionError, match="as many as the 2 modules, got"):
            nn.parallel.parallel_apply(nets, inputs, **others)


def test_data_parallel_over_no_device():
    net = nn.Linear(2, 3)
    wrapped = nn.DataParallel(net, device_ids=[])
    x = pt.randn(4, 2)
    assert pt.equal(wrapped(x), net(x)) and list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    assert pt.equal(nn.parallel.data_parallel(net, x, []), net(x))
    with pytest.raises(NotImplementedError, match="at most one"):
        nn.DataParallel(net, device_ids=[0, 1])
    with pytest.raises(NotImplementedError, match="distributed"):
        nn.parallel.DistributedDataParallel(net)


def test_storages_of_files(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(np.arange(8, dtype="<i4").tobytes())
    storage = pt.storage.UntypedStorage.from_file(str(path), shared=False, nbytes=32)
    assert isinstance(storage, pt.storage.UntypedStorage) and storage.nbytes() == 32 and storage.untyped() is storage
    assert storage[4] == 1 and storage[-1] == 0
    part = storage[8:16]
    assert type(part) is pt.UntypedStorage and part.data_ptr() == storage.data_ptr() + 8 and len(part) == 8
    values = pt.asarray(part, dtype=pt.uint8).view(dtype=pt.int32)      # as readers of safetensors do
    assert values.tolist() == [2, 3] and values.untyped_storage() is part
    values[0] = 9
    assert storage[8] == 9 and path.read_bytes()[8] == 2        # the file is not written
    shared = pt.storage.UntypedStorage.from_file(str(path), shared=True, nbytes=32)
    shared[0:4].fill_(1)
    assert path.read_bytes()[:5] == b"\x01\x01\x01\x01\x01"
    with pytest.raises(RuntimeError, match="at least 40"):
        pt.storage.UntypedStorage.from_file(str(path), nbytes=40)
    with pytest.raises(IndexError):
        storage[32]
