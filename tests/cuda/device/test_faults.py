"""What goes wrong on a device: memory that runs out, kernels that fail, bad indices, forks, what is not installed.

Most run in a process of their own, as a failed device stays failed.
"""
import os

import pytest
from in_process import run, start

import ptcore
from ptcore import cuda
from ptcore.nn import functional

STANDIN = os.environ.get("PTCORE_TEST_CUDA") == "standin"
ON_STANDIN = pytest.mark.skipif(not STANDIN, reason="of the stand-in driver")
FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


# -- memory --------------------------------------------------------------------------------------------------

TRAINING = """
ptcore.set_default_dtype(ptcore.float64)
DRIVER.standin_memory_used.restype = ctypes.c_size_t
X, Y = ptcore.randn(30, 40), ptcore.randn(30, 30)

def model_and_optimizer(device):
    ptcore.manual_seed(0)
    model = nn.Sequential(nn.Linear(40, 60), nn.GELU(), nn.LayerNorm(60), nn.Linear(60, 30)).to(device)
    return model, ptcore.optim.Adam(model.parameters(), 0.01)

def step(model, optimizer, x, y):
    global phase
    optimizer.zero_grad()
    phase = "forward"
    loss = ((model(x) - y) ** 2).mean()
    phase = "backward"
    loss.backward()
    phase = "step"
    optimizer.step()
    return loss.item()

want = []
model, optimizer = model_and_optimizer("cpu")
for _ in range(4):
    want.append(step(model, optimizer, X, Y))

model, optimizer = model_and_optimizer("cuda")
x, y = X.cuda(), Y.cuda()
step(*model_and_optimizer("cuda"), x, y)                # the products' workspace
start = {k: v.cpu() for k, v in model.state_dict().items()}
used = DRIVER.standin_memory_used(0)
phases, room, losses = {}, 512, []
gc.disable()                                            # whatever a failure leaves behind stays
while not losses:
    memory_limit(used + room)
    try:
        losses.append(step(model, optimizer, x, y))
    except ptcore.OutOfMemoryError as e:
        text = str(e)
        assert "CUDA out of memory. Tried to allocate" in text and "total capacity" in text and "is free" in text, text
        phases[phase] = phases.get(phase, 0) + 1
    finally:
        memory_limit(1 << 32)
    if not losses:
        optimizer.zero_grad()
        if phase == "step":                             # some parameters may have made it
            with ptcore.no_grad():
                model.load_state_dict(start)
            optimizer = ptcore.optim.Adam(model.parameters(), 0.01)
        left = DRIVER.standin_memory_used(0) - used
        assert left == 0, (phase, room, left)
    room += 1024
for _ in range(3):
    losses.append(step(model, optimizer, x, y))
ptcore.testing.assert_close(ptcore.tensor(losses), ptcore.tensor(want), rtol=1e-9, atol=0)
assert min(phases.values()) > 5, phases
print(sorted(phases))
"""


@ON_STANDIN
def test_memory_runs_out_in_training():
    """At each allocation of a step: nothing stays allocated, and training then goes on with the right numbers."""
    assert run(TRAINING, PTCORE_CUDA_ALLOC="none") == ["['backward', 'forward', 'step']"]


@ON_STANDIN
def test_scratch_memory_runs_out():
    """In a kernel's own scratch memory: the same type and sizes."""
    assert run("""
x = ptcore.ones(400, 500, device="cuda")
cuda.synchronize()
out = ptcore.empty(400, 500, device="cuda"), ptcore.empty(400, 500, dtype=ptcore.int64, device="cuda")
small, product = ptcore.ones(100, 3, device="cuda"), ptcore.empty(400, 3, device="cuda")
DRIVER.standin_memory_used.restype = ctypes.c_size_t
memory_limit(DRIVER.standin_memory_used(0))
e = failure(lambda: ptcore.sort(x, out=out))
assert isinstance(e, ptcore.OutOfMemoryError) and isinstance(e, RuntimeError), e
assert "CUDA out of memory. Tried to allocate" in str(e), e
apart = x[:, ::5]                       # neither rows nor columns lie close: an operand is copied
for use in (lambda: ptcore.mm(apart, small, out=product), lambda: x[:, ::2].cpu()):
    assert isinstance(failure(use), ptcore.OutOfMemoryError)
memory_limit(1 << 32)
ptcore.sort(x, out=out)
print(int(out[0].sum()))
""", PTCORE_CUDA_ALLOC="none") == ["200000"]


