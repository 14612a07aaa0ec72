"""Batch normalisation folded into the convolution or linear layer before it, for evaluation."""
import copy

import ptcore
from ptcore.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fused(op, layer, bn, fuse, *options):
    """A copy of a layer with the weight and bias that include the normalisation."""
    if layer.training or bn.training:
        raise AssertionError(f"{op}: Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError(f"{op}: bn.running_mean and bn.running_var must not be None")
    result = copy.deepcopy(layer)
    result.weight, result.bias = fuse(result.weight, result.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight,
                                      bn.bias, *options)
    return result


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A convolution that includes the batch normalisation after it.

    Parameters
    ----------
    conv : Module
        A convolution in evaluation mode.
    bn : Module
        A batch normalisation in evaluation mode, with running statistics.
    transpose : bool, default: False
        Whether the convolution is a transposed one.

    Returns
    -------
    Module
        A new convolution.

    Raises
    ------
    AssertionError
        If one is in training mode, or there are no running statistics.

    Examples
    --------
    >>> import ptcore
    >>> conv, bn = ptcore.nn.Conv2d(3, 4, 3).eval(), ptcore.nn.BatchNorm2d(4).eval()
    >>> x = ptcore.randn(1, 3, 5, 5)
    >>> ptcore.allclose(ptcore.nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-5)
    True
    """
    return _fused("fuse_conv_bn_eval", conv, bn, fuse_conv_bn_weights, transpose)


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """Weight and bias of a convolution with the batch normalisation after it folded in, as two parameters."""
    bias_dtype = conv_w.dtype if conv_b is None else conv_b.dtype
    conv_b = ptcore.zeros_like(bn_rm) if conv_b is None else conv_b
    bn_b = ptcore.zeros_like(bn_rm) if bn_b is None else bn_b
    scale = ptcore.rsqrt(bn_rv + bn_eps)
    scale = scale if bn_w is None else bn_w * scale
    shape = [1] * conv_w.ndim
    shape[int(transpose)] = -1
    weight = (conv_w * scale.reshape(shape)).to(dtype=conv_w.dtype)
    bias = ((conv_b - bn_rm) * scale + bn_b).to(dtype=bias_dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, conv_b.requires_grad)


def fuse_linear_bn_eval(linear, bn):
    """A linear layer that includes the batch normalisation after it.

    Parameters
    ----------
    linear : Linear
        In evaluation mode.
    bn : Module
        A batch normalisation in evaluation mode, with running statistics, of ``linear.out_features`` features or one.

    Returns
    -------
    Linear
        A new layer.

    Raises
    ------
    AssertionError
        If one is in training mode, there are no running statistics, or the numbers of features differ.

    Examples
    --------
    >>> import ptcore
    >>> linear, bn = ptcore.nn.Linear(3, 4).eval(), ptcore.nn.BatchNorm1d(4).eval()
    >>> x = ptcore.randn(2, 3)
    >>> ptcore.allclose(ptcore.nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)), atol=1e-5)
    True
    """
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError("fuse_linear_bn_eval: To fuse, linear.out_features == bn.num_features or bn.num_features "
                             f"== 1, got linear.out_features={linear.out_features} and bn.num_features="
                             f"{bn.num_features}")
    return _fused("fuse_linear_bn_eval", linear, bn, fuse_linear_bn_weights)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """Weight and bias of a linear layer with the batch normalisation after it folded in, as two parameters."""
    bias_dtype = linear_w.dtype if linear_b is None else linear_b.dtype
    linear_b = ptcore.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * ptcore.rsqrt(bn_rv + bn_eps)
    weight = linear_w * scale.unsqueeze(-1).to(dtype=linear_w.dtype)
    bias = ((linear_b - bn_rm) * scale + bn_b).to(dtype=bias_dtype)
    return Parameter(weight, linear_w.requires_grad), Parameter(bias, linear_b.requires_grad)
