"""MultiheadAttention and Transformer modules against torch.nn: outputs, weights, gradients, states, texts, errors."""
import copy
import inspect
import warnings

import numpy as np
import pytest

import ptcore as pt
from ptcore.autograd import gradcheck, gradgradcheck

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def both(make, seed=0):
    """A module of each library with the same float64 parameters."""
    ours, theirs = make(pt.nn).double(), make(torch.nn).double()
    rng = np.random.default_rng(seed)
    for (key, p), (other, q) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert (key, tuple(p.shape)) == (other, tuple(q.shape))
        values = rng.normal(0, 0.5, tuple(q.shape))
        p.data.copy_(pt.tensor(values))
        q.data.copy_(torch.tensor(values))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    return ours, theirs


def near(ours, theirs):
    if theirs is None:
        assert ours is None
        return
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-11)


def run(lib, module, arrays, call):
    """Outputs, then the gradients of inputs and parameters."""
    inputs = [lib.tensor(a, requires_grad=True) for a in arrays]
    result = call(lib, module, *inputs)
    results = list(result) if isinstance(result, tuple) else [result]
    total = sum((r * r * (k + 1)).sum() for k, r in enumerate(results) if r is not None)
    total.backward()
    module_grads = [p.grad for p in module.parameters()]
    module.zero_grad()
    return [*results, *[t.grad for t in inputs], *module_grads]


def compare(make, arrays, call):
    ours, theirs = both(make)
    for a, b in zip(run(pt, ours, arrays, call), run(torch, theirs, arrays, call), strict=True):
        near(a, b)
    return ours, theirs


# -- MultiheadAttention --------------------------------------------------------------------------------

