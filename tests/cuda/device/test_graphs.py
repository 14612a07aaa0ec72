"""Graphs: what is captured runs again, from the memory that it had, and as eager calls would."""
import gc
import os
import threading
import weakref
from functools import partial

import in_process
import numpy as np
import pytest

import ptcore
from ptcore import cuda, nn
from ptcore.nn import functional as F

STANDIN = os.environ.get("PTCORE_TEST_CUDA") == "standin"


@pytest.fixture(autouse=True)
def nothing_captures():
    cuda.set_device(0)
    yield
    assert not cuda.is_current_stream_capturing()
    cuda.synchronize()


def captured(function, **options):
    """A graph of a call, and what the call returned."""
    g = cuda.CUDAGraph()
    with cuda.graph(g, **options):
        result = function()
    return g, result


def test_a_graph_runs_again_on_new_values(order):
    x, y = ptcore.zeros(1000, device="cuda"), ptcore.ones(1000, device="cuda")
    g, z = captured(lambda: (x * 2 + y).cumsum(0) @ y)
    for i in range(5):
        order(i)
        x.fill_(i)
        g.replay()
        z += 1                          # what follows reads the result, and may change it
        assert z.item() == (2 * i + 1) * 1000 * 1001 / 2 + 1


def test_nothing_runs_while_it_is_captured():
    x = ptcore.zeros(4, device="cuda")
    g, _ = captured(lambda: x.add_(1))
    assert x.tolist() == [0, 0, 0, 0]
    g.replay()
    g.replay()
    assert x.tolist() == [2, 2, 2, 2]


def test_is_capturing():
    assert not cuda.is_current_stream_capturing()
    g = cuda.CUDAGraph()
    seen = []
    with cuda.graph(g):
        seen.append(cuda.is_current_stream_capturing())
        ptcore.ones(3, device="cuda")
    assert seen == [True]


def test_several_streams(order):
    """A second stream takes part by its wait, and must be waited for."""
    x, side = ptcore.zeros(500, device="cuda"), cuda.Stream()

    def work():
        now = cuda.current_stream()
        a = x + 1
        side.wait_stream(now)
        with cuda.stream(side):
            b = a * 10
            b.record_stream(now)
        c = x - 1
        now.wait_stream(side)
        return b + c

    g, z = captured(work)
    for i in range(10):
        order(i)
        x.fill_(i)
        g.replay()
        assert z.sum().item() == 500 * ((i + 1) * 10 + i - 1)


def test_a_stream_that_nobody_waits_for():
    x, side = ptcore.ones(3, device="cuda"), cuda.Stream()

    def work():
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            x.add_(1)

    with pytest.raises(RuntimeError, match="capture_end: CUDA error 904"):
        captured(work)
    g, _ = captured(lambda: x.add_(1))          # the next one is not touched
    g.replay()
    assert x.tolist() == [2, 2, 2]


def test_external_events_take_the_time_of_a_part():
    x = ptcore.ones(1000, device="cuda")
    start, end = (cuda.Event(enable_timing=True, external=True) for _ in range(2))

    def work():
        start.record()
        x.mul_(2)
        end.record()

    g, _ = captured(work)
    assert start.query() and end.query()            # not recorded yet
    for _ in range(3):
        g.replay()
        end.synchronize()
        assert 0 <= start.elapsed_time(end) < 10_000
    assert x.tolist() == [8] * 1000


def test_external_events_let_others_wait_for_a_part(order):
    x, y = ptcore.zeros(1000, device="cuda"), ptcore.zeros(1000, device="cuda")
    side, middle = cuda.Stream(), cuda.Event(external=True)

    def work():
        x.add_(1)
        middle.record()
        for _ in range(5):
            y.add_(x)

    g, _ = captured(work)
    for i in range(10):
        order(i)
        g.replay()
        with cuda.stream(side):
            middle.wait()
            got = x.clone()
        side.synchronize()
        assert got.tolist() == [i + 1] * 1000
        cuda.synchronize()
    assert y[0].item() == 5 * 55


