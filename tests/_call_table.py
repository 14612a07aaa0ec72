"""A valid call of each public function that is no row: {path: a function of the library that gives (args, kwargs)}."""
import numpy as np


def ramp(lib, shape, dtype="float32"):
    n = int(np.prod(shape))
    values = (np.arange(n) * 7 % 11 / 5 - 1 if dtype.startswith(("float", "complex")) else np.arange(n) % 2)
    return lib.from_numpy(values).to(getattr(lib, dtype)).reshape(shape).clone()       # memory of its own


def parameters(lib, *shapes):
    made = [lib.nn.Parameter(ramp(lib, shape)) for shape in shapes]
    for p in made:
        p.grad = ramp(lib, p.shape)
    return made


def given(*args, **kwargs):
    """Arguments that are the same for both libraries, but for tensors, which are given by their shapes in a ``T``."""
    return lambda lib: ([of(x, lib) for x in args], {key: of(x, lib) for key, x in kwargs.items()})


class T:
    def __init__(self, *shape, dtype="float32", grad=False):
        self.shape, self.dtype, self.grad = shape, dtype, grad


class Call:
    """An argument that a function of the library makes."""

    def __init__(self, make):
        self.make = make


def of(x, lib):
    if isinstance(x, T):
        return ramp(lib, x.shape, x.dtype).requires_grad_(x.grad)
    if isinstance(x, Call):
        return x.make(lib)
    if isinstance(x, (list, tuple)):
        return type(x)([of(part, lib) for part in x])
    return x


IMAGES = T(2, 4, 8, 8)
FOUR = Call(lambda lib: parameters(lib, (3, 4), (4,)))
LINEAR = Call(lambda lib: lib.nn.Linear(4, 3))
DATA = Call(lambda lib: lib.utils.data.TensorDataset(ramp(lib, (6, 2)), ramp(lib, (6,))))
LIST = [1, 2, 3, 4, 5, 6]
MASK = T(2, 3, dtype="bool")

