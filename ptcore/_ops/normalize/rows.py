"""Rows: softmax and normalisation over dims."""
from ptcore._ops.table.schema import REAL, composite, draw, made, network, nondifferentiable, spelling, structured

for _name, _formula, _jvp in (
        ("softmax", "exp(input) / sum(exp(input))", "(t - sum(t * out, dim, True)) * out"),
        ("log_softmax", "input - log(sum(exp(input)))", "t - sum(t * exp(out), dim, True)")):
    structured(
        f"{_name}(input, dim: Dim, dtype: DType = None)", types=REAL, promote="dtype",
        kernel=_name, out="as_input", public=[_name],
        autocast=(None, "high"), jvp=[_jvp], reference=f"special.{_name}(x, axis=dim)",
        doc=f"""``{_formula}`` along ``dim``, without overflow.

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([0., 0.]), 0).shape
ptcore.Size([2])
""")
    nondifferentiable(
        f"{_name}_backward(grad, output, dim: Dim)", types=REAL, kernel=f"{_name}_backward",
        internal=True, called=_name, out="as_input(grad)", reference=f"_{_name}_backward(grad, output, dim)",
        doc=f"The fused gradient of {_name} for a backward that is not recorded.")

structured(
    "layer_norm_stats(input, weight: OptTensor, bias: OptTensor, normalized_ndim: Int, "
    "eps: Float)", node="NativeLayerNormBackward0", types=REAL, promote="none", kernel="layer_norm",
    internal=True, called="layer_norm", fields=("out", "mean", "rstd"),
    out="layer_norm",
    batch="shift input", jvp="decompose", autocast=(None, "high"),
    reference="_layer_norm(x, weight, bias, normalized_ndim, eps)",
    doc="Layer normalisation with the statistics that its gradient needs.")

nondifferentiable(
    "layer_norm_backward(g, input, mean: Index, rstd: Index, weight: OptTensor = None)", types=REAL,
    promote="none", kernel="layer_norm_backward",
    internal=True, called="layer_norm", fields=("input", "weight", "bias"),
    out="layer_norm_backward",
    batch="decompose", reference="_layer_norm_backward(g, input, mean, rstd, weight)",
    doc="The fused gradient of layer normalisation for a backward that is not recorded.")

structured(
    "rms_norm_stats(input, weight: OptTensor, normalized_ndim: Int, eps: Float)", node="FusedRmsNormBackward0",
    types=REAL, promote="none", kernel="rms_norm", internal=True, called="rms_norm", fields=("out", "rstd"),
    out="rms_norm", batch="shift input", jvp="decompose", autocast=(None, "high"),
    reference="_rms_norm_stats(x, weight, normalized_ndim, eps)",
    doc="Normalisation by the root of the mean square, with the statistic that its gradient needs.")

nondifferentiable(
    "rms_norm_backward(g, input, rstd: Index, weight: OptTensor = None)", types=REAL, promote="none",
    kernel="rms_norm_backward", internal=True, called="rms_norm", fields=("input", "weight"), out="rms_norm_backward",
    batch="decompose", reference="_rms_norm_backward(g, input, rstd, weight)",
    doc="The fused gradient of normalisation by the root of the mean square for a backward that is not recorded.")

structured(
    "batch_norm_stats(input, weight: OptTensor, bias: OptTensor, eps: Float, running_mean: OptIndex = None, "
    "running_var: OptIndex = None, momentum: Float = 0.1)",
    node="NativeBatchNormBackward0", types=REAL, promote="none", kernel="batch_norm",
    layout="contiguous", keeps="channels_last", internal=True, called="batch_norm", fields=("out", "mean", "var"),
    mutates=("running_mean", "running_var"), out_argument=False,
    out="batch_norm", batch="decompose", jvp="decompose",
    reference="_batch_norm(x, weight, bias, eps)",
    doc="Batch normalisation by the batch's own statistics, which are the mean and the biased variance. The running "
        "ones are moved towards the mean and the unbiased variance.")