def test_graphs_wait_for_external_events(order):
    """For the newest record before each launch; for none if there was none."""
    x, side, ready = ptcore.zeros(1000, device="cuda"), cuda.Stream(), cuda.Event(external=True)

    def work():
        ready.wait()
        return x * 2

    g, y = captured(work)
    g.replay()
    assert y.tolist() == [0] * 1000
    for i in range(1, 10):
        order(i)
        with cuda.stream(side):
            x.fill_(i)
            ready.record()
        g.replay()
        assert y.tolist() == [2 * i] * 1000


def test_a_graph_keeps_its_external_events():
    x, g, seen = ptcore.zeros(3, device="cuda"), cuda.CUDAGraph(), []

    def work(fails):
        event = cuda.Event(external=True)
        seen.append(weakref.ref(event))
        x.add_(1)
        event.record()
        if fails:
            raise ZeroDivisionError

    with cuda.graph(g):
        work(False)
    g.replay()
    assert x.tolist() == [1, 1, 1] and seen[0]() is not None
    g.reset()
    assert seen[0]() is None
    with pytest.raises(ZeroDivisionError), cuda.graph(g):
        work(True)
    gc.collect()
    assert seen[1]() is None


def test_external_events_beside_captures():
    """Outside of a capture, and within one if it is not said, an event is one of the stream's work."""
    event, inner = cuda.Event(external=True), cuda.Event()
    x = ptcore.ones(3, device="cuda")
    event.record()
    event.wait()
    event.synchronize()
    side = cuda.Stream()

    def work():
        inner.record()
        side.wait_event(inner)
        with cuda.stream(side):
            x.add_(1)
        cuda.current_stream().wait_stream(side)

    g, _ = captured(work)
    g.replay()
    assert x.tolist() == [2, 2, 2] and event.query()


WAITS = {
    "item": lambda x, m: x[0].item(), "tolist": lambda x, m: x.tolist(), "print": lambda x, m: repr(x),
    "cpu": lambda x, m: x.cpu(), "to the device": lambda x, m: x.copy_(ptcore.zeros(64)),
    "not waited for, pageable": lambda x, m: x.copy_(ptcore.zeros(64), non_blocking=True),
    "nonzero": lambda x, m: x.nonzero(), "a mask": lambda x, m: x[m], "unique": lambda x, m: x.unique(),
    "bool": lambda x, m: bool(x.any()), "tensor": lambda x, m: ptcore.tensor([1., 2.], device="cuda"),
    "repeats": lambda x, m: x.repeat_interleave(m.long()),
    "masked_select": lambda x, m: ptcore.masked_select(x, m),
}


@pytest.mark.parametrize("what", WAITS)
def test_what_waits_is_named(what):
    """Of all ops these need values on the host; the capture is dropped, and the device as it was."""
    x, mask = ptcore.eye(8, device="cuda").reshape(-1), ptcore.ones(64, device="cuda") > 0
    g = cuda.CUDAGraph()
    text = "waits for the device, which cannot become part of a CUDA graph"
    with pytest.raises(RuntimeError, match=text), cuda.graph(g):
        WAITS[what](x, mask)
    with pytest.raises(RuntimeError, match="has not been captured"):
        g.replay()
    assert (x + 1).sum().item() == 72


def test_page_locked_copies_become_part():
    host, back = ptcore.zeros(4).pin_memory(), ptcore.zeros(4).pin_memory()
    x = ptcore.empty(4, device="cuda")

    def work():
        x.copy_(host, non_blocking=True)
        back.copy_(x * 2, non_blocking=True)

    g, _ = captured(work)
    for i in range(3):
        host.fill_(i)
        g.replay()
        cuda.synchronize()
        assert back.tolist() == [2 * i] * 4