FUNCTIONS = {
    "nn.functional.batch_norm": given(T(2, 4, 3), None, None, T(4), T(4), training=True, momentum=0.1, eps=1e-5),
    "nn.functional.instance_norm": given(T(2, 4, 3), None, None, T(4), T(4), use_input_stats=True, eps=1e-5),
    "nn.functional.group_norm": given(T(2, 4, 3), 2, T(4), T(4), eps=1e-5),
    "nn.functional.local_response_norm": given(T(2, 4, 3), 2, alpha=1e-4, beta=0.75, k=1.0),
    "nn.functional.rms_norm": given(T(2, 4), [4], T(4), eps=1e-5),
    "nn.functional.layer_norm": given(T(2, 4), [4], T(4), T(4), eps=1e-5),
    "nn.functional.hardtanh_": given(T(2, 4), -0.5, 0.5),
    "nn.functional.linear_cross_entropy": given(T(3, 4), T(5, 4), T(3, dtype="int64")),
    "nn.functional.upsample": given(IMAGES, scale_factor=2, mode="nearest"),
    "nn.functional.upsample_nearest": given(IMAGES, 4), "nn.functional.upsample_bilinear": given(IMAGES, 4),
    **{f"nn.functional.{kind}max_pool2d_with_indices": given(IMAGES, 2) for kind in ("", "adaptive_")},
    "nn.functional.max_pool1d_with_indices": given(T(2, 4, 8), 2, 2, 0, 1, ceil_mode=False),
    **{f"fft.{name}": given(6, 0.5) for name in ("fftfreq", "rfftfreq")},
    **{f"signal.windows.{name}": given(6, sym=True) for name in (
        "bartlett", "blackman", "cosine", "hamming", "hann", "nuttall")},
    "signal.windows.exponential": given(6, center=None, tau=1.5, sym=True),
    "signal.windows.gaussian": given(6, std=1.5, sym=True),
    "signal.windows.general_cosine": given(6, a=[0.5, 0.3], sym=True),
    "signal.windows.general_hamming": given(6, alpha=0.6, sym=True),
    "signal.windows.kaiser": given(6, beta=10.0, sym=True),
    **{f"{name}_window": given(6, periodic=True) for name in ("bartlett", "blackman", "hamming", "hann")},
    "kaiser_window": given(6, True, 10.0),
    **{f"masked.{name}": given(T(2, 3), 1, keepdim=True, mask=MASK) for name in (
        "amax", "amin", "sum", "mean", "prod")},
    **{f"masked.{name}": given(T(2, 3), 1, mask=MASK) for name in (
        "softmax", "log_softmax", "softmin", "cumsum", "cumprod", "argmax", "argmin", "logsumexp", "median")},
    **{f"masked.{name}": given(T(2, 3), 1, unbiased=True, mask=MASK) for name in ("var", "std")},
    "masked.norm": given(T(2, 3), 2.0, 1, mask=MASK), "masked.normalize": given(T(2, 3), 2.0, 1, mask=MASK),
    "masked.logaddexp": given(T(2, 3), T(2, 3), input_mask=MASK),
    "masked.masked_tensor": given(T(2, 3), MASK, requires_grad=False),
    "random.manual_seed": given(3), "random.set_rng_state": given(Call(lambda lib: lib.get_rng_state())),
    "autograd.grad": lambda lib: grad_of(lib),
    "autograd.backward": lambda lib: ([grad_of(lib)[0][0]], {"retain_graph": True}),
    "autograd.functional.jacobian": given(Call(lambda lib: lambda x: x * x), T(3), create_graph=False, vectorize=False),
    "autograd.functional.hessian": given(Call(lambda lib: lambda x: (x * x).sum()), T(3)),
    "autograd.functional.vjp": given(Call(lambda lib: lambda x: x * x), T(3), T(3)),
    "autograd.functional.jvp": given(Call(lambda lib: lambda x: x * x), T(3), T(3)),
    "autograd.functional.hvp": given(Call(lambda lib: lambda x: (x * x).sum()), T(3), T(3)),
    "autograd.functional.vhp": given(Call(lambda lib: lambda x: (x * x).sum()), T(3), T(3)),
    "autograd.set_detect_anomaly": given(False),
    "utils.data.BatchSampler": given(LIST, 2, True), "utils.data.ConcatDataset": given([DATA, DATA]),
    "utils.data.ChainDataset": given([DATA]),
    "utils.data.DataLoader": given(DATA, batch_size=2, shuffle=False, num_workers=0, drop_last=False, timeout=0,
                                   prefetch_factor=None, sampler=None, batch_sampler=None, generator=None,
                                   persistent_workers=False, collate_fn=None),
    "utils.data.RandomSampler": given(LIST, replacement=False, num_samples=None, generator=None),
    "utils.data.SequentialSampler": given(LIST), "utils.data.StackDataset": given(DATA, DATA),
    "utils.data.Subset": given(DATA, [0, 2]), "utils.data.SubsetRandomSampler": given([0, 2], generator=None),
    "utils.data.TensorDataset": given(T(4, 2), T(4)),
    "utils.data.WeightedRandomSampler": given([0.2, 0.8], 3, replacement=True, generator=None),
    "utils.data.default_collate": given([T(2), T(2)]), "utils.data.default_convert": given([1, 2.0]),
    "utils.data.random_split": given(LIST, [2, 4]),
    "utils.data.DistributedSampler": given(LIST, 2, 0, shuffle=False, seed=0, drop_last=False),
    "nn.init.calculate_gain": given("leaky_relu", 0.2), "nn.init.constant_": given(T(2, 3), 0.5),
    "nn.init.dirac_": given(T(3, 3, 2), 1), "nn.init.eye_": given(T(2, 3)), "nn.init.ones_": given(T(2)),
    "nn.init.zeros_": given(T(2)), "nn.init.orthogonal_": given(T(3, 3), gain=1),
    **{f"nn.init.kaiming_{name}_": given(T(2, 3), a=0.1, mode="fan_in", nonlinearity="leaky_relu")
       for name in ("normal", "uniform")},
    **{f"nn.init.xavier_{name}_": given(T(2, 3), gain=1.0) for name in ("normal", "uniform")},
    "nn.init.normal_": given(T(2, 3), mean=0.0, std=1.0), "nn.init.uniform_": given(T(2, 3), a=0.0, b=1.0),
    "nn.init.trunc_normal_": given(T(2, 3), mean=0.0, std=1.0, a=-2.0, b=2.0),
    "nn.init.sparse_": given(T(4, 3), 0.5, std=0.1),
    "nn.utils.clip_grad_norm_": given(FOUR, 1.0, norm_type=2.0, error_if_nonfinite=False),
    "nn.utils.clip_grad_value_": given(FOUR, 0.5), "nn.utils.clip_grads_with_norm_": given(FOUR, 1.0, T()),
    "nn.utils.get_total_norm": given([T(2), T(3)], 2.0, error_if_nonfinite=False),
    "nn.utils.parameters_to_vector": given(FOUR), "nn.utils.vector_to_parameters": given(T(16), FOUR),
    "nn.utils.weight_norm": given(LINEAR, "weight", 0),
    "nn.utils.spectral_norm": given(LINEAR, "weight", dim=0),
    "nn.utils.parametrizations.weight_norm": given(LINEAR, "weight", 0),
    "nn.utils.parametrizations.spectral_norm": given(LINEAR, "weight", dim=0),
    "nn.utils.parametrizations.orthogonal": given(LINEAR, "weight", "householder"),
    "nn.utils.remove_weight_norm": given(Call(lambda lib: lib.nn.utils.weight_norm(lib.nn.Linear(4, 3))), "weight"),
    "nn.utils.rnn.pack_padded_sequence": given(T(4, 2, 3), [4, 2], batch_first=False, enforce_sorted=True),
    "nn.utils.rnn.pad_packed_sequence": given(
        Call(lambda lib: lib.nn.utils.rnn.pack_padded_sequence(ramp(lib, (4, 2, 3)), [4, 2])), batch_first=False,
        padding_value=0.0, total_length=None),
    "nn.utils.rnn.pack_sequence": given([T(3), T(2)], enforce_sorted=True),
    "nn.utils.rnn.pad_sequence": given([T(3), T(2)], batch_first=False, padding_value=0.0, padding_side="right"),
    "nn.utils.rnn.unpad_sequence": given(T(4, 2, 3), Call(lambda lib: lib.tensor([4, 2])), batch_first=False),
    **{f"nn.utils.prune.{name}": given(LINEAR, "weight", amount=0.3) for name in (
        "l1_unstructured", "random_unstructured")},
    "nn.utils.prune.ln_structured": given(LINEAR, "weight", amount=0.3, n=2, dim=0),
    "nn.utils.prune.random_structured": given(LINEAR, "weight", amount=0.3, dim=0),
    "nn.utils.prune.identity": given(LINEAR, "weight"),
    "nn.utils.prune.custom_from_mask": given(LINEAR, "weight", T(3, 4)),
    "optim.SGD": given(FOUR, lr=0.1, momentum=0.9, dampening=0.0, weight_decay=0.0, nesterov=False),
    **{f"optim.{name}": given(FOUR, lr=0.1, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1)
       for name in ("Adam", "AdamW", "Adamax", "NAdam", "RAdam")},
    "optim.Adadelta": given(FOUR, lr=0.1, rho=0.9, eps=1e-6, weight_decay=0.0),
    "optim.Adafactor": given(FOUR, lr=0.1, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0),
    "optim.Adagrad": given(FOUR, lr=0.1, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10),
    "optim.ASGD": given(FOUR, lr=0.1, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0),
    "optim.LBFGS": given(FOUR, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, history_size=100,
                         line_search_fn=None),
    "optim.Muon": given(Call(lambda lib: parameters(lib, (3, 4))), lr=0.1, weight_decay=0.1, momentum=0.9, ns_steps=5),
    "optim.RMSprop": given(FOUR, lr=0.1, alpha=0.9, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False),
    "optim.Rprop": given(FOUR, lr=0.1, etas=(0.5, 1.2), step_sizes=(1e-6, 50)),
}
RANDOM = ("nn.init.", "nn.utils.parametrizations", "nn.utils.prune", "nn.utils.spectral", "nn.utils.weight_norm",
          "nn.utils.remove", "utils.data.", "random.")


def grad_of(lib):
    x = ramp(lib, (3,)).requires_grad_()
    return [[(x * x).sum()], [x]], {"retain_graph": False, "create_graph": False, "allow_unused": False}