L, S, N, E = 4, 5, 3, 6
OPTIONS = [{}, {"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True},
           {"add_bias_kv": True, "add_zero_attn": True},
           {"kdim": 3, "vdim": 2}, {"kdim": 3, "bias": False, "add_bias_kv": True}, {"batch_first": True}]
WAYS = {
    "plain": {}, "no weights": {"need_weights": False}, "each head": {"average_attn_weights": False},
    "bool mask": {"attn_mask": (L, S), "kind": bool}, "added mask": {"attn_mask": (L, S), "kind": float},
    "mask of heads": {"attn_mask": (2 * N, L, S), "kind": float, "need_weights": False},
    "padding": {"key_padding_mask": (N, S), "kind": bool, "need_weights": False},
    "padding and weights": {"key_padding_mask": (N, S), "kind": bool},
    "both": {"key_padding_mask": (N, S), "attn_mask": (L, S), "kind": float, "need_weights": False},
    "both bool": {"key_padding_mask": (N, S), "attn_mask": (2 * N, L, S), "kind": bool},
}


def masks(lib, way, rng):
    options = dict(way)
    kind = options.pop("kind", None)
    for name in ("attn_mask", "key_padding_mask"):
        if name in options:
            values = rng.normal(size=options[name])
            if kind is bool:
                values = values > 0.8
                values[..., 0] = False
            options[name] = lib.tensor(values)
    return options


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_attention_to_others(options, way):
    rng = np.random.default_rng(1)
    q = rng.normal(size=(L, N, E))
    k, v = rng.normal(size=(S, N, options.get("kdim", E))), rng.normal(size=(S, N, options.get("vdim", E)))
    if options.get("batch_first"):
        q, k, v = (np.ascontiguousarray(t.swapaxes(0, 1)) for t in (q, k, v))
    compare(lambda nn: nn.MultiheadAttention(E, 2, **options), (q, k, v),
            lambda lib, m, q, k, v: m(q, k, v, **masks(lib, WAYS[way], np.random.default_rng(2))))


@pytest.mark.parametrize("shared", ["all", "key and value", "query and key"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_attention_to_itself(shared, batch_first):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(S, N, E)), rng.normal(size=(S, N, E))

    def call(lib, m, x, y):
        q, k, v = {"all": (x, x, x), "key and value": (x, y, y), "query and key": (x, x, y)}[shared]
        out, weights = m(q, k, v)
        return out + 0 * y, weights

    compare(lambda nn: nn.MultiheadAttention(E, 3, batch_first=batch_first), (x, y), call)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("options", [{}, {"add_zero_attn": True}, {"batch_first": True}])
def test_attention_without_a_batch(options, need_weights):
    rng = np.random.default_rng(4)

    def call(lib, m, q, k):
        mask, padding = lib.zeros(2, L, S, dtype=lib.float64), lib.tensor([False] * (S - 1) + [True])
        return m(q, k, k, attn_mask=mask + 0.5, key_padding_mask=padding, need_weights=need_weights)

    compare(lambda nn: nn.MultiheadAttention(E, 2, **options), (rng.normal(size=(L, E)), rng.normal(size=(S, E))), call)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("padding", [False, True])
def test_causal_hint(padding, need_weights):
    rng = np.random.default_rng(5)

    def call(lib, m, x):
        mask = lib.nn.Transformer.generate_square_subsequent_mask(S, dtype=lib.float64)
        pad = lib.tensor([[False] * (S - 1) + [True]] * N) if padding else None
        return m(x, x, x, attn_mask=mask, key_padding_mask=pad, is_causal=True, need_weights=need_weights)

    compare(lambda nn: nn.MultiheadAttention(E, 2), (rng.normal(size=(S, N, E)),), call)


def test_static_keys_and_values():
    rng = np.random.default_rng(6)
    shapes = (L, N, E), (S, N, E), (2 * N, 7, 3), (2 * N, 7, 3), (3 * E, E), (3 * E,), (E, E), (E,)
    arrays = [rng.normal(size=s) for s in shapes]
    results = []
    for lib in (pt, torch):
        q, k, sk, sv, w, b, ow, ob = (lib.tensor(a, requires_grad=True) for a in arrays)
        out, weights = lib.nn.functional.multi_head_attention_forward(
            q, k, k, E, 2, w, b, None, None, False, 0.0, ow, ob, static_k=sk, static_v=sv)
        (out * out).sum().backward()
        results.append((out, weights, q.grad, sk.grad, sv.grad, w.grad, ow.grad))
    for ours, theirs in zip(*results, strict=True):
        near(ours, theirs)


@pytest.mark.parametrize("call", [
    lambda nn, R: nn.MultiheadAttention(5, 2),
    lambda nn, R: nn.MultiheadAttention(0, 2),
    lambda nn, R: nn.MultiheadAttention(4, 2)(R(3, 2, 4), R(3, 4), R(3, 4)),
    lambda nn, R: nn.MultiheadAttention(4, 2)(R(4), R(3, 4), R(3, 4)),
    lambda nn, R: nn.MultiheadAttention(4, 2)(R(3, 2, 5), R(3, 2, 5), R(3, 2, 5)),
    lambda nn, R: nn.MultiheadAttention(4, 2)(R(3, 2, 4), R(5, 2, 4), R(6, 2, 4)),
    lambda nn, R: nn.MultiheadAttention(4, 2)(R(3, 2, 4), R(5, 2, 4), R(5, 2, 4), attn_mask=R(5, 3)),
    lambda nn, R: nn.MultiheadAttention(4, 2)(R(3, 2, 4), R(5, 2, 4), R(5, 2, 4), attn_mask=R(2, 3, 5)),
    lambda nn, R: nn.MultiheadAttention(4, 2)(R(3, 2, 4), R(5, 2, 4), R(5, 2, 4), attn_mask=R(3)),
    lambda nn, R: nn.MultiheadAttention(4, 2)(R(3, 2, 4), R(5, 2, 4), R(5, 2, 4), attn_mask=R(3, 5).long()),
    lambda nn, R: nn.MultiheadAttention(4, 2)(R(3, 2, 4), R(5, 2, 4), R(5, 2, 4), key_padding_mask=R(5)),
    lambda nn, R: nn.MultiheadAttention(4, 2)(R(3, 4), R(5, 4), R(5, 4), attn_mask=R(3, 3, 5)),
    lambda nn, R: nn.MultiheadAttention(4, 2)(R(3, 2, 4), R(5, 2, 4), R(5, 2, 4), is_causal=True),
    lambda nn, R: nn.MultiheadAttention(4, 2, kdim=3)(R(3, 2, 4), R(5, 2, 3), R(6, 2, 4)),
    lambda nn, R: nn.TransformerEncoderLayer(4, 2, activation="tanh"),
    lambda nn, R: nn.Transformer(4, 2, 1, 1, 3)(R(3, 2, 4), R(3, 1, 4)),
    lambda nn, R: nn.Transformer(4, 2, 1, 1, 3, batch_first=True)(R(3, 2, 4), R(2, 2, 4)),
    lambda nn, R: nn.Transformer(4, 2, 1, 1, 3)(R(3, 2, 5), R(3, 2, 4)),
])
def test_errors(call):
    with pytest.raises((RuntimeError, ValueError, AssertionError)) as theirs:
        call(torch.nn, torch.ones)
    with pytest.raises(theirs.type, match=r"^(MultiheadAttention|multi_head_attention_forward|Transformer\w*): "):
        call(pt.nn, pt.ones)


def test_attention_starts_as_torchs():
    """The distributions of all parameters: their largest magnitudes and spreads."""
    ours, theirs = (lib.nn.MultiheadAttention(64, 4, add_bias_kv=True) for lib in (pt, torch))
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        if q.abs().max() == 0:
            assert not p.any()
        else:
            few = "bias" in name
            assert p.std().item() == pytest.approx(q.std().item(), rel=0.35 if few else 0.05), name
            assert p.abs().max().item() == pytest.approx(q.abs().max().item(), rel=0.6 if few else 0.05), name


def test_dropout_in_training_only():
    pt.manual_seed(0)
    m = pt.nn.MultiheadAttention(8, 2, dropout=0.5)
    x = pt.randn(20, 3, 8)
    for need_weights in (False, True):
        m.train()
        drawn = [m(x, x, x, need_weights=need_weights)[0] for _ in range(400)]
        assert not pt.equal(drawn[0], drawn[1])
        m.eval()
        out = m(x, x, x, need_weights=need_weights)[0]
        assert pt.equal(out, m(x, x, x, need_weights=need_weights)[0])
        mean, spread = pt.stack(drawn).mean(0), pt.stack(drawn).std(0)
        assert ((mean - out).abs() / spread).max().item() < 0.3         # 20 times 1 / sqrt(400) would be 1
        if need_weights:
            m.train()
            dropped = m(x, x, x, average_attn_weights=False)[1]
            assert abs((dropped == 0).double().mean().item() - 0.5) < 0.05


def test_second_order():
    m = pt.nn.MultiheadAttention(4, 2, add_bias_kv=True).double()
    x = pt.randn(3, 1, 4, dtype=pt.float64, requires_grad=True)

    def call(x, w):
        with pt.no_grad():
            rest = [p.detach() for p in (m.in_proj_bias, m.bias_k, m.bias_v, m.out_proj.weight, m.out_proj.bias)]
        return pt.nn.functional.multi_head_attention_forward(x, x, x, 4, 2, w, *rest[:3], True, 0.0, *rest[3:],
                                                             need_weights=False)[0]

    w = m.in_proj_weight.detach().requires_grad_()
    assert gradcheck(call, (x, w))
    assert gradgradcheck(call, (x, w))


def test_merged_masks():
    rng = np.random.default_rng(12)
    pairs, heads, padding = (rng.normal(size=s) for s in ((S, S), (2 * N, S, S), (N, S)))
    for masks in ((None, None), (None, padding), (pairs, None), (pairs, padding), (heads, padding)):
        results = []
        for lib in (pt, torch):
            given = [None if m is None else lib.tensor(m) for m in masks]
            results.append(lib.nn.MultiheadAttention(E, 2).merge_masks(*given, lib.zeros(N, S, E)))
        assert results[0][1] == results[1][1]
        near(results[0][0], results[1][0])


def test_masks_of_other_dtypes_are_warned_of():
    m, x = pt.nn.MultiheadAttention(4, 2), pt.ones(3, 1, 4)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        m(x, x, x, attn_mask=pt.zeros(3, 3), key_padding_mask=pt.zeros(1, 3, dtype=pt.bool))
    assert any("MultiheadAttention: key_padding_mask" in str(w.message) for w in seen)


# -- Transformer layers ---------------------------------------------------------------------------------

LAYERS = [{}, {"norm_first": True}, {"activation": "gelu"}, {"batch_first": True, "bias": False},
          {"layer_norm_eps": 1e-2}]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_encoder_layer(options, training):
    rng = np.random.default_rng(7)

    def call(lib, m, x):
        mask = lib.tensor(np.triu(np.ones((4, 4), bool), 1))
        padding = None if options.get("batch_first") else lib.tensor(np.arange(12).reshape(3, 4) % 4 == 3)
        return m(x), m(x, src_mask=mask, src_key_padding_mask=padding)

    shape = (2, 4, 6) if options.get("batch_first") else (4, 3, 6)
    compare(lambda nn: nn.TransformerEncoderLayer(6, 2, 8, 0.0, **options).train(training),
            (rng.normal(size=shape),), call)


@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_decoder_layer(options):
    rng = np.random.default_rng(8)

    def call(lib, m, x, memory):
        mask = lib.nn.Transformer.generate_square_subsequent_mask(4, dtype=lib.float64)
        return m(x, memory), m(x, memory, tgt_mask=mask, tgt_is_causal=True,
                               memory_mask=lib.tensor(np.arange(20).reshape(4, 5) % 4 == 1))

    shapes = [(2, 4, 6), (2, 5, 6)] if options.get("batch_first") else [(4, 2, 6), (5, 2, 6)]
    compare(lambda nn: nn.TransformerDecoderLayer(6, 2, 8, 0.0, **options),
            [rng.normal(size=s) for s in shapes], call)


def test_activation_may_be_any_function():
    rng = np.random.default_rng(9)
    for lib, module in zip((pt, torch), (lambda: pt.nn.Tanh(), lambda: torch.nn.Tanh()), strict=True):
        layer = lib.nn.TransformerEncoderLayer(6, 2, 8, activation=module())
        assert "activation" in dict(layer.named_children())
        assert layer.activation_relu_or_gelu == 0
        assert lib.nn.TransformerEncoderLayer(6, 2, 8, activation=lib.nn.GELU()).activation_relu_or_gelu == 2
        assert lib.nn.TransformerEncoderLayer(6, 2, 8).activation_relu_or_gelu == 1
    ours, theirs = both(lambda nn: nn.TransformerEncoderLayer(6, 2, 8, 0.0, nn.SiLU()))
    x = rng.normal(size=(3, 2, 6))
    near(ours(pt.tensor(x)), theirs(torch.tensor(x)))


@pytest.mark.parametrize("options", [{}, {"norm_first": True, "batch_first": True}])
def test_stacks(options):
    rng = np.random.default_rng(10)

    def make(nn):
        layer = nn.TransformerEncoderLayer(6, 2, 8, 0.0, **options)
        return nn.TransformerEncoder(layer, 2, nn.LayerNorm(6))

    def encode(lib, m, x):
        mask = lib.nn.Transformer.generate_square_subsequent_mask(4, dtype=lib.float64)
        return m(x), m(x, mask), m(x, mask, is_causal=True), m(x, mask, is_causal=False), m(x, mask * 0 + 0.1)

    ours, _ = compare(make, (rng.normal(size=(4, 4, 6)),), encode)
    assert len({id(p) for p in ours.parameters()}) == len(list(ours.parameters()))

    def make_decoder(nn):
        return nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8, 0.0, **options), 2)

    def decode(lib, m, x, memory):
        mask = lib.nn.Transformer.generate_square_subsequent_mask(4, dtype=lib.float64)
        return m(x, memory), m(x, memory, mask), m(x, memory, tgt_mask=mask, tgt_is_causal=True)

    compare(make_decoder, (rng.normal(size=(4, 4, 6)), rng.normal(size=(4, 4, 6))), decode)