def test_random_numbers_go_on():
    """As many calls draw as many numbers, whether a graph makes them or not; dropout of attention too."""
    q = ptcore.ones(1, 2, 8, 4, device="cuda")

    def draw():
        return (ptcore.rand(50, device="cuda"), F.dropout(ptcore.ones(50, device="cuda")),
                ptcore.randperm(50, device="cuda"), ptcore.randint(9, (50,), device="cuda"),
                ptcore.bernoulli(ptcore.full((50,), 0.5, device="cuda")),
                ptcore.poisson(ptcore.full((50,), 3., device="cuda")),
                F.scaled_dot_product_attention(q, q, q, dropout_p=0.5))

    ptcore.manual_seed(7)
    want = [[t.cpu() for t in draw()] for _ in range(3)]
    ptcore.manual_seed(7)
    draw()
    before = cuda.get_rng_state()
    g, drawn = captured(draw)
    assert cuda.get_rng_state().equal(before)           # a capture draws nothing
    for i in range(1, 3):
        g.replay()
        assert all(a.cpu().equal(b) for a, b in zip(drawn, want[i]))
    ptcore.manual_seed(7)
    g.replay()
    assert all(a.cpu().equal(b) for a, b in zip(drawn, want[0]))


def drawing(total, seed=7):
    """A graph that adds uniform numbers to a tensor, and the sums of its first replays."""
    ptcore.manual_seed(seed)
    draws = [ptcore.rand(total.shape, device="cuda").cpu() for _ in range(4)]
    ptcore.manual_seed(seed)
    x = ptcore.ones(5000, device="cuda")

    def work():
        for _ in range(10):
            x.mul_(1)
        total.add_(ptcore.rand(total.shape, device="cuda"))

    g, _ = captured(work)
    return g, [sum(draws[:k]) for k in range(5)]


def test_a_graph_that_is_dropped_under_its_launch(order):
    """The memory that says where its random numbers begin is in use until then."""
    for i in range(20):
        order(i)
        total, x, side = ptcore.zeros(100, device="cuda"), ptcore.ones(5000, device="cuda"), cuda.Stream()
        g, sums = drawing(total)
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            g.replay()
        del g
        with cuda.stream(cuda.graph.default_capture_stream):
            for _ in range(10):
                x.mul_(1)
            others = [ptcore.full((2,), 5, dtype=ptcore.int64, device="cuda") for _ in range(50)]
        cuda.synchronize()
        assert total.cpu().equal(sums[1]) and len(others) == 50


def test_replays_on_several_streams(order):
    """Each draws the numbers that follow those of the launch before, on whichever stream that was."""
    for i in range(20):
        order(i)
        total, x = ptcore.zeros(100, device="cuda"), ptcore.ones(5000, device="cuda")
        sides = [cuda.Stream(), cuda.Stream()]
        g, sums = drawing(total)
        for side in sides:
            side.wait_stream(cuda.current_stream())
        for side in (sides[0], sides[1], sides[0]):
            with cuda.stream(side):
                x = x.cumsum(0) / 5000
                g.replay()
        cuda.synchronize()
        np.testing.assert_allclose(total.cpu(), sums[3], rtol=1e-6)


@pytest.mark.skipif(cuda.device_count() < 2, reason="needs two devices")
def test_captures_on_two_devices_at_once():
    """Each draws from its own device's generator, and refuses others, until it ends itself."""
    def draw(i):
        return ptcore.rand(100, device=f"cuda:{i}")

    def refused(i):
        with pytest.raises(RuntimeError, match="default generator alone"):
            ptcore.rand(3, generator=ptcore.Generator(f"cuda:{i}"), device=f"cuda:{i}")

    ptcore.manual_seed(5)
    want = [[draw(i).cpu() for _ in range(2)] for i in range(2)]
    ptcore.manual_seed(5)
    graphs, results = [cuda.CUDAGraph(), cuda.CUDAGraph()], []
    with cuda.graph(graphs[0], capture_error_mode="relaxed"):
        results.append(draw(0))
        with cuda.device(1), cuda.graph(graphs[1], capture_error_mode="relaxed"):
            results.append(draw(1))
            refused(0)
            refused(1)
        refused(0)
        ptcore.rand(3, generator=ptcore.Generator("cuda:1"), device="cuda:1")
    for k in range(2):
        for i, (g, result) in enumerate(zip(graphs, results)):
            g.replay()
            assert result.cpu().equal(want[i][k])