@ON_STANDIN
def test_the_workspace_of_products():
    """As large as asked for; a product runs without where there is no memory for it."""
    use = """
x = ptcore.ones(4, 4, device="cuda")
y = F.linear(x, x, x[0])
print(cuda.memory_allocated() - 2 * 512, y.sum().item())
"""
    assert run(use, CUBLASLT_WORKSPACE_SIZE="64") == [f"{64 << 10} 80.0"]
    assert run(use, CUBLASLT_WORKSPACE_SIZE="0") == ["0 80.0"]
    assert run("cuda.init()\nmemory_limit(8 << 20)" + use) == ["0 80.0"]
    lines = run("print(failure(lambda: ptcore.ones(2, device='cuda')))", CUBLASLT_WORKSPACE_SIZE="much")
    assert "CUBLASLT_WORKSPACE_SIZE: must be a number of KiB, got 'much'" in lines[0]


# -- kernels that fail ---------------------------------------------------------------------------------------

OPS = {
    "add": lambda x: x + 1, "sum": lambda x: x.sum(), "softmax": lambda x: x.softmax(0), "sort": lambda x: x.sort(0),
    "index_select": lambda x: x.index_select(0, ptcore.tensor([0], device="cuda")), "cumsum": lambda x: x.cumsum(0),
    "normal": lambda x: x.normal_(), "copy": lambda x: x.t().contiguous(),
    "layer_norm": lambda x: functional.layer_norm(x, (4,)),
}


@ON_STANDIN
@pytest.mark.parametrize("name", OPS)
def test_a_failed_launch_names_the_op(driver, name):
    import ctypes
    x = ptcore.ones(4, 4, device="cuda")
    OPS[name](x)
    cuda.synchronize()
    driver.standin_fail_after(b"cuLaunchKernel", 0, ctypes.c_int(719))
    with pytest.raises(RuntimeError, match=rf"{name}.*unspecified launch failure; an earlier op may be the cause: "
                                           "CUDA_LAUNCH_BLOCKING=1 names it"):
        OPS[name](x)
    driver.standin_clear()
    OPS[name](x)                        # this failure was not the device's


@ON_STANDIN
@pytest.mark.parametrize("function", ["cuMemcpyAsync", "cuStreamSynchronize", "cuCtxSynchronize"])
def test_a_failed_copy_or_wait(driver, function):
    x = ptcore.ones(4, device="cuda")
    cuda.synchronize()
    driver.standin_fail_after(function.encode(), 0, 700)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        cuda.synchronize() if function == "cuCtxSynchronize" else x.cpu()
    driver.standin_clear()
    assert x.cpu().tolist() == [1, 1, 1, 1]


STICKY = """
x = ptcore.ones(1000, device="cuda")
host = ptcore.ones(3)
out = ptcore.empty(1000, device="cuda"), ptcore.empty(1000, dtype=ptcore.int64, device="cuda")
side, event = cuda.Stream(), cuda.Event()
event.record()
cuda.synchronize()
DRIVER.cuMemFree_v2(ctypes.c_uint64(x.data_ptr()))      # behind ptcore's back
try:
    y = x + 1                           # THE LINE
    cuda.synchronize()
except RuntimeError as e:
    step = e.__traceback__
    while step.tb_next is not None and step.tb_next.tb_frame.f_code.co_filename == "<string>":
        step = step.tb_next
    print(step.tb_lineno - LINE, str(e).partition(":")[0])
    assert "illegal memory access" in str(e), e
for use in (lambda: ptcore.ones(4000000, device="cuda"), lambda: host.cuda(), lambda: x.sum(), lambda: x.cpu(),
            lambda: cuda.synchronize(), lambda: side.synchronize(), lambda: event.synchronize(), lambda: print(x),
            lambda: ptcore.ones(2, 2, device="cuda") @ ptcore.ones(2, 2, device="cuda"),
            lambda: ptcore.sort(x, out=out)):
    e = failure(use)
    assert isinstance(e, RuntimeError) and not isinstance(e, ptcore.OutOfMemoryError), e
    assert "illegal memory access" in str(e), e
kept = x, side, event                   # still there when the interpreter ends
"""


