"""Rows: losses."""
from ptcore._ops.table.schema import (
    FLOATING,
    REAL,
    composite,
    elementwise,
    network,
    nondifferentiable,
    spelling,
    structured,
    uniform,
)

structured(
    'cross_entropy_stats(input, target: Index, weight: OptTensor = None, '
    'reduction: "none|mean|sum" = "mean", ignore_index=-100, label_smoothing=0.0)', node="NllLossBackward0", types=REAL,
    promote="none", kernel="cross_entropy",
    internal=True, called="cross_entropy", fields=("out", "lse", "total_weight"),
    out="cross_entropy", batch="decompose", jvp="decompose",
    autocast="high",
    reference="_cross_entropy(x, target, weight, reduction, ignore_index, label_smoothing)",
    doc="Cross entropy with the log-sum-exp and the total weight that its gradient needs.")

nondifferentiable(
    'cross_entropy_backward(g, input, target: Index, weight: OptTensor, lse: Index, '
    'total_weight: Index, reduction: "none|mean|sum", ignore_index: Int, label_smoothing: Float)',
    types=REAL, promote="none", kernel="cross_entropy_backward",
    internal=True, called="cross_entropy", out="as_input",
    batch="decompose", reference="_cross_entropy_backward",
    doc="The fused gradient of cross entropy for a backward that is not recorded.")

structured(
    'nll_loss_stats(input, target: Index, weight: OptTensor = None, '
    'reduction: "none|mean|sum" = "mean", ignore_index=-100)', node="NllLossBackward0", types=REAL, promote="none",
    kernel="nll_loss", internal=True, called="nll_loss", fields=("out", "total_weight"),
    out="nll_loss", batch="decompose",
    jvp=["nll_loss_stats(t, target, weight, reduction, ignore_index)[0]", None, None],
    autocast="high",
    reference="_nll_loss(x, target, weight, reduction, ignore_index)",
    doc="Negative log-likelihood with the total weight that its gradient needs.")

structured(
    'nll_loss_backward(grad, target: Index, weight: OptTensor, total_weight: Index, '
    'reduction: "none|mean|sum", ignore_index: Int, shape: Sizes)', types=REAL, promote="none",
    kernel="nll_loss_backward", internal=True, called="nll_loss", out="sized(grad, shape)",
    batch="decompose",
    jvp=["nll_loss_backward(t, target, weight, total_weight, reduction, ignore_index, shape)",
         None, None, None],
    reference="_nll_loss_backward", doc="Gradient of the negative log-likelihood.")

structured(
    "ctc_loss_stats(log_probs, labels: Index, input_lengths: Index, target_lengths: Index, blank: Int)", types=REAL,
    promote="none", kernel="ctc", internal=True, called="ctc_loss", node="CtcLossBackward0", layout="contiguous",
    fields=("loss", "alpha"), out="ctc_loss", batch="decompose", jvp="rule", autocast="high",
    reference="_ctc_loss_stats", doc="Minus the logarithm of each sequence's probability, and those of the ways to it.")

nondifferentiable(
    "ctc_loss_backward(g, log_probs, labels: Index, input_lengths: Index, target_lengths: Index, loss: Index, "
    "alpha: Index, blank: Int)", types=REAL, promote="none", kernel="ctc_backward", internal=True, called="ctc_loss",
    layout="contiguous", out="as_input(log_probs)", batch="decompose", reference="_ctc_loss_backward",
    doc="The gradient of the alignments for a backward that is not recorded.")

for _name, _given, _reference, _doc in (
        ("multi_margin", "weight: OptIndex, p: Int, margin: Float", "weight, p, margin",
         "The margin loss of each row of scores and its class."),
        ("multilabel_margin", "", "", "The margin loss of each row of scores and its labels, up to the first -1.")):
    structured(
        f"{_name}(input, target: Index{', ' * bool(_given)}{_given})", types=REAL, kernel=_name, layout="contiguous",
        internal=True, called=f"{_name}_loss", node="MultiMarginLossBackward0", promote="none", out="of_rows",
        batch="decompose", jvp="decompose", reference=f"_{_name}_rows(x, target{', ' * bool(_given)}{_reference})",
        doc=_doc)
    nondifferentiable(
        f"{_name}_slope(input, target: Index{', ' * bool(_given)}{_given})", types=REAL, kernel=f"{_name}_slope",
        layout="contiguous", internal=True, called=f"{_name}_loss", promote="none", out="as_input", batch="decompose",
        reference=f"_{_name}_slope(x, target{', ' * bool(_given)}{_reference})",
        doc="The derivative of such a loss by the scores of its row.")