@pytest.mark.parametrize("ends", ["", "g.keep = [g]", "cuda.set_stream(cuda.Stream())\nh.capture_begin()"])
def test_graphs_live_at_the_exit(ends):
    """As a global, in a cycle, and while another one is captured."""
    code = """
g, h, x = cuda.CUDAGraph(), cuda.CUDAGraph(), ptcore.ones(3, device="cuda")
with cuda.graph(g):
    y = x + 1
g.replay()
print(y.tolist())
"""
    assert in_process.run(code + ends, quiet=True) == ["[2.0, 2.0, 2.0]"]


def test_generators_of_a_capture():
    own = ptcore.Generator("cuda")
    with pytest.raises(RuntimeError, match="default generator alone"):
        captured(lambda: ptcore.rand(3, generator=own, device="cuda"))
    with pytest.raises(RuntimeError, match="seeded or set back within the capture"):
        captured(lambda: ptcore.manual_seed(3) and ptcore.rand(3, device="cuda"))
    g = cuda.CUDAGraph()
    g.register_generator_state(cuda.default_generators[0])
    with pytest.raises(NotImplementedError, match="default generator alone"):
        g.register_generator_state(own)


def step_of(model, optimizer, x, y):
    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return step


def network():
    ptcore.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 32), nn.LayerNorm(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 5)).cuda()