structured(
    "batch_norm_given(input, mean: Index, var: Index, weight: OptTensor, bias: OptTensor, eps: Float)",
    node="NativeBatchNormBackward0", types=REAL, promote="none", kernel="batch_norm_given", internal=True,
    called="batch_norm", out="as_laid", batch="decompose", jvp="decompose",
    reference="_batch_norm_given(x, mean, var, weight, bias, eps)",
    doc="Batch normalisation by statistics that are given, which are no part of the derivative.")

nondifferentiable(
    "batch_norm_backward(g, input, mean: Index, var: Index, weight: OptTensor, eps: Float)", types=REAL,
    promote="none", kernel="batch_norm_backward", layout="contiguous", keeps="channels_last", internal=True,
    called="batch_norm", fields=("input", "weight", "bias"), out="channels_backward", batch="decompose",
    reference="_batch_norm_backward(g, input, mean, var, weight, eps)",
    doc="The fused gradient of batch normalisation for a backward that is not recorded.")

structured(
    "group_norm_stats(input, weight: OptTensor, bias: OptTensor, num_groups: Int, eps: Float)",
    node="NativeGroupNormBackward0", types=REAL, promote="none", kernel="group_norm",
    layout="contiguous", keeps="channels_last", internal=True, called="group_norm", fields=("out", "mean", "rstd"),
    out="group_norm", batch="decompose", jvp="decompose",
    reference="_group_norm(x, weight, bias, num_groups, eps)",
    doc="Group normalisation with the statistics that its gradient needs.")

nondifferentiable(
    "group_norm_backward(g, input, mean: Index, rstd: Index, weight: OptTensor, num_groups: Int)",
    types=REAL, promote="none", kernel="group_norm_backward", layout="contiguous", keeps="channels_last", internal=True,
    called="group_norm",
    fields=("input", "weight", "bias"), out="channels_backward", batch="decompose",
    reference="_group_norm_backward(g, input, mean, rstd, weight, num_groups)",
    doc="The fused gradient of group normalisation for a backward that is not recorded.")

network("softmin(input, dim: Obj = None, _stacklevel=3, dtype: DType = None)", "special.softmax(-x, axis=dim)",
        "``softmax(-input)`` along ``dim``.", "F.softmin(ptcore.zeros(2), 0)", "tensor([0.5000, 0.5000])",
        autocast=(None, "high"))

for _name, _text, _result in (("softmax", "exp(input) / sum(exp(input))", "tensor([0.5000, 0.5000])"),
                              ("log_softmax", "log(softmax(input))", "tensor([-0.6931, -0.6931])")):
    composite(f"{_name}_function(input, dim: Obj = None, _stacklevel=3, dtype: DType = None)", called=_name,
              public=[f"nn.functional.{_name}"], method=False, autocast=(None, "high"),
              reference=f"special.{_name}(x, axis=dim)",
              doc=f"""``{_text}`` along ``dim``, without overflow; without ``dim`` along that of PyTorch's first years.

>>> import ptcore
>>> ptcore.nn.functional.{_name}(ptcore.zeros(2), dim=0)
{_result}
""")

network("layer_norm(input, normalized_shape: Sizes, weight: OptTensor = None, bias: OptTensor = None, "
        "eps: Float = 1e-05)",
        "_layer_norm(x, weight, bias, len(normalized_shape), eps)[0]",
        "``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dims, whose sizes are ``normalized_shape``.",
        "F.layer_norm(ptcore.tensor([[1., 3.]]), (2,))", "tensor([[-1.0000,  1.0000]])", autocast=(None, "high"))

# -- with running statistics, and of groups --------------------------------------------------------
composite("batch_norm(input, running_mean: OptTensor, running_var: OptTensor, weight: OptTensor = None, "
          "bias: OptTensor = None, training=False, momentum: Float = 0.1, eps: Float = 1e-05)",
          public=["nn.functional.batch_norm"], method=False, mutates=("running_mean", "running_var"),
          reference="_batch_norm_of(x, running_mean, running_var, weight, bias, training, eps)",
          doc="""``(x - mean) / sqrt(var + eps) * weight + bias`` for each channel, over the batch and all positions.

Parameters
----------
input : Tensor
    Shape ``(N, C, ...)``.
running_mean, running_var : Tensor or None
    Shape ``(C,)``: used if not `training`, else moved towards the batch's statistics.
weight, bias : Tensor, optional
    Shape ``(C,)``.
training : bool
    Whether the batch's own statistics are used.
momentum : float
    The share of the batch in the running statistics.
eps : float
    Added to the variance.

Returns
-------
Tensor

Raises
------
ShapeError
    If a tensor has not one element for each channel.
ValueError
    If there is one value a channel in training.

Notes
-----
The batch is normalised by its biased variance; the running one is unbiased.
S. Ioffe, C. Szegedy, arXiv:1502.03167.

Examples
--------
>>> import ptcore
>>> x = ptcore.tensor([[1., 0.], [3., 0.]])
>>> ptcore.nn.functional.batch_norm(x, None, None, training=True)
tensor([[-1.0000,  0.0000],
        [ 1.0000,  0.0000]])
""")