# -- of losses ---------------------------------------------------------------------------------
elementwise(
    "cross_entropy_of_bits(input, target)", types=REAL, internal=True, called="binary_cross_entropy",
    node="BinaryCrossEntropyBackward0",
    formula="-(y * maximum(log(x), -100.0) + (1 - y) * maximum(log1p(-x), -100.0))",
    partial=["(x - y) / maximum((1 - x) * x, 1e-12)", "maximum(log1p(-x), -100.0) - maximum(log(x), -100.0)"],
    cost=16, sample=uniform(0.1, 0.9), reference="-(y * maximum(log(x), -100) + (1 - y) * maximum(log1p(-x), -100))",
    doc="Binary cross entropy of probabilities, its logarithms at least -100.")

elementwise(
    "cross_entropy_of_logits(input, target)", types=REAL, internal=True, called="binary_cross_entropy_with_logits",
    node="BinaryCrossEntropyWithLogitsBackward0", formula="(1 - y) * x - log_sigmoid(x)",
    partial=["sigmoid(x) - y", "-x"], cost=16, sample=uniform(-4, 4),
    reference="(1 - y) * x + logaddexp(0, -x)", doc="Binary cross entropy of logits.")

elementwise(
    "squared_difference(input, target)", types=FLOATING, internal=True, called="mse_loss", node="MseLossBackward0",
    formula="(x - y) * (x - y)", partial=["2 * (x - y)", "-2 * (x - y)"], autocast="high",
    reference="(x - y)**2", doc="``(input - target)**2``.")

elementwise(
    "absolute_difference(input, target)", types=REAL, internal=True, called="l1_loss", node="L1LossBackward0",
    formula="abs(x - y)", partial=["sign(x - y)", "-sign(x - y)"], autocast="high",
    reference="abs(x - y)", doc="``abs(input - target)``.")

elementwise(
    "huber_of(input, target, delta: Float)", types=REAL, internal=True, called="huber_loss", node="HuberLossBackward0",
    formula="0.5 * (x - y) * (x - y) if abs(x - y) < delta else delta * (abs(x - y) - 0.5 * delta)",
    # NaN is not beyond delta, so that it passes
    partial=["delta * sign(x - y) if abs(x - y) >= delta else x - y",
             "-delta * sign(x - y) if abs(x - y) >= delta else y - x"],
    reference="where(abs(x - y) < delta, 0.5 * (x - y)**2, delta * (abs(x - y) - 0.5 * delta))",
    doc="Half the square of a small difference, straight lines beyond ``delta``.")

# -- losses -------------------------------------------------------------------------------------
_OLD = "size_average: Obj = None, reduce: Obj = None"
_NEW = 'reduction: Obj = "mean"'


def _loss(signature, reference, text, example, result, autocast="high", wide=True):
    network(signature, reference, f"{text}\n\n``reduction`` is \"mean\", \"sum\" or \"none\".", example, result,
            autocast=autocast, wide=wide)


_loss("cross_entropy(input, target, weight: OptTensor = None, size_average: Obj = None, ignore_index=-100, "
      f"reduce: Obj = None, {_NEW}, label_smoothing: Float = 0.0)",
      "_cross_entropy(x, target, weight, reduction, ignore_index, label_smoothing)[0]",
      """Cross entropy between logits and class indices or class probabilities.

``input`` has shape ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``; ``target`` holds int64 class indices of shape ``()``,
``(N)`` or ``(N, d1, ...)``, or probabilities of input's shape. ``weight`` of shape ``(C)`` weighs the classes, targets
equal to ``ignore_index`` do not count, and ``label_smoothing`` in [0, 1] is spread evenly over the classes.""",
      "F.cross_entropy(ptcore.zeros(1, 2), ptcore.tensor([0]))", "tensor(0.6931)", wide=False)