OPTIMIZERS = {
    "sgd": lambda p, c: ptcore.optim.SGD(p, 0.1),
    "momentum": lambda p, c: ptcore.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    "adam": lambda p, c: ptcore.optim.Adam(p, 0.01, weight_decay=0.1, capturable=c),
    "adamw": lambda p, c: ptcore.optim.AdamW(p, 0.01, amsgrad=True, capturable=c),
    "nadam": lambda p, c: ptcore.optim.NAdam(p, 0.01, capturable=c),
    "radam": lambda p, c: ptcore.optim.RAdam(p, 0.01, capturable=c),
    "adamax": lambda p, c: ptcore.optim.Adamax(p, 0.01, capturable=c),
    "adadelta": lambda p, c: ptcore.optim.Adadelta(p, capturable=c),
    "asgd": lambda p, c: ptcore.optim.ASGD(p, 0.01, t0=2, capturable=c),
    "rmsprop": lambda p, c: ptcore.optim.RMSprop(p, 0.01, momentum=0.5, centered=True, capturable=c),
    "rprop": lambda p, c: ptcore.optim.Rprop(p, 0.01, capturable=c),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_whole_training_step(name):
    """Losses and weights are those of eager steps, which count on the host; bit for bit where pow is the host's."""
    batches = [(ptcore.randn(16, 20), ptcore.randint(5, (16,))) for _ in range(8)]
    losses, weights = [], []
    for graphed in (False, True):
        x, y = batches[0][0].cuda(), batches[0][1].cuda()
        model = network()
        optimizer = OPTIMIZERS[name](model.parameters(), graphed)
        step = step_of(model, optimizer, x, y)
        ptcore.manual_seed(1)
        side = cuda.Stream()
        with cuda.stream(side):
            side.wait_stream(cuda.default_stream())
            for _ in range(3):
                step()
        cuda.current_stream().wait_stream(side)
        if graphed:
            g, loss = captured(step)
        found = []
        for a, b in batches:
            x.copy_(a)
            y.copy_(b)
            if graphed:
                g.replay()
            else:
                loss = step()
            found.append(loss.item())
        losses.append(found)
        weights.append([p.detach().cpu() for p in model.parameters()])
    np.testing.assert_allclose(losses[0], losses[1], rtol=0 if STANDIN else 1e-5)
    for a, b in zip(*weights):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=0 if STANDIN else 1e-4, atol=0 if STANDIN else 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_steps_that_count_on_the_device(dtype, launches):
    """Many tensors of any length and place in two launches; the learning rate may be a tensor that changes."""
    results = []
    for capturable in (False, True):
        rng = np.random.default_rng(0)
        params = [ptcore.from_numpy(rng.normal(size=n)).to(getattr(ptcore, dtype)).cuda()
                  for n in (1, 4096, 4097, 33, 9000)]
        params = [nn.Parameter(p[1:] if len(p) == 33 else p) for p in params]
        rate = ptcore.tensor(0.1, device="cuda") if capturable else ptcore.tensor(0.1).item()
        optimizer = ptcore.optim.Adam(params, rate, betas=(0.8, 0.9), capturable=capturable)
        for i in range(4):
            for p in params:
                p.grad = (p.detach() * (i + 1)).sin()
            if capturable and i:
                assert launches(optimizer.step) == 2
            else:
                optimizer.step()
            if i == 1:
                if capturable:
                    rate.fill_(0.025)
                else:
                    optimizer.param_groups[0]["lr"] = ptcore.tensor(0.025).item()
        results.append([p.detach().cpu() for p in params])
        steps = [s["step"] for s in optimizer.state.values()]
        assert all(s.item() == 4 and s.is_cuda == capturable for s in steps)
    for a, b in zip(*results):
        np.testing.assert_allclose(a.double().numpy(), b.double().numpy(), rtol=2e-7 if dtype != "bfloat16" else 0.01)


def test_states_of_capturable_steps_move():
    p = nn.Parameter(ptcore.ones(5, device="cuda"))
    first = ptcore.optim.Adam([p], 0.1, capturable=True)
    p.grad = ptcore.ones(5, device="cuda")
    first.step()
    saved = first.state_dict()
    saved["state"][0]["step"] = saved["state"][0]["step"].cpu()
    second = ptcore.optim.Adam([p], 0.1, capturable=True)
    second.load_state_dict(saved)
    g, _ = captured(second.step)
    g.replay()
    assert second.state[p]["step"].item() == 2 and second.state[p]["step"].is_cuda


def test_steps_that_cannot_be_captured():
    p = nn.Parameter(ptcore.ones(5, device="cuda"))
    p.grad = ptcore.ones(5, device="cuda")
    with pytest.raises(RuntimeError, match=r"Adam.step: a CUDA graph is being captured.*capturable=True\)"):
        captured(ptcore.optim.Adam([p], 0.1).step)
    with pytest.raises(RuntimeError, match="counts its steps on the host"):
        captured(ptcore.optim.Adafactor([p], 0.1).step)
    assert p.tolist() == [1] * 5


@pytest.mark.skipif(not STANDIN, reason="of the stand-in driver")
def test_what_a_launch_takes(launches, driver):
    from standin import Driver
    model = network()
    optimizer = OPTIMIZERS["sgd"](model.parameters(), False)
    step = step_of(model, optimizer, ptcore.randn(16, 20).cuda(), ptcore.zeros(16).long().cuda())
    step()
    cuda.synchronize()
    g, _ = captured(step)
    before = Driver(driver).counters()
    g.replay()
    after = Driver(driver).counters()
    assert after["launches"] == before["launches"] and after["graphs"] == before["graphs"] + 1
    assert after["allocations"] == before["allocations"]
    assert after["fills"] - before["fills"] == 4        # dropout's place


# -- memory ---------------------------------------------------------------------------------------------------

def test_memory_of_a_graph_is_its_own():
    """What a graph reads and writes is given to nobody else, after its tensors have died too."""
    x = ptcore.ones(100_000, device="cuda")
    g, z = captured(lambda: ((x + 1) * 3).sqrt() + (x - 1))
    others = [ptcore.full((100_000,), 7., device="cuda") for _ in range(20)]
    g.replay()
    assert all((o == 7).all().item() for o in others)
    assert abs(z[5].item() - 6 ** 0.5) < 1e-6
    del others
    cuda.empty_cache()
    g.replay()
    assert abs(z[5].item() - 6 ** 0.5) < 1e-6


def test_memory_goes_back():
    cuda.empty_cache()
    before = cuda.memory_reserved()
    x = ptcore.ones(3_000_000, device="cuda")
    g, z = captured(partial(lambda x: x * 2 + 1, x))
    held = cuda.memory_reserved()
    del x
    cuda.empty_cache()
    assert before < cuda.memory_reserved() <= held
    g.reset()
    assert z.numel() == 3_000_000           # still a tensor, whose memory is kept
    del z
    cuda.empty_cache()
    assert cuda.memory_reserved() == before
    with pytest.raises(RuntimeError, match="has not been captured"):
        g.replay()
    with pytest.raises(RuntimeError, match="pool"):
        g.pool()


def test_graphs_share_a_pool():
    x, pool = ptcore.ones(3_000_000, device="cuda"), cuda.graph_pool_handle()
    cuda.empty_cache()
    graphs, sizes = [], []
    for _ in range(3):
        g, z = captured(lambda: (x * 2).sum(), pool=pool)
        graphs.append((g, z))
        sizes.append(cuda.memory_reserved())
        assert g.pool() == pool
    assert sizes[0] == sizes[1] == sizes[2]
    for g, z in graphs:
        g.replay()
        assert z.item() == 6_000_000
    x.zero_()
    graphs.pop(0)[0].reset()
    for g, z in graphs:
        g.replay()
        assert z.item() == 0


def test_blocks_of_other_streams_wait_for_the_end():
    """No event is recorded or asked for under capture; what was used elsewhere comes back afterwards."""
    side = cuda.Stream()
    kept = ptcore.ones(100_000, device="cuda")
    with cuda.stream(side):
        kept.mul_(2)
    kept.record_stream(side)
    g = cuda.CUDAGraph()
    x = ptcore.ones(5, device="cuda")
    with cuda.graph(g):
        del kept
        z = x + ptcore.zeros(100_000, device="cuda")[:5]
    cuda.synchronize()
    g.replay()
    assert z.tolist() == [1] * 5


# -- what is refused -------------------------------------------------------------------------------------------

def test_the_calls_of_a_capture():
    g = cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="the default stream cannot be captured"):
        g.capture_begin()
    with pytest.raises(RuntimeError, match="no capture has begun"):
        g.capture_end()
    with pytest.raises(RuntimeError, match="has not been captured"):
        g.replay()
    s, x = cuda.Stream(), ptcore.ones(3, device="cuda")
    s.wait_stream(cuda.current_stream())
    with cuda.stream(s):
        for wrong, kind in (("loud", RuntimeError), (None, RuntimeError)):
            with pytest.raises(kind, match="capture_error_mode must be one of"):
                g.capture_begin(capture_error_mode=wrong)
        with pytest.raises(TypeError, match="pool must be what"):
            g.capture_begin(pool=3)
        g.capture_begin()
        with pytest.raises(RuntimeError, match="another graph is being captured"):
            cuda.CUDAGraph().capture_begin()
        with cuda.stream(cuda.Stream()), pytest.raises(RuntimeError, match="not the one where the capture began"):
            g.capture_end()
        y = x + 1
        g.capture_end()
        with pytest.raises(RuntimeError, match="has captured already"):
            g.capture_begin()
        g.replay()
    cuda.synchronize()
    assert y.tolist() == [2, 2, 2]
    with pytest.warns(UserWarning, match="the graph is empty"):
        captured(lambda: None)


