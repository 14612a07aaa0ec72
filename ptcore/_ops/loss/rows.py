"""Rows: losses with fused kernels."""
from ptcore._ops.table.schema import REAL, nondifferentiable, structured

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
    internal=True, called="cross_entropy", out="like_second",
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
    kernel="nll_loss_backward", internal=True, called="nll_loss", out="shaped",
    batch="decompose",
    jvp=["nll_loss_backward(t, target, weight, total_weight, reduction, ignore_index, shape)",
         None, None, None],
    reference="_nll_loss_backward", doc="Gradient of the negative log-likelihood.")

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
        layout="contiguous", internal=True, called=f"{_name}_loss", promote="none", out="like", batch="decompose",
        reference=f"_{_name}_slope(x, target{', ' * bool(_given)}{_reference})",
        doc="The derivative of such a loss by the scores of its row.")
