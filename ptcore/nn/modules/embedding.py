"""Embedding and EmbeddingBag: rows of a table by index."""

import ptcore
from ptcore._ops.checked import flag, need_tensors
from ptcore.nn import functional as F
from ptcore.nn import init
from ptcore.nn.modules.module import Module
from ptcore.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """The weight of both layers: a row for each index, that of `padding_idx` zero at first."""

    def __init__(self, num_embeddings, embedding_dim, padding_idx, weight, freeze, device, dtype, sparse):
        super().__init__()
        if flag(type(self).__name__, "sparse", sparse):
            raise NotImplementedError(f"{type(self).__name__}: sparse must be False, got True: gradients are dense")
        self.sparse = sparse
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(
                    f"{type(self).__name__}: padding_idx must be in [{-num_embeddings}, "
                    f"{num_embeddings - 1}], got {padding_idx}"
                )
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        if weight is None:
            weight = ptcore.empty(num_embeddings, embedding_dim, device=device, dtype=dtype)
            self.weight = Parameter(weight, requires_grad=not freeze)
            self.reset_parameters()
        else:
            need_tensors(type(self).__name__, _weight=weight)
            if tuple(weight.shape) != (num_embeddings, embedding_dim):
                raise ValueError(
                    f"{type(self).__name__}: _weight must have shape [{num_embeddings}, "
                    f"{embedding_dim}], got {list(weight.shape)}"
                )
            self.weight = Parameter(weight, requires_grad=not freeze)

    def reset_parameters(self):
        """Draw the rows from N(0, 1); the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with ptcore.no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_Table):
    """Rows of a table, looked up by index.

    Parameters
    ----------
    num_embeddings : int
        The number of rows.
    embedding_dim : int
        The length of a row.
    padding_idx : int, optional
        A row that is zero at first and gets no gradient.
    max_norm : float, optional
        Rows that are looked up and are longer are scaled to this norm, in place.
    norm_type : float, default: 2
        The order of the norm.
    scale_grad_by_freq : bool, default: False
        Whether a row's gradient is divided by how often it was looked up.
    sparse : bool, default: False
        Must be False.
    device, dtype : optional
        Of the table.

    Notes
    -----
    Input of shape ``(*)`` of integers gives ``(*, embedding_dim)``.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.Embedding(10, 3, padding_idx=0)
    >>> layer
    Embedding(10, 3, padding_idx=0)
    >>> layer(ptcore.tensor([[1, 0]])).shape
    ptcore.Size([1, 2, 3])
    """

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        _freeze=False,
        device=None,
        dtype=None,
    ):
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, device, dtype, sparse)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq

    @classmethod
    def from_pretrained(
        cls,
        embeddings,
        freeze=True,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
    ):
        """A layer whose table is given.

        Parameters
        ----------
        embeddings : Tensor
            Shape ``(num_embeddings, embedding_dim)``.
        freeze : bool, default: True
            Whether the table is not trained.
        padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
            As for the class.

        Examples
        --------
        >>> import ptcore
        >>> table = ptcore.tensor([[1., 2.], [3., 4.]])
        >>> ptcore.nn.Embedding.from_pretrained(table)(ptcore.tensor(1)).tolist()
        [3.0, 4.0]
        """
        if embeddings.ndim != 2:
            raise ValueError(f"from_pretrained: embeddings must be 2D, got {embeddings.ndim}D")
        return cls(
            *embeddings.shape,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
            _weight=embeddings,
            _freeze=freeze,
        )

    def forward(self, input):
        """Rows of the indices in `input`."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self):
        """Sizes and options."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text + (", sparse=True" if self.sparse else "")


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of rows, looked up by index.

    Parameters
    ----------
    num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, sparse
        As for :class:`Embedding`.
    mode : {'mean', 'sum', 'max'}, default: 'mean'
        How the rows of a bag are combined.
    include_last_offset : bool, default: False
        Whether the offsets end with the number of indices.
    padding_idx : int, optional
        A row that counts in no bag.
    device, dtype : optional
        Of the table.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.EmbeddingBag(10, 3, mode="sum")
    >>> layer
    EmbeddingBag(10, 3, mode='sum')
    >>> layer(ptcore.tensor([1, 2, 4]), ptcore.tensor([0, 2])).shape
    ptcore.Size([2, 3])
    """

    _torch_later = (("include_last_offset", False), ("padding_idx", None))

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="mean",
        sparse=False,
        _weight=None,
        include_last_offset=False,
        padding_idx=None,
        device=None,
        dtype=None,
    ):
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, False, device, dtype, sparse)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.include_last_offset = include_last_offset

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
                        mode="mean", sparse=False, include_last_offset=False, padding_idx=None):
        """A layer whose table is given; parameters as for the class and :meth:`ptcore.nn.Embedding.from_pretrained`.

        Examples
        --------
        >>> import ptcore
        >>> layer = ptcore.nn.EmbeddingBag.from_pretrained(ptcore.tensor([[1., 2.], [3., 4.]]))
        >>> layer(ptcore.tensor([[0, 1]])).tolist()
        [[2.0, 3.0]]
        """
        if embeddings.ndim != 2:
            raise AssertionError(f"from_pretrained: embeddings must be 2D, got {embeddings.ndim}D")
        layer = cls(*embeddings.shape, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings,
                    include_last_offset, padding_idx)
        layer.weight.requires_grad = not freeze
        return layer

    def forward(self, input, offsets=None, per_sample_weights=None):
        """Combine bags of indices: rows of a 2D `input`, or pieces of a 1D one that begin at `offsets`."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self):
        """Sizes and options."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        return text
