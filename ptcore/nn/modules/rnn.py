"""Recurrent networks: RNN, LSTM and GRU over sequences, and their cells, which take one step."""

import math
import numbers

import ptcore
from ptcore._errors import ShapeError
from ptcore._interpret import innermost
from ptcore._ops.call.autocast import is_any_enabled
from ptcore._ops.checked import flag
from ptcore._ops.recurrent import functions as _recurrent
from ptcore._overrides import is_tensor_like
from ptcore.nn import init
from ptcore.nn.modules._checks import need_tensor
from ptcore.nn.modules.module import Module
from ptcore.nn.parameter import Parameter

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_MODES = {"RNN_TANH": ("tanh", 1), "RNN_RELU": ("relu", 1), "LSTM": ("lstm", 4), "GRU": ("gru", 3)}
_STATES = ("Expected hidden[0] size {}, got {}", "Expected hidden[1] size {}, got {}")


def is_packed(module, input):
    """Whether an input is a packed sequence, whose class is imported when it is needed. Raises for an input that is
    neither packed nor a tensor."""
    if is_tensor_like(input):
        return False
    from ptcore.nn.utils.rnn import PackedSequence
    if not isinstance(input, PackedSequence):
        raise TypeError(f"{type(module).__name__}: input must be a Tensor or a PackedSequence, got "
                        f"{type(input).__name__}")
    return True