composite("instance_norm(input, running_mean: OptTensor = None, running_var: OptTensor = None, "
          "weight: OptTensor = None, bias: OptTensor = None, use_input_stats=True, momentum: Float = 0.1, "
          "eps: Float = 1e-05)",
          public=["nn.functional.instance_norm"], method=False, mutates=("running_mean", "running_var"),
          reference="_instance_norm(x, running_mean, running_var, weight, bias, use_input_stats, eps)",
          doc="""Normalisation of each channel of each sample over its positions.

Parameters
----------
input : Tensor
    Shape ``(N, C, L, ...)``.
running_mean, running_var : Tensor, optional
    Shape ``(C,)``: used if not `use_input_stats`, else moved towards the batch's means.
weight, bias : Tensor, optional
    Shape ``(C,)``.
use_input_stats : bool
    Whether each sample's own statistics are used.
momentum : float
    The share of the batch in the running statistics.
eps : float
    Added to the variance.

Returns
-------
Tensor

Raises
------
ShapeError
    If a tensor has not one element for each channel.
ValueError
    If there is one position.

Examples
--------
>>> import ptcore
>>> ptcore.nn.functional.instance_norm(ptcore.tensor([[[1., 3.]]]))
tensor([[[-1.0000,  1.0000]]])
""")

composite("group_norm(input, num_groups: Int, weight: OptTensor = None, bias: OptTensor = None, "
          "eps: Float = 1e-05)",
          public=["nn.functional.group_norm"], method=False, autocast=(None, "high"),
          reference="_group_norm(x, weight, bias, num_groups, eps)[0]",
          doc="""Normalisation of each sample over groups of its channels.

Parameters
----------
input : Tensor
    Shape ``(N, C, ...)``.
num_groups : int
    A divisor of ``C``.
weight, bias : Tensor, optional
    Shape ``(C,)``.
eps : float
    Added to the variance.

Returns
-------
Tensor

Raises
------
ShapeError
    If a tensor has not one element for each channel.
RuntimeError
    If `num_groups` does not divide the number of channels.

Notes
-----
Y. Wu, K. He, arXiv:1803.08494.

Examples
--------
>>> import ptcore
>>> ptcore.nn.functional.group_norm(ptcore.tensor([[1., 3., 5., 9.]]), 2)
tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
""")

composite("rms_norm(input, normalized_shape: Sizes, weight: OptTensor = None, eps: OptFloat = None)",
          public=["nn.functional.rms_norm", "rms_norm"], method=False, autocast=(None, "high"),
          reference="_rms_norm(x, normalized_shape, weight, eps)",
          doc="""``x / sqrt(mean(x**2) + eps) * weight`` over the last dims.

Parameters
----------
input : Tensor
    Shape ``(*, *normalized_shape)``.
normalized_shape : int or sequence of ints
weight : Tensor, optional
    Shape ``normalized_shape``.
eps : float, optional
    The dtype's epsilon if None.

Returns
-------
Tensor

Raises
------
ShapeError
    If the last sizes of input, or those of weight, are not ``normalized_shape``.

Notes
-----
B. Zhang, R. Sennrich, arXiv:1910.07467.

Examples
--------
>>> import ptcore
>>> ptcore.nn.functional.rms_norm(ptcore.tensor([[3., 4., 0., 0.]]), (4,))
tensor([[1.2000, 1.6000, 0.0000, 0.0000]])
""")