@pytest.mark.parametrize("options", [{}, {"batch_first": True, "norm_first": True, "activation": "gelu",
                                          "bias": False}])
def test_transformer(options):
    rng = np.random.default_rng(11)
    first = options.get("batch_first", False)

    def call(lib, m, src, tgt):
        mask = m.generate_square_subsequent_mask(3, dtype=lib.float64)
        padding = lib.tensor(np.arange(8).reshape(2, 4) % 4 == 3)
        return m(src, tgt), m(src, tgt, tgt_mask=mask, src_key_padding_mask=padding, memory_key_padding_mask=padding)

    compare(lambda nn: nn.Transformer(6, 2, 2, 1, 8, 0.0, **options),
            [rng.normal(size=s) for s in (((2, 4, 6), (2, 3, 6)) if first else ((4, 2, 6), (3, 2, 6)))], call)


def test_transformer_starts_as_torchs():
    ours, theirs = (lib.nn.Transformer(32, 4, 1, 1, 64) for lib in (pt, torch))
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        if p.ndim > 1:
            assert p.std().item() == pytest.approx(q.std().item(), rel=0.1), name
        else:
            assert p.abs().max().item() == pytest.approx(q.abs().max().item(), abs=0.05), name


def test_custom_parts():
    class Part(pt.nn.Module):
        def forward(self, x, *args, **options):
            return x + 1

    model = pt.nn.Transformer(4, 2, custom_encoder=Part(), custom_decoder=Part())
    assert pt.equal(model(pt.ones(3, 1, 4), pt.ones(2, 1, 4)), pt.ones(2, 1, 4) + 1)


