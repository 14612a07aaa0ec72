"""``backends``, the precision of products, the choice of attention: names, defaults, what sets what, errors."""
import contextlib

import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity
LIBS = (torch, pt)


def both(function):
    """What a function of a library returns, or the type of what it raises: the same for both."""
    answers = []
    for lib in LIBS:
        try:
            answers.append(function(lib))
        except Exception as e:
            answers.append(type(e).__mro__[:-3])
    want, got = answers
    assert got == want or (isinstance(want, tuple) and isinstance(got, tuple) and want[0] in got), answers
    return want


@pytest.fixture(autouse=True)
def as_before():
    yield
    for lib in LIBS:
        lib.set_float32_matmul_precision("highest")
        lib.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True
        lib.backends.cuda.matmul.allow_fp16_accumulation = False


def precision(lib):
    m = lib.backends.cuda.matmul
    return m.allow_tf32, lib.get_float32_matmul_precision(), m.fp32_precision


def test_defaults():
    assert both(lambda lib: (lib.backends.cuda.matmul.allow_tf32, lib.get_float32_matmul_precision(),
                             lib.backends.cuda.matmul.allow_fp16_accumulation)) == (False, "highest", False)
    for name in ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction",
                 "allow_fp16_reduced_precision_reduction_split_k", "allow_bf16_reduced_precision_reduction_split_k"):
        assert both(lambda lib, name=name: getattr(lib.backends.cuda.matmul, name)) is True
    both(lambda lib: [getattr(lib.backends.cudnn, name) for name in
                      ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32", "fp32_precision")])


@pytest.mark.parametrize("steps", [
    ["high"], ["medium"], ["highest"], [True], [False], ["high", False], ["medium", True, "highest"],
    [True, "highest"]])
def test_settings_that_mean_the_same(steps):
    def after(lib):
        for step in steps:
            if isinstance(step, bool):
                lib.backends.cuda.matmul.allow_tf32 = step
            else:
                lib.set_float32_matmul_precision(step)
        m = lib.backends.cuda.matmul
        # torch refuses to name a precision that was set in two ways one after the other.
        return (m.allow_tf32, m.fp32_precision) if len(steps) > 1 else precision(lib)

    assert both(after)[0] in (True, False)


def test_words():
    for word in ("ieee", "none"):
        def after(lib, word=word):
            lib.backends.cuda.matmul.fp32_precision = word
            return precision(lib)
        assert both(after) == (False, "highest", word)
    for wrong in ("x", "bf16"):
        assert RuntimeError in both(lambda lib, w=wrong: setattr(lib.backends.cuda.matmul, "fp32_precision", w))
    pt.backends.cuda.matmul.fp32_precision = "tf32"     # torch refuses to be asked for allow_tf32 then
    assert precision(pt) == (True, "high", "tf32")


@pytest.mark.parametrize("name", ["allow_tf32", "allow_fp16_accumulation", "allow_fp16_reduced_precision_reduction",
                                  "nothing"])
@pytest.mark.parametrize("value", [1, None, "x", (), (True, True, True), (1,), (False, True), [False], (True, False)],
                         ids=repr)
def test_values_that_are_refused(name, value):
    def after(lib):
        setattr(lib.backends.cuda.matmul, name, value)
        return getattr(lib.backends.cuda.matmul, name)

    both(after)


def test_sums_in_parts_are_not_forbidden():
    with pytest.raises(NotImplementedError, match="cut into parts"):
        pt.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False, False


def test_unknown_names():
    for use in (lambda lib: lib.backends.cuda.matmul.nothing, lambda lib: lib.backends.cudnn.nothing,
                lambda lib: lib.backends.nothing):
        assert AttributeError in both(use)


@pytest.mark.parametrize("name", ["enabled", "benchmark", "deterministic", "allow_tf32"])
def test_cudnn_settings(name):
    def after(lib):
        cudnn, seen = lib.backends.cudnn, []
        before = getattr(cudnn, name)
        setattr(cudnn, name, not before)
        seen.append(getattr(cudnn, name))
        setattr(cudnn, name, before)
        with pytest.raises(RuntimeError):
            setattr(cudnn, name, 1)
        with cudnn.flags(**{name: not before}):
            seen += [cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32]
        return [*seen, getattr(cudnn, name)]

    both(after)


def test_what_is_there():
    assert both(lambda lib: (lib.backends.cudnn.is_available(), lib.backends.cudnn.version(),
                             lib.backends.mps.is_available(), lib.backends.mps.is_built(),
                             lib.backends.cudnn.is_acceptable(lib.ones(1)))) == (False, None, False, False, False)
    both(lambda lib: lib.backends.cpu.get_cpu_capability())
    assert not any(m.is_available() for m in (pt.backends.mkl, pt.backends.mkldnn, pt.backends.openmp))
    assert isinstance(pt.backends.cuda.is_built(), bool)
    import ptcore.backends.cudnn as imported
    assert imported is pt.backends.cudnn
    both(lambda lib: lib.backends.cuda.is_flash_attention_available())


ATTENTION = ("flash", "mem_efficient", "math", "cudnn")


def allowed(lib):
    return [getattr(lib.backends.cuda, f"{name}_sdp_enabled")() for name in ATTENTION]


def test_attention_settings():
    assert both(allowed) == [True] * 4
    for name in ATTENTION:
        def after(lib, name=name):
            enable = getattr(lib.backends.cuda, f"enable_{name}_sdp")
            enable(False)
            seen = allowed(lib)
            enable(True)
            return seen, allowed(lib)
        both(after)
        assert RuntimeError in both(lambda lib, name=name: getattr(lib.backends.cuda, f"enable_{name}_sdp")(1))
    both(lambda lib: (lib.backends.cuda.fp16_bf16_reduction_math_sdp_allowed(),
                      lib.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True),
                      lib.backends.cuda.fp16_bf16_reduction_math_sdp_allowed(),
                      lib.backends.cuda.allow_fp16_bf16_reduction_math_sdp(False)))


def attend(lib, *backends, one=False):
    kinds = [getattr(lib.nn.attention.SDPBackend, name) for name in backends]
    q = lib.ones(1, 1, 2, 4)
    with lib.nn.attention.sdpa_kernel(kinds[0] if one else kinds):
        shape = tuple(lib.nn.functional.scaled_dot_product_attention(q, q, q).shape)
        return shape, allowed(lib)


@pytest.mark.parametrize("name", ["ERROR", "MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION",
                                  "OVERRIDEABLE"])
def test_attention_by_one_backend(name):
    both(lambda lib: attend(lib, name, one=True))
    both(lambda lib: attend(lib, name))
    assert both(allowed) == [True] * 4                  # as before, after an error too
    both(lambda lib: (int(getattr(lib.nn.attention.SDPBackend, name)), str(getattr(lib.nn.attention.SDPBackend, name))))


def test_attention_by_several():
    both(lambda lib: attend(lib, "MATH", "CUDNN_ATTENTION", "MATH"))
    assert RuntimeError in both(lambda lib: attend(lib))

    def wrong(lib):
        with lib.nn.attention.sdpa_kernel("x"):
            pass

    assert AssertionError in both(wrong)

    def nested(lib):
        kinds = lib.nn.attention.SDPBackend
        with lib.nn.attention.sdpa_kernel([kinds.MATH, kinds.FLASH_ATTENTION], set_priority=True):
            with lib.nn.attention.sdpa_kernel(kinds.MATH):
                inside = allowed(lib)
            return inside, allowed(lib)

    both(nested)


def test_the_older_context():
    def use(lib):
        with lib.backends.cuda.sdp_kernel(enable_flash=False, enable_cudnn=False):
            return allowed(lib)

    both(use)
    for lib in LIBS:
        with pytest.warns(FutureWarning, match="sdpa_kernel"), contextlib.ExitStack() as stack:
            stack.enter_context(lib.backends.cuda.sdp_kernel())