_loss("nll_loss(input, target, weight: OptTensor = None, size_average: Obj = None, ignore_index=-100, "
      f"reduce: Obj = None, {_NEW})", "_nll_loss(x, target, weight, reduction, ignore_index)[0]",
      "Negative log-likelihood ``-weight[target] * input[target]`` of log-probabilities; shapes as in cross_entropy.",
      "F.nll_loss(ptcore.tensor([[-1., -2.]]), ptcore.tensor([1]))", "tensor(2.)", wide=False)

_loss(f"mse_loss(input, target, {_OLD}, {_NEW}, weight: OptTensor = None)", "_reduced((x - y)**2, reduction)",
      "``(input - target)**2``; with ``weight`` of input's shape the mean is divided by the sum of the weights.",
      "F.mse_loss(ptcore.tensor([1., 2.]), ptcore.tensor([1., 4.]))", "tensor(2.)")

_loss(f"l1_loss(input, target, {_OLD}, {_NEW}, weight: OptTensor = None)", "_reduced(abs(x - y), reduction)",
      "``abs(input - target)``; with ``weight`` of input's shape the mean is divided by the sum of the weights.",
      "F.l1_loss(ptcore.tensor([1., 2.]), ptcore.tensor([1., 4.]))", "tensor(1.)")

_loss(f"smooth_l1_loss(input, target, {_OLD}, {_NEW}, beta: Float = 1.0)", "_smooth_l1(x, y, reduction, beta)",
      "Half the squared error over ``beta`` where it is below beta, the absolute error less ``beta / 2`` beyond.",
      "F.smooth_l1_loss(ptcore.tensor([0., 3.]), ptcore.tensor([1., 0.]))", "tensor(1.5000)")

_loss(f"huber_loss(input, target, {_NEW}, delta: Float = 1.0, weight: Obj = None)", "_huber(x, y, reduction, delta)",
      "Half the squared error where it is below ``delta``, a straight line beyond.",
      "F.huber_loss(ptcore.tensor([0., 3.]), ptcore.tensor([1., 0.]))", "tensor(1.5000)")

_loss(f"binary_cross_entropy(input, target, weight: Obj = None, {_OLD}, {_NEW})", "_bce(x, y, reduction)",
      "Binary cross entropy of probabilities; logarithms are at least -100.",
      "F.binary_cross_entropy(ptcore.tensor([0.5]), ptcore.tensor([1.]))", "tensor(0.6931)",
      autocast=("high", "refused"))

_loss(f"binary_cross_entropy_with_logits(input, target, weight: Obj = None, {_OLD}, {_NEW}, pos_weight: Obj = None)",
      "_bce_logits(x, y, reduction)",
      "Binary cross entropy of logits, without overflow; ``pos_weight`` multiplies the terms of positive targets.",
      "F.binary_cross_entropy_with_logits(ptcore.tensor([0.]), ptcore.tensor([1.]))", "tensor(0.6931)")

network(f"kl_div(input, target, {_OLD}, {_NEW}, log_target=False)", "_kl_div(x, y, reduction, log_target)",
        """``target * (log(target) - input)`` of log-probabilities ``input``.

``reduction`` is "batchmean", "mean", "sum" or "none".""",
        'F.kl_div(ptcore.tensor([[-1., -1.]]), ptcore.tensor([[1., 0.]]), reduction="sum")', "tensor(1.)",
         autocast="high", wide=True)

_loss('poisson_nll_loss(input, target, log_input=True, full=False, size_average: Obj = None, eps: Float = 1e-08, '
      f'reduce: Obj = None, {_NEW})', "_poisson_nll(x, y, log_input, full, eps, reduction)",
      "Negative log-likelihood of counts under Poisson rates, given as logarithms unless ``log_input=False``.",
      "F.poisson_nll_loss(ptcore.tensor([0.]), ptcore.tensor([2.]))", "tensor(1.)")