composite("local_response_norm(input, size: Int, alpha: Scalar = 0.0001, beta: Scalar = 0.75, "
          "k: Scalar = 1.0)",
          public=["nn.functional.local_response_norm"], method=False, autocast=(None, "high"),
          reference="_local_response_norm(x, size, alpha, beta, k)",
          doc="""``x / (k + alpha * mean of x**2 over size neighbouring channels) ** beta``.

Parameters
----------
input : Tensor
    Shape ``(N, C, L, ...)``.
size : int
    The number of channels; channels outside count as zeros.
alpha, beta, k : float

Returns
-------
Tensor

Examples
--------
>>> import ptcore
>>> ptcore.nn.functional.local_response_norm(ptcore.ones(1, 1, 1), 1, alpha=1., beta=1.)
tensor([[[0.5000]]])
""", wide=True)

spelling("layer_norm", "layer_norm(input, normalized_shape: Sizes, weight: OptTensor = None, bias: OptTensor = None, "
         "eps: Float = 1e-05, cudnn_enable=True)")
spelling("group_norm", "group_norm(input, num_groups: Int, weight: OptTensor = None, bias: OptTensor = None, "
         "eps: Float = 1e-05, cudnn_enabled=True)")
spelling("batch_norm", "batch_norm(input, weight: OptTensor, bias: OptTensor, running_mean: OptTensor, "
         "running_var: OptTensor, training: Bool, momentum: Float, eps: Float, cudnn_enabled: Bool)")
spelling("instance_norm", "instance_norm(input, weight: OptTensor, bias: OptTensor, running_mean: OptTensor, "
         "running_var: OptTensor, use_input_stats: Bool, momentum: Float, eps: Float, cudnn_enabled: Bool)")

draw("gumbel_softmax(logits, tau: Float = 1.0, hard=False, eps: Float = 1e-10, dim=-1)",
     """Softmax along ``dim`` of logits with Gumbel noise over ``tau``; with ``hard`` one-hot vectors that have
the gradient of the soft ones.""", "ptcore.nn.functional.gumbel_softmax(ptcore.zeros(1))", "tensor([1.])",
     public=["nn.functional.gumbel_softmax"], method=False)

# -- with what they are normalised by --------------------------------------------------------------
made("native_layer_norm(input, normalized_shape: Sizes, weight: OptTensor, bias: OptTensor, eps: Float)",
     "_layer_norm(x, weight, bias, len(normalized_shape), eps)",
     "``layer_norm``, the means and the reciprocal standard deviations, whose shapes have 1 for the normalised dims.",
     "ptcore.native_layer_norm(ptcore.tensor([[1., 3.]]), (2,), None, None, 0.)",
     "(tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))", method=False, out_argument=True, autocast=(None, "high"),
     returns="tuple[Tensor, Tensor, Tensor]")

made("native_group_norm(input, weight: OptTensor, bias: OptTensor, N: Int, C: Int, HxW: Int, group: Int, eps: Float)",
     "_group_norm(x, weight, bias, group, eps)",
     """``group_norm`` into ``group`` groups, the means and the reciprocal standard deviations, of shape (N, group).
``input`` has N samples of C channels with HxW positions each.""",
     "ptcore.native_group_norm(ptcore.tensor([[1., 3.]]), None, None, 1, 2, 1, 1, 0.)",
     "(tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))", method=False, out_argument=True, autocast=(None, "high"),
     returns="tuple[Tensor, Tensor, Tensor]")

made("native_batch_norm(input, weight: OptTensor, bias: OptTensor, running_mean: OptTensor, running_var: OptTensor, "
     "training: Bool, momentum: Float, eps: Float)",
     "_native_batch_norm(x, weight, bias, eps)",
     """``batch_norm``, the batch's means and reciprocal standard deviations; these are empty unless ``training``.
Then the running statistics are moved towards those of the batch.""",
     "ptcore.native_batch_norm(ptcore.tensor([[1.], [3.]]), None, None, None, None, True, 0.1, 0.)",
     "(tensor([[-1.],\n        [ 1.]]), tensor([2.]), tensor([1.]))", method=False, out_argument=True,
     returns="tuple[Tensor, Tensor, Tensor]")