@ON_STANDIN
@pytest.mark.parametrize(("name", "line", "op"), [
    ("", 1, "cuda"), ("CUDA_LAUNCH_BLOCKING", 0, "add"), ("PTCORE_CUDA_LAUNCH_BLOCKING", 0, "add")])
def test_a_device_that_has_failed(name, line, op):
    """Every use says so, none hangs, and the process ends as it should; in blocking mode the op itself raises."""
    lines = (start() + STICKY).split("\n")
    at = next(i for i, content in enumerate(lines, 1) if "THE LINE" in content)
    code = STICKY.replace("LINE,", f"{at},")
    assert run(code, PTCORE_CUDA_ALLOC="none", **({name: "1"} if name else {})) == [f"{line} {op}"]


# -- bad indices ---------------------------------------------------------------------------------------------

def at(*values, shape=None):
    t = ptcore.tensor(values, device="cuda")
    return t if shape is None else t.reshape(shape)


def on(x):
    return ptcore.ones(x, device="cuda") if isinstance(x, tuple) else x


# What it is told by: the op itself, or the op that it consists of.
INDEXED = {
    "index_select": ("index_select", lambda x: x.index_select(0, at(9))),
    "gather": ("gather", lambda x: x.gather(1, at(9, shape=(1, 1)))),
    "index": ("index", lambda x: x[at(9)]),
    "index of two": ("index", lambda x: x[at(1), at(-9)]),
    "index_put": ("index_put", lambda x: x.index_put_((at(9),), on((1, 4)))),
    "index_put, added": ("index_put", lambda x: x.index_put_((at(9),), on((1, 4)), accumulate=True)),
    "scatter": ("scatter", lambda x: x.scatter_(0, at(9, 9, 9, 9, shape=(1, 4)), on((1, 4)))),
    "scatter of a number": ("scatter", lambda x: x.scatter_(0, at(9, 9, 9, 9, shape=(1, 4)), 1.0)),
    "scatter_add": ("scatter_add", lambda x: x.scatter_add_(0, at(9, 9, 9, 9, shape=(1, 4)), on((1, 4)))),
    "index_add": ("index_add", lambda x: x.index_add_(0, at(9), on((1, 4)))),
    "index_copy": ("scatter", lambda x: x.index_copy_(0, at(9), on((1, 4)))),
    "index_fill": ("scatter", lambda x: x.index_fill_(0, at(9), 1.0)),
    "embedding": ("index_select", lambda x: functional.embedding(at(9), x)),
    "nll_loss": ("nll_loss", lambda x: functional.nll_loss(x, at(*[9] * 8))),
    "cross_entropy": ("cross_entropy", lambda x: functional.cross_entropy(x, at(*[9] * 8))),
    "max_unpool1d": ("scatter", lambda x: functional.max_unpool1d(x[None, :1], at(9, 9, 9, 9, shape=(1, 1, 4)), 2)),
}


@pytest.mark.parametrize("name", INDEXED)
def test_a_bad_index_is_told_at_the_next_wait(name):
    told, use = INDEXED[name]
    x = ptcore.zeros(8, 4, device="cuda")
    use(x)
    with pytest.raises(IndexError, match=rf"{told}: index -?9 is out of bounds for dimension \d with size \d \(found "
                                         r"on cuda:0 after the call\)"):
        cuda.synchronize()
    cuda.synchronize()
    assert x.cpu().tolist() == [[0.0] * 4] * 8


@pytest.mark.parametrize("shape", [(0, 4), (8, 0, 4)])
def test_an_index_of_nothing(shape):
    """Where there is no element to take, none is read."""
    x = ptcore.zeros(shape, device="cuda")
    dim = shape.index(0)
    for use in (lambda: x[(slice(None),) * dim + (at(0, -1),)], lambda: x.index_select(dim, at(0))):
        use()
        with pytest.raises(IndexError, match=rf"index (0|-1) is out of bounds for dimension {dim} with size 0"):
            cuda.synchronize()


@pytest.mark.parametrize(("op", "use"), [
    ("gather", lambda x: x.take(at(99))), ("scatter", lambda x: x.put_(at(99), ptcore.ones(1, device="cuda")))])
def test_a_bad_position_is_told_at_the_next_wait(op, use):
    use(ptcore.zeros(8, 4, device="cuda"))
    with pytest.raises(IndexError, match=rf"{op}: index 99 is out of bounds for dimension 0 with size 32"):
        cuda.synchronize()