_loss(f"gaussian_nll_loss(input, target, var: Obj, full=False, eps: Float = 1e-06, {_NEW})",
      "_gaussian_nll(x, y, var, full, eps, reduction)",
      "Negative log-likelihood under normal distributions with means ``input`` and variances ``var``.",
      "F.gaussian_nll_loss(ptcore.tensor([0.]), ptcore.tensor([2.]), ptcore.tensor([1.]))", "tensor(2.)",
      autocast=(None, "high"))

_loss(f"soft_margin_loss(input, target, {_OLD}, {_NEW})", "_reduced(log1p(exp(-y * x)), reduction)",
      "``log(1 + exp(-target * input))`` for targets 1 and -1.",
      "F.soft_margin_loss(ptcore.tensor([0.]), ptcore.tensor([1.]))", "tensor(0.6931)")

_loss(f"hinge_embedding_loss(input, target, margin: Float = 1.0, {_OLD}, {_NEW})",
      "_reduced(where(y == -1, maximum(margin - x, 0), x), reduction)",
      "``input`` where target is 1, ``max(0, margin - input)`` where it is -1.",
      "F.hinge_embedding_loss(ptcore.tensor([0.5, 0.5]), ptcore.tensor([1., -1.]))", "tensor(0.5000)")

_loss(f"margin_ranking_loss(input1, input2, target, margin: Float = 0.0, {_OLD}, {_NEW})",
      "_reduced(maximum(-z * (x - y) + margin, 0), reduction)", "``max(0, -target * (input1 - input2) + margin)``.",
      "F.margin_ranking_loss(ptcore.tensor([1.]), ptcore.tensor([3.]), ptcore.tensor([1.]))", "tensor(2.)")

_loss(f"cosine_embedding_loss(input1, input2, target, margin: Float = 0.0, {_OLD}, {_NEW})",
      "_cosine_embedding(x, y, z, margin, reduction)",
      "``1 - cos`` of rows where target is 1, ``max(0, cos - margin)`` where it is -1.",
      "F.cosine_embedding_loss(ptcore.tensor([[1., 0.]]), ptcore.tensor([[0., 1.]]), ptcore.tensor([1]))", "tensor(1.)")

_loss(f"triplet_margin_loss(anchor, positive, negative, margin: Float = 1.0, p: Float = 2.0, eps: Float = 1e-06, "
      f"swap=False, {_OLD}, {_NEW})", "_triplet(x, y, z, margin, p, eps, swap, reduction)",
      "``max(0, margin + d(anchor, positive) - d(anchor, negative))`` with the p-norm distance of rows.",
      "F.triplet_margin_loss(ptcore.zeros(1, 1), ptcore.ones(1, 1), ptcore.ones(1, 1))", "tensor(1.)")

_loss("triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function: Obj = None, "
      f"margin: Float = 1.0, swap=False, {_NEW})", "_triplet(x, y, z, margin, 2, 1e-6, swap, reduction)",
      "As triplet_margin_loss, with a distance of one's own.",
      "F.triplet_margin_with_distance_loss(ptcore.zeros(1, 1), ptcore.ones(1, 1), ptcore.ones(1, 1))", "tensor(1.)",
      autocast=(None, "high"), wide=False)

_loss(f"multi_margin_loss(input, target, p: Float = 1.0, margin: Float = 1.0, weight: Obj = None, {_OLD}, {_NEW})",
      "_multi_margin(x, target, p, margin, reduction)",
      "Mean over the other classes of ``max(0, margin - input[target] + input[i])**p``.",
      "F.multi_margin_loss(ptcore.tensor([[0., 1.]]), ptcore.tensor([0]))", "tensor(1.)")

_loss(f"multilabel_margin_loss(input, target, {_OLD}, {_NEW})", "_multilabel_margin(x, target, reduction)",
      """Over pairs of a label and a class that is none, ``max(0, 1 - input[label] + input[class])`` by the number of
classes. A row of ``target`` holds labels up to the first -1.""",
      "F.multilabel_margin_loss(ptcore.tensor([[0., 1.]]), ptcore.tensor([[0, -1]]))", "tensor(1.)")