def test_an_error_within():
    g, x = cuda.CUDAGraph(), ptcore.ones(3, device="cuda")
    with pytest.raises(ZeroDivisionError), cuda.graph(g):
        x.add_(1).add_(1 // 0)
    assert x.tolist() == [1, 1, 1]
    with cuda.graph(g):
        x.add_(1)
    g.replay()
    assert x.tolist() == [2, 2, 2]


def test_another_thread_waits_meanwhile():
    """In the mode "thread_local" it may; a capture in the mode "global" ends by it, as CUDA says."""
    x, done, g = ptcore.ones(1000, device="cuda"), [], cuda.CUDAGraph()

    def wait():
        event = cuda.Event()
        event.record(cuda.default_stream())
        event.synchronize()
        done.append(True)

    with cuda.graph(g, capture_error_mode="thread_local"):
        y = x + 1
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
    g.replay()
    assert done and y.sum().item() == 2000


def test_keep_and_dump(tmp_path):
    x, g = ptcore.ones(3, device="cuda"), cuda.CUDAGraph(keep_graph=True)
    g.enable_debug_mode()
    with cuda.graph(g):
        x.add_(1)
    with pytest.raises(RuntimeError, match="not instantiated"):
        g.raw_cuda_graph_exec()
    g.replay()
    assert g.raw_cuda_graph() and g.raw_cuda_graph_exec()
    g.instantiate()
    g.replay()
    assert x.tolist() == [3, 3, 3]
    g.debug_dump(tmp_path / "graph.dot")
    assert (tmp_path / "graph.dot").read_text().startswith("digraph")
    g, _ = captured(lambda: x.add_(1))
    with pytest.raises(RuntimeError, match="enable_debug_mode"):
        g.debug_dump(tmp_path / "other.dot")
    with pytest.raises(RuntimeError, match="keep_graph is False"):
        g.raw_cuda_graph()


# -- callables ------------------------------------------------------------------------------------------------

def test_graphed_modules():
    """Outputs, gradients and steps as without graphs; another mode runs as before."""
    results = []
    for graphed in (False, True):
        model = network()
        model[3].p = 0.0
        if graphed:
            model = cuda.make_graphed_callables(model, (ptcore.randn(16, 20, device="cuda", requires_grad=True),))
        optimizer = ptcore.optim.Adam(model.parameters(), 0.01)
        ptcore.manual_seed(2)
        found = []
        for _ in range(4):
            x = ptcore.randn(16, 20).cuda().requires_grad_()
            loss = (model(x) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found += [loss.item(), x.grad.cpu()]
        model.eval()
        found.append(model(ptcore.ones(3, 20, device="cuda")).detach().cpu())
        results.append(found)
    for a, b in zip(*results):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_graphed_functions():
    def f(a, pair):
        return {"sum": a @ pair[0], "other": (pair[1] * 2, a.sum())}

    a, b, c = (ptcore.randn(4, 4, device="cuda", requires_grad=n < 2) for n in range(3))
    g, h = cuda.make_graphed_callables((f, lambda x: x.exp()), ((a, (b, c)), (ptcore.ones(4, 4, device="cuda"),)))
    for _ in range(3):
        x, y, z = (ptcore.randn(4, 4, device="cuda", requires_grad=n < 2) for n in range(3))
        got, want = g(x, (y, z)), f(x, (y, z))
        assert got["sum"].equal(want["sum"]) and got["other"][0].equal(want["other"][0])
        assert got["other"][1].equal(want["other"][1]) and not got["other"][0].requires_grad
        for u, v in zip(ptcore.autograd.grad(got["sum"].sum() + got["other"][1], (x, y)),
                        ptcore.autograd.grad(want["sum"].sum() + want["other"][1], (x, y))):
            assert u.equal(v)
        assert h(z).equal(z.exp())
    with pytest.raises(RuntimeError, match=r"argument 1 must have shape \[4, 4\], as when.*, got \[4, 5\]"):
        g(x, (ptcore.ones(4, 5, device="cuda"), z))
    with pytest.raises(TypeError, match="expected 3 tensors"):
        g(x, (y,))
    with pytest.raises(TypeError, match="must hold tensors alone, got int"):
        cuda.make_graphed_callables(f, (a, (b, 3)))
    with pytest.raises(ValueError, match="a tuple for each of 2 callables"):
        cuda.make_graphed_callables((f, f), ((a, (b, c)),))


def test_a_parameter_that_has_moved():
    layer = nn.Linear(4, 4).cuda()
    graphed = cuda.make_graphed_callables(layer, (ptcore.ones(2, 4, device="cuda"),))
    layer.weight.data = layer.weight.data.clone()
    with pytest.raises(RuntimeError, match="the memory of the parameter 'weight' is not the captured one"):
        graphed(ptcore.ones(2, 4, device="cuda"))


def test_modules_that_cannot_be_graphed():
    layer, x = nn.Linear(4, 4).cuda(), (ptcore.ones(2, 4, device="cuda"),)
    handle = layer.register_forward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="must not have hooks"):
        cuda.make_graphed_callables(layer, x)
    handle.remove()
    layer.register_buffer("b", ptcore.ones(1, device="cuda", requires_grad=True))
    with pytest.raises(RuntimeError, match="buffers must not require gradients"):
        cuda.make_graphed_callables(layer, x)