def test_states_and_copies():
    """A state dict of torch's loads; copies and older pickles without an activation work."""
    ours, theirs = pt.nn.Transformer(4, 2, 1, 1, 5), torch.nn.Transformer(4, 2, 1, 1, 5)
    ours.load_state_dict({k: pt.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    again = copy.deepcopy(ours).eval()
    x = pt.randn(3, 2, 4)
    assert pt.equal(ours.eval()(x, x), again(x, x))
    y = torch.tensor(x.numpy())
    np.testing.assert_allclose(again(x, x).detach().numpy(), theirs.eval()(y, y).detach().numpy(), rtol=1e-4, atol=1e-5)
    layer = pt.nn.TransformerEncoderLayer(4, 2, 3)
    state = {k: v for k, v in layer.__getstate__().items() if k != "activation"}
    fresh = pt.nn.TransformerEncoderLayer.__new__(pt.nn.TransformerEncoderLayer)
    fresh.__setstate__(state)
    assert fresh.activation is pt.nn.functional.relu


@pytest.mark.parametrize("name", ["MultiheadAttention", "Transformer", "TransformerEncoder", "TransformerDecoder",
                                  "TransformerEncoderLayer", "TransformerDecoderLayer", "Bilinear"])
def test_signatures(name):
    def parameters(function):
        found = inspect.signature(function).parameters.values()
        return [(p.name, getattr(p.default, "__name__", p.default)) for p in found]

    ours, theirs = (getattr(lib.nn, name) for lib in (pt, torch))
    assert parameters(ours) == parameters(theirs)
    assert parameters(ours.forward) == parameters(theirs.forward)
