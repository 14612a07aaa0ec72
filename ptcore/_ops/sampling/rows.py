"""Rows: draws from distributions and dropout in its forms, as functions of other ops."""
from ptcore._ops.table.schema import composite


def _row(signature, text, example, result, **columns):
    composite(signature, random=True, reference="random", doc=f"""{text}

>>> import ptcore
>>> {example}
{result}
""", **columns)


_row("multinomial(input, num_samples: Int, replacement=False, *, generator: Obj = None)",
     "Positions drawn with the probabilities, up to a factor, that each row of ``input`` holds.",
     "ptcore.multinomial(ptcore.tensor([0., 1.]), 1)", "tensor([1])", out_argument=True)
_row("poisson(input, generator: Obj = None)", "Counts with the Poisson rate that each element says.",
     "ptcore.poisson(ptcore.zeros(2))", "tensor([0., 0.])", method=False)
_row("rrelu(input, lower: Float = 0.125, upper: Float = 0.3333333333333333, training=False, generator: Obj = None)",
     "``x`` above zero, below it times a random slope in [lower, upper]; its mean when not training.",
     "ptcore.rrelu(ptcore.tensor([-3., 2.]), 1, 1)", "tensor([-3.,  2.])", method=False, inplace=True)
_row("rrelu_function(input, lower: Float = 0.125, upper: Float = 0.3333333333333333, training=False, inplace=False)",
     "``x`` above zero, below it times a random slope in [lower, upper]; its mean when not training.",
     "ptcore.nn.functional.rrelu(ptcore.tensor([-3., 2.]), 1, 1)", "tensor([-3.,  2.])",
     public=["nn.functional.rrelu"], called="rrelu", method=False)
_row("gumbel_softmax(logits, tau: Float = 1.0, hard=False, eps: Float = 1e-10, dim=-1)",
     """Softmax along ``dim`` of logits with Gumbel noise over ``tau``; with ``hard`` one-hot vectors that have
the gradient of the soft ones.""", "ptcore.nn.functional.gumbel_softmax(ptcore.zeros(1))", "tensor([1.])",
     public=["nn.functional.gumbel_softmax"], method=False)

for _name, _text in (("dropout", "Elements"), ("feature_dropout", "Whole channels (dim 1)")):
    _row(f"{_name}(input, p: Float, train: Bool)",
         f"{_text} zeroed with probability ``p`` and the others scaled by ``1 / (1 - p)`` when ``train``.",
         f"ptcore.{_name}(ptcore.ones(1, 2), 0.5, False)", "tensor([[1., 1.]])", method=False, inplace=True)
_row("dropout_function(input, p: Float = 0.5, training=True, inplace=False)",
     "Elements zeroed with probability ``p`` and the others scaled by ``1 / (1 - p)`` when ``training``.",
     "ptcore.nn.functional.dropout(ptcore.ones(3), training=False)", "tensor([1., 1., 1.])",
     public=["nn.functional.dropout"], called="dropout", method=False)
for _name, _text in (("alpha_dropout", "Elements"), ("feature_alpha_dropout", "Whole channels (dim 1)")):
    _row(f"{_name}(input, p: Float, train: Bool)",
         f"{_text} set to selu's lower limit with probability ``p`` when ``train``; mean and variance are kept.",
         f"ptcore.{_name}(ptcore.ones(1, 2), 0.5, False)", "tensor([[1., 1.]])", method=False, inplace=True)
    _row(f"{_name}_function(input, p: Float = 0.5, training=False, inplace=False)",
         f"{_text} set to selu's lower limit with probability ``p`` when ``training``; mean and variance are kept.",
         f"ptcore.nn.functional.{_name}(ptcore.ones(1, 2))", "tensor([[1., 1.]])",
         public=[f"nn.functional.{_name}"], called=_name, method=False)
for _k in (1, 2, 3):
    _row(f"dropout{_k}d(input, p: Float = 0.5, training=True, inplace=False)",
         f"Whole channels zeroed with probability ``p`` and the others scaled by ``1 / (1 - p)``; {_k} spatial dims.",
         f"ptcore.nn.functional.dropout{_k}d(ptcore.ones(1, 2, {', '.join('1' * _k)}), training=False).numel()", "2",
         public=[f"nn.functional.dropout{_k}d"], method=False)

for _k, _size, _out in ((2, "4, 4", "2, 2"), (3, "4, 4, 4", "2, 2, 2")):
    for _with, _text in (("", "; with ``return_indices`` also where it stands in the flattened spatial dims"),
                         ("_with_indices", ", and where it stands in the flattened spatial dims")):
        _row(f"fractional_max_pool{_k}d{_with}(input, kernel_size: Obj, output_size: Obj = None, "
             "output_ratio: Obj = None, return_indices=False, _random_samples: OptIndex = None)",
             f"""The largest number of each of ``output_size`` windows of ``kernel_size``, at places that are as far
apart as the sizes ask for and else random{_text}.

``output_ratio`` times the input's sizes may be given in place of ``output_size``. ``_random_samples``, numbers in
[0, 1) of shape (N, C, {_k}), decide the places.""",
             f"ptcore.nn.functional.fractional_max_pool{_k}d{_with}(ptcore.ones(1, {_size}), 2, 2)"
             + ("[0].shape" if _with else ".shape"), f"ptcore.Size([1, {_out}])",
             public=[f"nn.functional.fractional_max_pool{_k}d{_with}"], method=False)