class RNNBase(Module):
    """Parameters, checks and forward pass of RNN, LSTM and GRU.

    Parameters
    ----------
    mode : {"RNN_TANH", "RNN_RELU", "LSTM", "GRU"}
    input_size, hidden_size : int
    num_layers : int, default: 1
        A layer's input is the output of the one before.
    bias : bool, default: True
    batch_first : bool, default: False
        Input and output are (batch, time, features) in place of (time, batch, features); states are not.
    dropout : float, default: 0.0
        Probability of zeroing an element of each layer's output but the last one's, when training.
    bidirectional : bool, default: False
        A second set of layers walks from the end to the start.
    proj_size : int, default: 0
        Size to which the state of an LSTM is projected.

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_hr_l0 : Parameter
        Of the first layer; those of others are numbered, those of the way back end in ``_reverse``.
    """

    __constants__ = ("mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout",
                     "bidirectional", "proj_size")
    _torch_computed = ("_flat_weights_names", "_flat_weights")
    _torch_later = (("proj_size", 0),)
    _given_weights = None

    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, proj_size=0, device=None, dtype=None):
        super().__init__()
        name = type(self).__name__
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(f"{name}: dropout should be a number in range [0, 1] representing the probability of an "
                             f"element being zeroed, got {dropout!r}")
        for key, value, kind in (("bias", bias, bool), ("batch_first", batch_first, bool),
                                 ("hidden_size", hidden_size, int), ("input_size", input_size, int)):
            if not isinstance(value, kind):
                raise TypeError(f"{name}: {key} should be of type {kind.__name__}, got: {type(value).__name__}")
        for key, value in (("input_size", input_size), ("hidden_size", hidden_size)):
            if value <= 0:
                raise ValueError(f"{name}: {key} must be greater than zero, got {value}")
        if num_layers <= 0:
            raise ValueError(f"{name}: num_layers must be greater than zero, got {num_layers}")
        if proj_size < 0:
            raise ValueError(f"{name}: proj_size should be a positive integer or zero to disable projections, got "
                             f"{proj_size}")
        if proj_size >= hidden_size:
            raise ValueError(f"{name}: proj_size has to be smaller than hidden_size, got {proj_size} and {hidden_size}")
        if mode not in _MODES:
            raise ValueError(f"{name}: Unrecognized RNN mode: {mode}")
        if dropout > 0 and num_layers == 1:
            import warnings

            warnings.warn("dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                          f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                          stacklevel=3)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        flag(name, "bidirectional", bidirectional)
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        rows = _MODES[mode][1] * hidden_size
        state = proj_size or hidden_size
        self._all_weights = self._names_of_weights()
        for k, names in enumerate(self._all_weights):
            inputs = input_size if k < 1 + bidirectional else state * (1 + bidirectional)
            shapes = [(rows, inputs), (rows, state), *[(rows,)] * (2 * bool(bias)), (proj_size, hidden_size)]
            for name, shape in zip(names, shapes):
                setattr(self, name, Parameter(ptcore.empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    def __setstate__(self, state):
        super().__setstate__(state)
        own = self.__dict__
        own.pop("all_weights", None)        # PyTorch kept the parameters themselves before 1.4
        own.pop("_weight_names", None)      # ptcore's name before 0.2
        own["_all_weights"] = self._names_of_weights()

    def _names_of_weights(self):
        """The names of the parameters, a list for each layer and direction."""
        kinds = ["weight_ih", "weight_hh", *["bias_ih", "bias_hh"] * bool(self.bias)]
        kinds += ["weight_hr"] * bool(self.proj_size)
        endings = ("", "_reverse") if self.bidirectional else ("",)
        return [[f"{kind}_l{layer}{ending}" for kind in kinds]
                for layer in range(self.num_layers) for ending in endings]

    def reset_parameters(self):
        """Draw all parameters again, uniform in ``[-k, k]`` with ``k = hidden_size ** -0.5``."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self):
        """Nothing: the layers read parameters where they lie."""

    @property
    def all_weights(self):
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _named_weights(self):
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @property
    def _flat_weights(self):
        """The weights that a call takes: as in PyTorch those that were set here, until a named one is replaced."""
        named, given = self._named_weights(), self._given_weights
        if given is None or any(a is not b for a, b in zip(named, given[1])):
            return named
        return given[0]

    @_flat_weights.setter
    def _flat_weights(self, weights):
        weights, named = list(weights), self._named_weights()
        self.__dict__.pop("_given_weights", None)
        if len(weights) != len(named) or any(a is not b for a, b in zip(weights, named)):
            self.__dict__["_given_weights"] = weights, named

    @property
    def _flat_weights_names(self):
        return [name for names in self._all_weights for name in names]

    def _weights(self):
        """The weights in the form that the functions take."""
        every = self.all_weights
        if self._given_weights is not None:
            flat = iter(self._flat_weights)
            every = [[next(flat) for _ in names] for names in self._all_weights]
        for weights in every:
            biases = weights[2:4] if self.bias else (None, None)
            yield weights[0], weights[1], *biases, weights[-1] if self.proj_size else None

    def _expected(self, batch, size):
        return (self.num_layers * (2 if self.bidirectional else 1), batch, size)

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.__dict__.pop("_given_weights", None)
        return self

    def check_input(self, input, batch_sizes):
        """Raise for an input of another dtype or shape than the parameters'."""
        name, weight = type(self).__name__, getattr(self, self._all_weights[0][0])
        if weight.dtype is not input.dtype and innermost() is None and not is_any_enabled():  # autocast casts the input
            raise ValueError(f"{name}: input dtype does not match weight dtype: expected {weight.dtype}, got "
                             f"{input.dtype}. Convert input: input.to({weight.dtype}), or convert model: "
                             f"model.to({input.dtype})")
        ndim = 3 if batch_sizes is None else 2
        if input.ndim != ndim:
            raise ShapeError(f"{name}: input must have {ndim} dimensions, got {input.ndim}")
        if input.shape[-1] != self.input_size:
            raise ShapeError(f"{name}: input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                             f"{input.shape[-1]}")

    def get_expected_hidden_size(self, input, batch_sizes):
        """The shape that hx must have for an input of (time, batch, features), or a packed one."""
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.shape[0 if self.batch_first else 1]
        return self._expected(batch, self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """Raise for a state of another shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise ShapeError(f"{type(self).__name__}: " + msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input, hidden, batch_sizes):
        """Raise for an input and a state that do not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """The state of each sequence in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _each(self, function, hidden):
        """Applies a function to the state, which for an LSTM is two tensors."""
        return function(hidden)

    def _start(self, x, batch):
        count = self.num_layers * (2 if self.bidirectional else 1)
        return _recurrent.zero_state(x, count, batch, self.proj_size or self.hidden_size)

    def _given(self, hx, batched):
        """A given state with a batch dim."""
        need_tensor(self, "hx", hx)
        ndim = 3 if batched else 2
        if hx.ndim != ndim:
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise ShapeError(f"{type(self).__name__}: For {kind} input, hx should also be {ndim}-D but got {hx.ndim}-D "
                             "tensor")
        return hx if batched else hx.unsqueeze(1)

    def forward(self, input, hx=None):
        """Walk over the sequences of `input`.

        Parameters
        ----------
        input : Tensor or PackedSequence
            Shape (time, batch, input_size), (time, input_size), or with ``batch_first`` (batch, time, input_size).
        hx : Tensor, optional
            State to start from, (layers * directions, batch, hidden_size); zeros by default. An LSTM has
            two, ``(h_0, c_0)``.

        Returns
        -------
        output : Tensor or PackedSequence
            The last layer's states after each step, both directions beside each other.
        h_n : Tensor
            The states after the last step; ``(h_n, c_n)`` of an LSTM.
        """
        packed = is_packed(self, input)
        if packed:
            x, batch_sizes, order, back = input
            sizes = tuple(batch_sizes.tolist())
            batch, batched = sizes[0], True
        else:
            if input.ndim not in (2, 3):
                raise ShapeError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.ndim}D instead")
            batch_sizes, order, back = None, None, None
            batched = input.ndim == 3
            x = input if batched else input.unsqueeze(0 if self.batch_first else 1)
            batch = x.shape[0 if self.batch_first else 1]
        if hx is None:
            start = self._start(x, batch)
            given, hx = False, self._zero(x, start)
        else:
            given, hx = True, self._each(lambda h: self._given(h, batched), hx)
        hx = self._checked(x, hx, batch_sizes, order, given)
        if not packed:
            if self.batch_first:
                x = x.transpose(0, 1)
            if x.shape[0] == 0:
                raise ShapeError(f"{type(self).__name__}: Expected sequence length to be larger than 0 in RNN, got 0")
            sizes = (batch,) * x.shape[0]
        mode = _MODES[self.mode][0]
        out, states = _recurrent.layers(x, sizes, hx, list(self._weights()), mode, self.bidirectional, self.dropout,
                                        self.training)
        if packed:
            out = type(input)(out, batch_sizes, order, back)
        else:
            if self.batch_first:
                out = out.transpose(0, 1)
            if not batched:
                out = out.squeeze(0 if self.batch_first else 1)
                states = [s.squeeze(1) for s in states]
        return out, self.permute_hidden(states[0] if len(states) == 1 else tuple(states), back)

    def _checked(self, x, hx, batch_sizes, order, given):
        """The state in the order of the packed sequences. PyTorch's methods are called, in PyTorch's order."""
        if given:
            hx = self.permute_hidden(hx, order)
        self.check_forward_args(x, hx, batch_sizes)
        return hx

    def _zero(self, x, start):
        return start

    def extra_repr(self):
        """Sizes, and settings that differ from their defaults."""
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False),
                              ("dropout", 0), ("bidirectional", False)):
            value = getattr(self, name)
            if value != default:
                text += f", {name}={value}"
        return text


class RNN(RNNBase):
    """Elman network: ``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)``, or relu of it.

    Parameters
    ----------
    input_size, hidden_size : int
    num_layers : int, default: 1
    nonlinearity : {"tanh", "relu"}, default: "tanh"
    bias, batch_first, dropout, bidirectional
        See :class:`RNNBase`.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import ptcore
    >>> rnn = ptcore.nn.RNN(10, 20, num_layers=2)
    >>> output, h_n = rnn(ptcore.randn(5, 3, 10))
    >>> output.shape, h_n.shape
    (ptcore.Size([5, 3, 20]), ptcore.Size([2, 3, 20]))
    """

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False,
                 dropout=0.0, bidirectional=False, device=None, dtype=None, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("RNN: proj_size argument is only supported for LSTM, not RNN or GRU")
        if "mode" in kwargs or kwargs:
            raise TypeError(f"RNN: unexpected keyword arguments {sorted(kwargs)}")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN: Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.nonlinearity = nonlinearity
        super().__init__("RNN_" + nonlinearity.upper(), input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, 0, device, dtype)


class LSTM(RNNBase):
    """Long short-term memory.

    With gates ``i, f, g, o`` from ``W_ih x + b_ih + W_hh h + b_hh`` the cell becomes
    ``c' = sigmoid(f) * c + sigmoid(i) * tanh(g)`` and the state ``h' = sigmoid(o) * tanh(c')``, projected by
    ``weight_hr`` where there is a `proj_size`.

    Parameters
    ----------
    input_size, hidden_size : int
    num_layers, bias, batch_first, dropout, bidirectional, proj_size
        See :class:`RNNBase`.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import ptcore
    >>> lstm = ptcore.nn.LSTM(10, 20, batch_first=True)
    >>> output, (h_n, c_n) = lstm(ptcore.randn(3, 5, 10))
    >>> output.shape, c_n.shape
    (ptcore.Size([3, 5, 20]), ptcore.Size([1, 3, 20]))
    """

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, proj_size=0, device=None, dtype=None):
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         proj_size, device, dtype)

    def get_expected_cell_size(self, input, batch_sizes):
        """The shape that c_0 must have."""
        return (*RNNBase.get_expected_hidden_size(self, input, batch_sizes)[:2], self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):
        """Raise for an input and a state that do not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden[0], self.get_expected_hidden_size(input, batch_sizes), _STATES[0])
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes), _STATES[1])

    def _checked(self, x, hx, batch_sizes, order, given):
        if batch_sizes is None:
            self.check_forward_args(x, hx, batch_sizes)
            return self.permute_hidden(hx, order) if given else hx
        if given:
            hx = self.permute_hidden(hx, order)
        RNNBase.check_input(self, x, batch_sizes)
        for h, size, msg in zip(hx, (self.proj_size or self.hidden_size, self.hidden_size), _STATES):
            RNNBase.check_hidden_size(self, h, self._expected(int(batch_sizes[0]), size), msg)
        return hx

    def _each(self, function, hidden):
        if not isinstance(hidden, (tuple, list)) or len(hidden) != 2:
            raise TypeError(f"LSTM: hx must be a pair (h_0, c_0), got {type(hidden).__name__}")
        return tuple([function(h) for h in hidden])

    def permute_hidden(self, hx, permutation):
        """The state of each sequence in another order."""
        if isinstance(hx, tuple):
            return tuple([super(LSTM, self).permute_hidden(h, permutation) for h in hx])
        return super().permute_hidden(hx, permutation)

    def _zero(self, x, start):
        return start, _recurrent.zero_state(x, *start.shape[:2], self.hidden_size)


class GRU(RNNBase):
    """Gated recurrent units.

    ``r, z = sigmoid(W_ih x + b_ih + W_hh h + b_hh)`` (the first two thirds), ``n = tanh(W_in x + b_in + r * (W_hn h +
    b_hn))``, ``h' = (1 - z) * n + z * h``.

    Parameters
    ----------
    input_size, hidden_size : int
    num_layers, bias, batch_first, dropout, bidirectional
        See :class:`RNNBase`.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import ptcore
    >>> output, h_n = ptcore.nn.GRU(10, 20, bidirectional=True)(ptcore.randn(5, 3, 10))
    >>> output.shape, h_n.shape
    (ptcore.Size([5, 3, 40]), ptcore.Size([2, 3, 20]))
    """

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, device=None, dtype=None, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("GRU: proj_size argument is only supported for LSTM, not RNN or GRU")
        if kwargs:
            raise TypeError(f"GRU: unexpected keyword arguments {sorted(kwargs)}")
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0,
                         device, dtype)


class RNNCellBase(Module):
    """Parameters and step of the cells; `num_chunks` gates."""

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        where = {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(ptcore.empty((rows, input_size), **where))
        self.weight_hh = Parameter(ptcore.empty((rows, hidden_size), **where))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(ptcore.empty(rows, **where)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw all parameters again, uniform in ``[-k, k]`` with ``k = hidden_size ** -0.5``."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self):
        """Sizes, and settings that differ from their defaults."""
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        return text

    def _step(self, input, states, mode):
        """One step of one layer, on input and states with or without a batch dim."""
        name = type(self).__name__
        need_tensor(self, "input", input)
        if input.ndim not in (1, 2):
            raise ShapeError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        x = input if input.ndim == 2 else input.unsqueeze(0)
        if x.shape[1] != self.input_size:
            raise ShapeError(f"{name}: input has inconsistent input_size: got {x.shape[1]} expected {self.input_size}")
        batch = x.shape[0]
        if states is None:
            zero = ptcore.zeros(batch, self.hidden_size, dtype=x.dtype, device=x.device)
            states = (zero, zero)
        else:
            for key, h in zip(("hx[0]", "hx[1]") if len(states) == 2 else ("hidden",), states):
                need_tensor(self, key, h)
                if h.ndim not in (1, 2):
                    raise ShapeError(f"{name}: Expected {key} to be 1D or 2D, got {h.ndim}D instead")
            states = [h if h.ndim == 2 else h.unsqueeze(0) for h in states]
            for h in states:
                if h.shape[1] != self.hidden_size:
                    raise ShapeError(f"{name}: hidden has inconsistent hidden_size: got {h.shape[1]}, expected "
                                     f"{self.hidden_size}")
                if h.shape[0] != batch:
                    raise ShapeError(f"{name}: Input batch size must match hidden batch size {h.shape[0]}, got {batch}")
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, None)
        h, c = _recurrent.one_layer(x, (batch,), states[0], states[1] if mode == "lstm" else None, weights, mode, False,
                                    cell=True)
        results = (h, c) if mode == "lstm" else (h,)
        return results if input.ndim == 2 else tuple([r.squeeze(0) for r in results])


class RNNCell(RNNCellBase):
    """One step of an Elman network.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool, default: True
    nonlinearity : {"tanh", "relu"}, default: "tanh"
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.RNNCell(10, 20)(ptcore.randn(3, 10)).shape
    ptcore.Size([3, 20])
    """

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        """The state after a step from `hx`, zeros by default."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"RNNCell: Unknown nonlinearity: {self.nonlinearity}")
        return self._step(input, None if hx is None else (hx,), self.nonlinearity)[0]

    def extra_repr(self):
        """Sizes, and settings that differ from their defaults."""
        text = super().extra_repr()
        return text if self.nonlinearity == "tanh" else f"{text}, nonlinearity={self.nonlinearity}"


class LSTMCell(RNNCellBase):
    """One step of an LSTM.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool, default: True
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import ptcore
    >>> h, c = ptcore.nn.LSTMCell(10, 20)(ptcore.randn(3, 10))
    >>> h.shape
    ptcore.Size([3, 20])
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        """The state and cell after a step from `hx`, a pair, zeros by default."""
        foreign = is_tensor_like(hx) and not isinstance(hx, ptcore.Tensor)
        if hx is not None and not foreign and (not isinstance(hx, (tuple, list)) or len(hx) != 2):
            raise TypeError(f"LSTMCell: hx must be a pair (h_0, c_0), got {type(hx).__name__}")
        return self._step(input, hx, "lstm")


class GRUCell(RNNCellBase):
    """One step of a GRU.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool, default: True
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.GRUCell(10, 20)(ptcore.randn(3, 10)).shape
    ptcore.Size([3, 20])
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        """The state after a step from `hx`, zeros by default."""
        return self._step(input, None if hx is None else (hx,), "gru")[0]
