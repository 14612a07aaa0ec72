"""Rule of attention. A backward that is not recorded uses the fused kernel."""
from ptcore._ops.attention.decompositions import differentiable_backward
from ptcore._ops.functions import attention_backward
from ptcore._ops.functions import attention_stats as attention_of
from ptcore.autograd.helpers import fused
from ptcore.autograd.rules import SMALLER, vjp


@fused(by_ops="attention.differentiable_backward")
def slope(g, query, key, value, mask, keep, state, out, lse, is_causal, scale, dropout_p, scores):
    return attention_backward(g, query, key, value, mask, keep, state, out, lse, is_causal, scale, dropout_p, scores)


@vjp("attention_stats", remade=True)
def attention_stats(gs, query, key, value, mask, keep, state, out0, out1, is_causal, scale, dropout_p, needs):
    """Rule with the log-sum-exp, which only serves the backward: its own gradient is not used."""
    g = gs[0]
    if g is None:
        return None, None, None, None, None, None
    if out0 is None:
        out0, out1 = attention_of(query, key, value, mask, keep, state, is_causal, scale, dropout_p)
    gq, gk, gv, scores = slope(g, query, key, value, mask, keep, state, out0, out1, is_causal, scale, dropout_p,
                               bool(needs & 8))
    return (gq if needs & 1 else None, gk if needs & 2 else None, gv if needs & 4 else None,
            scores if needs & 8 else None, None, None)


SMALLER["attention_backward"] = differentiable_backward