def test_a_bad_index_in_blocking_mode():
    """The op that the program calls raises, and is named."""
    uses = ["x.index_select(0, bad)", "x[bad]", "x.index_copy_(0, bad, x[:1].clone())", "F.embedding(bad, x)",
            "F.nll_loss(x, bad.expand(8))", "x.index_put_((bad,), x[:1].clone(), accumulate=True)"]
    names = ["index_select", "index", "index_copy", "embedding", "nll_loss", "index_put_"]
    lines = run(f"""
x, bad = ptcore.zeros(8, 4, device="cuda"), ptcore.tensor([9], device="cuda")
for use in {uses!r}:
    e = failure(lambda: eval(use))
    assert isinstance(e, IndexError), e
    print(e)
cuda.synchronize()
""", PTCORE_CUDA_LAUNCH_BLOCKING="1")
    assert [line.partition(":")[0] for line in lines] == names
    assert all(f"index 9 is out of bounds for dimension {int(name == 'nll_loss')} with size" in line
               for line, name in zip(lines, names))


# -- contexts and default streams ----------------------------------------------------------------------------

@pytest.mark.skipif(cuda.device_count() < 2, reason="needs two devices")
def test_page_locked_memory_beside_the_second_device():
    """The first one was never in use: there is no context of it."""
    assert run("""
cuda.set_device(1)
x = ptcore.ones(3000, device="cuda").cpu()
p = x.pin_memory()
assert p.is_pinned() and p.cuda().sum().item() == 3000
print("pinned")
""") == ["pinned"]


def test_page_locked_memory_goes_back_on_another_thread():
    """One that no context was made current on."""
    assert run("""
import threading
p = ptcore.ones(3000).pin_memory()
del p
def give_back():
    cuda.memory.empty_host_cache()
    print(cuda.host_memory_stats()["allocated_bytes.current"])
thread = threading.Thread(target=give_back)
thread.start()
thread.join()
""") == ["0"]


def test_one_default_stream_of_all_threads():
    """cuda.bindings can be asked for one in each thread; the allocator's blocks would then be reused too early."""
    assert run("""
import threading
wrong = []
def add(x, out):
    out.append(x + 1)
for i in range(20):
    if DRIVER:
        DRIVER.standin_seed(ctypes.c_uint64(i))
    x = ptcore.zeros(1000, device="cuda")
    for _ in range(10):
        x = x + 1
    out = []
    thread = threading.Thread(target=add, args=(x, out))
    thread.start()
    thread.join()
    y = out[0] @ ptcore.ones(1000, device="cuda")
    wrong += [y.item()] if y.item() != 11000 else []
print(wrong)
""", CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM="1") == ["[]"]


# -- copies that wait ----------------------------------------------------------------------------------------

@pytest.fixture
def sync_mode():
    yield
    cuda.set_sync_debug_mode("default")


