"""Softmax over many classes by clusters of rising size."""
from collections import namedtuple

import ptcore
from ptcore._errors import ShapeError
from ptcore.nn import functional as F
from ptcore.nn.modules._checks import need_tensor
from ptcore.nn.modules.container import ModuleList, Sequential
from ptcore.nn.modules.linear import Linear
from ptcore.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax over many classes, of which few are frequent, and the negative log likelihood.

    The first classes have logits of their own. Each cluster of later, rarer classes has one logit. Logits within a
    cluster are computed from a smaller projection of the input, and only for the samples that need them.

    Parameters
    ----------
    in_features : int
    n_classes : int
        Ordered by falling frequency.
    cutoffs : sequence of int
        The first class of each cluster, rising.
    div_value : float, default: 4.0
        The projection of cluster k has ``in_features / div_value**(k + 1)`` features.
    head_bias : bool, default: False
        Whether the first logits have a bias.
    device, dtype : optional
        Of the parameters.

    Returns
    -------
    output : Tensor, shape (N,)
        The log-probability of each target.
    loss : Tensor
        Minus their mean.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10])
    >>> x = ptcore.randn(3, 16)
    >>> output, loss = layer(x, ptcore.tensor([0, 7, 19]))
    >>> output.shape, layer.log_prob(x).shape
    (ptcore.Size([3]), ptcore.Size([3, 20]))
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of length larger than 0, got []")
        if (cutoffs != sorted(set(cutoffs)) or cutoffs[0] <= 0 or cutoffs[-1] >= n_classes
                or any(int(c) != c for c in cutoffs)):
            raise ValueError("AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of unique, positive integers "
                             "sorted in an increasing order, where each value is between 1 and n_classes-1 = "
                             f"{n_classes - 1}, got {cutoffs}")
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        if isinstance(div_value, (int, float)) and div_value == 0:
            raise ValueError("AdaptiveLogSoftmaxWithLoss: div_value must not be 0, got 0")
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        where = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **where)
        self.tail = ModuleList()
        for k, (low, high) in enumerate(self._clusters()):
            size = int(in_features // div_value ** (k + 1))
            self.tail.append(Sequential(Linear(in_features, size, bias=False, **where),
                                        Linear(size, high - low, bias=False, **where)))

    def _clusters(self):
        """(first class, one behind the last) of each cluster."""
        return zip(self.cutoffs[:-1], self.cutoffs[1:], strict=True)

    def reset_parameters(self):
        """Draw the initial values again."""
        self.head.reset_parameters()
        for projection in self.tail:
            for layer in projection:
                layer.reset_parameters()

    def forward(self, input_, target_):
        """Log-probabilities of the targets, (N,) or (), under inputs, (N, in_features) or (in_features,)."""
        need_tensor(self, "input", input_)
        need_tensor(self, "target", target_)
        name, single = type(self).__name__, target_.ndim == 0
        if target_.ndim > 1:
            raise ShapeError(f"{name}: 0D or 1D target tensor expected, multi-target not supported, got "
                             f"{target_.ndim}D")
        if input_.ndim != target_.ndim + 1:
            raise ShapeError(f"{name}: {target_.ndim}D target tensor expects {target_.ndim + 1}D input tensors, but "
                             f"found inputs with size {list(input_.shape)}")
        if not single and input_.shape[0] != target_.shape[0]:
            raise ShapeError(f"{name}: Input and target should have the same size in the batch dimension, got "
                             f"{input_.shape[0]} and {target_.shape[0]}")
        input, target = (input_.unsqueeze(0), target_.unsqueeze(0)) if single else (input_, target_)
        outside = (target < 0) | (target >= self.n_classes)
        if bool(outside.any()):
            raise RuntimeError(f"{name}: Target values should be in [0, {self.n_classes - 1}], but values in range "
                               f"[{target.min().item()}, {target.max().item()}] were found.")
        output = input.new_zeros(target.shape[0])
        column = target
        for k, (low, high) in enumerate(self._clusters()):
            inside = (target >= low) & (target < high)
            rows = inside.nonzero().squeeze(1)
            if rows.numel():
                logp = F.log_softmax(self.tail[k](input.index_select(0, rows)), dim=1)
                own = logp.gather(1, (target.index_select(0, rows) - low).unsqueeze(1)).squeeze(1)
                output = output.index_copy(0, rows, own)
                column = column.masked_fill(inside, self.shortlist_size + k)
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, column.unsqueeze(1)).squeeze(1)
        loss = -output.mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _of_all(self, input, head):
        """Log-probabilities of all classes from the inputs and the first logits."""
        logp = F.log_softmax(head, dim=1)
        first = self.shortlist_size
        parts = [logp[:, :first]]
        for k, tail in enumerate(self.tail):
            parts.append(F.log_softmax(tail(input), dim=1) + logp[:, first + k].unsqueeze(1))
        return ptcore.cat(parts, 1)

    def log_prob(self, input):
        """Log-probabilities of all classes, (N, n_classes)."""
        return self._of_all(input, self.head(input))

    def predict(self, input):
        """The most probable class of each sample; clusters are looked into where they may hold it.

        Notes
        -----
        As in PyTorch a sample whose largest first logit is that of a class gets that class.
        """
        head = self.head(input)
        best = head.argmax(dim=1)
        rest = (best >= self.shortlist_size).nonzero().squeeze(1)
        if not rest.numel():
            return best
        classes = self._of_all(input.index_select(0, rest), head.index_select(0, rest)).argmax(dim=1)
        return best.index_copy(0, rest, classes)