_loss(f"multilabel_soft_margin_loss(input, target, weight: Obj = None, {_OLD}, {_NEW})",
      "_reduced(mean(y * log1p(exp(-x)) + (1 - y) * log1p(exp(x)), axis=-1), reduction)",
      "Binary cross entropy of logits, averaged over the last dim.",
      "F.multilabel_soft_margin_loss(ptcore.tensor([[0.]]), ptcore.tensor([[1.]]))", "tensor(0.6931)",
      autocast=(None, "high"))

network('ctc_loss(log_probs, targets, input_lengths: Obj, target_lengths: Obj, blank=0, reduction: Obj = "mean", '
        "zero_infinity=False)", "_ctc(log_probs, targets, input_lengths, target_lengths, blank, reduction)",
        """Connectionist temporal classification: minus the logarithm of the probability of all ways to say the targets.

``log_probs`` is ``(T, N, C)`` or ``(T, C)``, ``targets`` ``(N, S)`` or all targets one after another. The mean divides
by the target lengths first. ``zero_infinity`` gives 0 where the targets do not fit.""",
        "F.ctc_loss(ptcore.zeros(2, 1, 2), ptcore.tensor([[1]]), (2,), (1,))", "tensor(-1.0986)",
        autocast="high", wide=True)

# -- reductions as numbers: 0 none, 1 mean, 2 sum; what is left out means none ----------------------
for _signature in (
        "kl_div(input, target, reduction: Int = 0, *, log_target=False)",
        "binary_cross_entropy_with_logits(input, target, weight: Obj = None, pos_weight: Obj = None, "
        "reduction: Int = 0)",
        "cosine_embedding_loss(input1, input2, target, margin: Float = 0.0, reduction: Int = 0)",
        "ctc_loss(log_probs, targets, input_lengths: Obj, target_lengths: Obj, blank: Int = 0, reduction: Int = 0, "
        "zero_infinity=False)",
        "hinge_embedding_loss(input, target, margin: Float = 1.0, reduction: Int = 0)",
        "margin_ranking_loss(input1, input2, target, margin: Float = 0.0, reduction: Int = 0)",
        "poisson_nll_loss(input, target, log_input: Bool, full: Bool, eps: Float, reduction: Int)",
        "triplet_margin_loss(anchor, positive, negative, margin: Float = 1.0, p: Float = 2, eps: Float = 1e-06, "
        "swap=False, reduction: Int = 0)"):
    spelling(_signature.partition("(")[0], _signature)

composite("linear_cross_entropy(input, linear_weight, target, *, linear_bias: OptTensor = None, "
          'weight: OptTensor = None, reduction: Obj = "mean", ignore_index: Obj = None, label_smoothing: Obj = 0.0, '
          "options: Obj = None)", public=["nn.functional.linear_cross_entropy"], method=False,
          reference="_linear_cross_entropy(x, linear_weight, target, linear_bias, reduction)",
          doc=""":func:`ptcore.nn.functional.cross_entropy` of the logits ``input @ linear_weight.T + linear_bias``.

Parameters
----------
input : Tensor
    Samples ``(N, features)`` or one ``(features)``.
linear_weight : Tensor
    Shape ``(C, features)``, or ``(C, d1, ..., features)`` for a loss of several dims.
target, weight, reduction, label_smoothing
    As for ``cross_entropy``.
linear_bias : Tensor, optional
    Shape ``(C)`` or ``(C, d1, ...)``.
ignore_index : int, optional
    Class index that does not count, -100 unless given.
options : LinearCrossEntropyOptions, optional
    Has the samples worked through in pieces, if `linear_weight` is a matrix and `target` holds class indices; else,
    and without options, the logits are made as a whole.

Examples
--------
>>> import ptcore
>>> x, w = ptcore.zeros(1, 3), ptcore.ones(2, 3)
>>> ptcore.nn.functional.linear_cross_entropy(x, w, ptcore.tensor([0]))
tensor(0.6931)
""")