def test_integer_division_waits_for_nothing(sync_mode):
    """On the CPU a divisor of 0 is an error; looking for one on a device would wait: the quotient is 0 there."""
    x, y = ptcore.tensor([7, -7, 3], device="cuda"), ptcore.tensor([2, 2, 0], device="cuda")
    two = ptcore.tensor(2)
    cuda.set_sync_debug_mode("error")
    got = [x // y, x % y, ptcore.fmod(x, y), ptcore.div(x, y, rounding_mode="trunc"), x // two]
    inplace = x.clone()
    inplace //= y
    for zero in (0, ptcore.tensor(0)):
        with pytest.raises(ZeroDivisionError, match="integer division by zero"):
            x // zero
    cuda.set_sync_debug_mode("default")
    assert [t.tolist() for t in got] == [[3, -4, 0], [1, 1, 0], [1, -1, 0], [3, -3, 0], [3, -4, 1]]
    assert inplace.tolist() == [3, -4, 0]


def test_copies_that_wait_are_told(sync_mode):
    x, host = ptcore.ones(4, device="cuda"), ptcore.ones(4)
    assert cuda.get_sync_debug_mode() == 0
    cuda.set_sync_debug_mode("warn")
    assert cuda.get_sync_debug_mode() == 1
    for wait in (x.cpu, x[0].item, x.tolist, lambda: x.copy_(host), lambda: host.copy_(x), lambda: repr(x),
                 lambda: bool(x[0] > 0), lambda: ptcore.nonzero(x)):
        with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
            wait()
    cuda.set_sync_debug_mode(2)
    for wait in (x.cpu, x[0].item, host.cuda):
        with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
            wait()
    y = (x + 1).sum()                                   # waits for nothing
    cuda.synchronize()                                  # asked for
    cuda.set_sync_debug_mode("default")
    assert y.item() == 8
    for wrong in ("loud", 3, -1, None, True):
        with pytest.raises(RuntimeError, match="debug_mode must be one of"):
            cuda.set_sync_debug_mode(wrong)


# -- forks ---------------------------------------------------------------------------------------------------

FORKED = """
import pickle
x, held, host = ptcore.ones(8, 4, device="cuda"), ptcore.ones(3, device="cuda"), ptcore.ones(3)
stream, event, timed = cuda.Stream(), cuda.Event(), cuda.Event(enable_timing=True)
event.record()
with cuda.stream(stream):
    held + 1
x @ x.t()
cuda.synchronize()
uses = [lambda: ptcore.ones(2, device="cuda"), lambda: host.cuda(), lambda: ptcore.randn(3, device="cuda"),
        lambda: x + 1, lambda: x.add_(1), lambda: x.sum(), lambda: x @ x.t(), lambda: x.cpu(),
        lambda: x[0, 0].item(), lambda: x.tolist(), lambda: repr(x), lambda: host.copy_(held),
        lambda: held.copy_(host), lambda: pickle.dumps(x),
        lambda: (x.clone().requires_grad_() * 2).sum().backward(), cuda.synchronize, cuda.Stream,
        stream.synchronize, stream.query, timed.record, event.synchronize, event.query,
        lambda: stream.wait_event(event), lambda: cuda.stream(stream).__enter__(), lambda: cuda.set_device(0),
        cuda.current_device, cuda.get_device_name, cuda.mem_get_info, cuda.empty_cache, cuda.memory_summary,
        cuda.init, lambda: cuda.caching_allocator_alloc(10)]
gc.freeze()
child = os.fork()
if child == 0:
    for i, use in enumerate(uses):
        e = failure(use)
        assert isinstance(e, RuntimeError) and not isinstance(e, ptcore.OutOfMemoryError), (i, e)
        assert "forked child" in str(e) and "set_start_method('spawn')" in str(e), (i, e)
    assert not cuda.is_initialized()
    del uses, x, held, stream, event, timed             # nothing of the driver is called
    gc.collect()
    assert host.sum() == 3
    sys.exit(7)
assert os.waitpid(child, 0)[1] == 7 << 8
before = cuda.memory_allocated()
assert (x + 1).sum().item() == 64 and held.cpu().tolist() == [1, 1, 1]
stream.synchronize()
event.synchronize()
assert cuda.memory_allocated() == before
print("went on")
"""


@FORK
def test_a_forked_child():
    """Every way in says what to do; what it inherited can be dropped; the parent goes on."""
    assert run(FORKED, PYTHONWARNINGS="ignore::DeprecationWarning") == ["went on"]


@FORK
def test_a_fork_before_the_first_use():
    assert run("""
child = os.fork()
if child == 0:
    assert (ptcore.ones(3, device="cuda") + 1).sum().item() == 6
    sys.stdout.flush()
    os._exit(5)
assert os.waitpid(child, 0)[1] == 5 << 8
print((ptcore.ones(3, device="cuda") + 1).sum().item())
""", PYTHONWARNINGS="ignore::DeprecationWarning") == ["6.0"]


@FORK
def test_a_fork_after_asking_for_devices():
    """The question alone starts the driver, which then refuses the child."""
    assert run("""
assert cuda.is_available()
child = os.fork()
if child == 0:
    for _ in range(2):
        assert "forked child" in str(failure(lambda: ptcore.ones(3, device="cuda")))
    os._exit(5)
assert os.waitpid(child, 0)[1] == 5 << 8
print((ptcore.ones(3, device="cuda") + 1).sum().item())
""", PYTHONWARNINGS="ignore::DeprecationWarning") == ["6.0"]


# -- what is missing -----------------------------------------------------------------------------------------

MISSING = {
    "driver": ("PTCORE_STANDIN_DEVICES=0", "", "no NVIDIA driver with a device was found on this machine"),
    "newer driver": ("PTCORE_STANDIN_VERSION=12080", "", "the NVIDIA driver is too old: it must support CUDA 13.0, got "
                                                         "12.8; update it"),
    "cuda-bindings": ("", "sys.modules['cuda.bindings'] = None", "pip install 'ptcore[cuda13]'"),
    "nvrtc": ("", "from ptcore.cuda import _compile; _compile.set_compiler(None)\n"
                  "sys.modules['cuda.bindings.nvrtc'] = None", "pip install 'ptcore[cuda13]'"),
    "newer device": ("PTCORE_STANDIN_CAPABILITY=70", "", "cuda:0: the device has compute capability 7.0; CUDA 13, and "
                                                         "with it ptcore, supports 7.5 and above"),
}


@ON_STANDIN
@pytest.mark.parametrize("name", MISSING)
def test_what_is_missing_is_named(name):
    setting, code, says = MISSING[name]
    lines = run(f"""
{code}
for use in (lambda: ptcore.ones(2, device="cuda"), lambda: ptcore.ones(2).cuda() + 1) * 2:
    e = failure(use)
    assert isinstance(e, RuntimeError), e
    print(e)
print(ptcore.ones(2).sum().item())
""", **dict([setting.split("=")] if setting else []))
    assert len(lines) == 5 and lines[4] == "2.0"
    assert all(says in line for line in lines[:4]), lines


@ON_STANDIN
@pytest.mark.parametrize(("name", "extra", "op", "call"), [
    ("cublas", "cuda13", "linear", "F.linear(x, x, x[0])"), ("cublasLt", "cuda13", "linear", "F.linear(x, x, x[0])"),
    ("cufft", "cuda13-fft", "fft_fft", "ptcore.fft.fft(x)"),
    ("cusolver", "cuda13-solver", "linalg_inv", "ptcore.linalg.inv(x)")])
def test_a_missing_library_is_named(name, extra, op, call):
    """At the first product, transform or equation; the CPU's products and other ops of the device go on."""
    extra = f"'ptcore[{extra}]'"
    lines = run(f"""
from ptcore.cuda.driver import libraries
x = ptcore.ones(2, 2, device="cuda")
libraries.set_library({name!r}, "/nowhere/lib.so")
for _ in range(2):
    print(failure(lambda: {call}))
libraries.set_library({name!r}, None)
sys.modules["cuda.pathfinder"] = None
print(failure(lambda: {call}))
print((x + 1).sum().item(), (x.cpu() @ x.cpu()).sum().item())
""")
    assert lines[0] == lines[1] == f"{op}: {name}: /nowhere/lib.so cannot be loaded: pip install {extra}"
    assert lines[2].startswith(f"{op}: the library {name} of CUDA was not found: pip install {extra}")
    assert lines[3] == "8.0 8.0"


@ON_STANDIN
def test_an_old_device_is_asked_for_no_tensor_cores():
    """Below sm_80 the kernels with them are empty: others take their place, and give the same."""
    lines = run("""
x = ptcore.arange(-4, 4).repeat(2 * 8 * 16).reshape(1, 2, 64, 16) / 8
w = ptcore.arange(-5, 3).repeat(16 * 9).reshape(16, 8, 3, 3) / 4
for name in ("float16", "bfloat16"):
    q, image, weight = (t.to(getattr(ptcore, name)).cuda().requires_grad_() for t in (x, x.reshape(4, 8, 8, 8), w))
    results = [F.scaled_dot_product_attention(q, q, q), F.conv2d(image, weight, padding=1)]
    results += ptcore.autograd.grad([r.float().sum() for r in results], [q, image, weight])
    p, image, weight = (t.detach().cpu().double().requires_grad_() for t in (q, image, weight))
    wanted = [F.scaled_dot_product_attention(p, p, p), F.conv2d(image, weight, padding=1)]
    wanted += ptcore.autograd.grad([r.sum() for r in wanted], [p, image, weight])
    for got, want in zip(results, wanted):
        off = (got.detach().cpu().double() - want.detach()).abs().max().item()
        assert off <= 2 ** (-9 if name == "float16" else -6) * want.abs().max().item(), (name, off)
from standin import Driver
print(*sorted(Driver(DRIVER).launched()))
""", PTCORE_STANDIN_CAPABILITY="75")
    kernels = lines[0].split()
    assert not [k for k in kernels if "tensor" in k]
    assert {k.partition("_")[0] for k in kernels} >= {"attention", "convolve"}, kernels
