"""Batch and instance normalisation.

Both have the same parameters and buffers: ``weight`` and ``bias`` if `affine`; ``running_mean``, ``running_var``
and ``num_batches_tracked`` if `track_running_stats`, else None.
"""

import ptcore
from ptcore._errors import ShapeError
from ptcore.nn import functional as F
from ptcore.nn.modules._checks import need_tensor
from ptcore.nn.modules._described import Scaled

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
           "SyncBatchNorm"]


class _ChannelNorm(Scaled):
    """The common part of batch and instance normalisation."""

    _version = 2
    _ndims = None

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True,
                 device=None, dtype=None, *, bias=True):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        where = {"device": device, "dtype": dtype}
        self._make_scale(num_features, affine, affine and bias, device, dtype)
        tracked = track_running_stats
        self.register_buffer("running_mean", ptcore.zeros(num_features, **where) if tracked else None)
        self.register_buffer("running_var", ptcore.ones(num_features, **where) if tracked else None)
        count = ptcore.zeros((), dtype=ptcore.int64, device=device) if tracked else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self):
        """Set the running mean to zeros, the running variance to ones, the count to zero."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Set the weight to ones and the bias to zeros, and reset the running statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input):
        """Raise where `input` has another number of dims than the layer takes. Subclasses override it by this name."""
        if self._ndims is None:
            raise NotImplementedError(f"{type(self).__name__}: a subclass defines _check_input_dim")
        need_tensor(self, "input", input)
        if input.ndim not in self._ndims:
            expected = " or ".join(f"{n}D" for n in self._ndims)
            raise ShapeError(f"{type(self).__name__}: expected {expected} input (got {input.ndim}D input)")

    def extra_repr(self):
        """The options."""
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys,
                              unexpected_keys, error_msgs):
        # Files of version 1 have no count of batches.
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            count = self.num_batches_tracked
            state_dict[key] = count if count is not None else ptcore.zeros((), dtype=ptcore.int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys,
                                      unexpected_keys, error_msgs)


class _BatchNorm(_ChannelNorm):
    def forward(self, input):
        """Normalise `input`; in training mode the running statistics move."""
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:           # the mean of all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        own = self.training or (self.running_mean is None and self.running_var is None)
        keep = not self.training or self.track_running_stats
        return F.batch_norm(input, self.running_mean if keep else None, self.running_var if keep else None,
                            self.weight, self.bias, own, momentum, self.eps)


class _InstanceNorm(_ChannelNorm):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False,
                 device=None, dtype=None, *, bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self):
        """The dims of one sample without a batch dim."""
        if self._ndims is None:
            raise NotImplementedError(f"{type(self).__name__}: a subclass defines _get_no_batch_dim")
        return max(self._ndims) - 1

    def forward(self, input):
        """Normalise `input`, ``(N, C, ...)`` or, of one sample, ``(C, ...)``."""
        self._check_input_dim(input)
        one = self._get_no_batch_dim()
        channel = input.ndim - one
        if self.affine and input.shape[channel] != self.num_features:
            raise ValueError(f"{type(self).__name__}: expected input's size at dim={channel} to match num_features "
                             f"({self.num_features}), but got: {input.shape[channel]}.")
        single = input.ndim == one
        out = F.instance_norm(input.unsqueeze(0) if single else input, self.running_mean, self.running_var,
                              self.weight, self.bias, self.training or not self.track_running_stats,
                              0.0 if self.momentum is None else self.momentum, self.eps)
        return out.squeeze(0) if single else out


class BatchNorm1d(_BatchNorm):
    """Normalise each channel over the batch, and over positions if there are any, then scale and shift.

    Parameters
    ----------
    num_features : int
        The number of channels, C.
    eps : float, default: 1e-5
        Added to the variance.
    momentum : float or None, default: 0.1
        The share of a batch in the running statistics; None: the mean of all batches.
    affine : bool, default: True
        Whether to learn `weight` (ones at first) and `bias` (zeros at first).
    track_running_stats : bool, default: True
        Whether to keep running statistics and to use them in evaluation mode.
    device, dtype : optional
        Of the parameters and buffers.
    bias : bool, default: True
        Whether to learn a bias; only with `affine`.

    Notes
    -----
    Input of shape ``(N, C)`` or ``(N, C, L)``. The batch is normalised by its biased variance; the running
    one is unbiased.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.BatchNorm1d(2)
    >>> layer
    BatchNorm1d(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    >>> layer(ptcore.randn(3, 2, 4)).shape
    ptcore.Size([3, 2, 4])
    """

    _ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalise each channel over the batch and all positions, then scale and shift.

    Parameters
    ----------
    num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        As for :class:`BatchNorm1d`.

    Notes
    -----
    Input of shape ``(N, C, H, W)``. The batch is normalised by its biased variance; the running one is unbiased.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.BatchNorm2d(2)
    >>> layer
    BatchNorm2d(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    >>> layer(ptcore.randn(3, 2, 4, 4)).shape
    ptcore.Size([3, 2, 4, 4])
    """

    _ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalise each channel over the batch and all positions, then scale and shift.

    Parameters
    ----------
    num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        As for :class:`BatchNorm1d`.

    Notes
    -----
    Input of shape ``(N, C, D, H, W)``. The batch is normalised by its biased variance; the running one is unbiased.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.BatchNorm3d(2)
    >>> layer
    BatchNorm3d(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    >>> layer(ptcore.randn(3, 2, 4, 4, 4)).shape
    ptcore.Size([3, 2, 4, 4, 4])
    """

    _ndims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of several processes; with one process, over its own batch.

    Parameters
    ----------
    num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        As for :class:`BatchNorm1d`.
    process_group : optional
        Kept; there are no groups of processes yet.

    Notes
    -----
    Input of shape ``(N, C, ...)``.

    Examples
    --------
    >>> import ptcore
    >>> net = ptcore.nn.Sequential(ptcore.nn.Conv2d(3, 2, 1), ptcore.nn.BatchNorm2d(2))
    >>> ptcore.nn.SyncBatchNorm.convert_sync_batchnorm(net)[1]
    SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None,
                 device=None, dtype=None, *, bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        need_tensor(self, "input", input)
        if input.ndim < 2:
            raise ShapeError(f"SyncBatchNorm: expected at least 2D input (got {input.ndim}D input)")
        if input.shape[1] == 0:
            raise ShapeError(f"SyncBatchNorm: number of input channels should be non-zero, got shape "
                             f"{list(input.shape)}")

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """Put a SyncBatchNorm, with the same parameters and buffers, in place of every batch normalisation.

        Parameters
        ----------
        module : Module
            One or more of its submodules, or itself, are replaced.
        process_group : optional

        Returns
        -------
        Module
            The module, or what replaces it.
        """
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                         process_group, bias=module.bias is not None)
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(result, name, getattr(module, name))
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class InstanceNorm1d(_InstanceNorm):
    """Normalise each channel of each sample over its positions.

    Parameters
    ----------
    num_features : int
        The number of channels, C.
    eps : float, default: 1e-5
        Added to the variance.
    momentum : float or None, default: 0.1
        The share of a batch in the running statistics.
    affine : bool, default: False
        Whether to learn `weight` (ones at first) and `bias` (zeros at first).
    track_running_stats : bool, default: False
        Whether to keep running statistics and to use them in evaluation mode.
    device, dtype : optional
        Of the parameters and buffers.
    bias : bool, default: True
        Whether to learn a bias; only with `affine`.

    Notes
    -----
    Input of shape ``(N, C, L)``, or ``(C, L)`` of one sample. The running statistics are means over the samples.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.InstanceNorm1d(2)(ptcore.randn(3, 2, 4)).shape
    ptcore.Size([3, 2, 4])
    """

    _ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalise each channel of each sample over its positions.

    Parameters
    ----------
    num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        As for :class:`InstanceNorm1d`.

    Notes
    -----
    Input of shape ``(N, C, H, W)``, or ``(C, H, W)`` of one sample. The running statistics are means over the samples.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.InstanceNorm2d(2)(ptcore.randn(3, 2, 4, 4)).shape
    ptcore.Size([3, 2, 4, 4])
    """

    _ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalise each channel of each sample over its positions.

    Parameters
    ----------
    num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        As for :class:`InstanceNorm1d`.

    Notes
    -----
    Input of shape ``(N, C, D, H, W)``, or ``(C, D, H, W)`` of one sample. The running statistics are means
    over the samples.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.InstanceNorm3d(2)(ptcore.randn(3, 2, 4, 4, 4)).shape
    ptcore.Size([3, 2, 4, 4, 4])
    """

    _ndims = (4, 5)
