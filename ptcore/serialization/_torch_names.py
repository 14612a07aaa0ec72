"""PyTorch's names, in files, for the modules, optimizers, datasets and functions of ptcore."""

import functools

import ptcore
from ptcore import _lazy, nn
from ptcore.nn.modules.linear import NonDynamicallyQuantizableLinear
from ptcore.nn.modules.module_hooks import WrappedHook

# Where PyTorch's classes stand, as its files name them.
CLASSES = {
    "torch.nn.modules.activation":
        "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish "
        "MultiheadAttention PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink "
        "Softsign Tanh Tanhshrink Threshold",
    "torch.nn.modules.adaptive": "AdaptiveLogSoftmaxWithLoss",
    "torch.nn.modules.batchnorm":
        "BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d SyncBatchNorm",
    "torch.nn.modules.channelshuffle": "ChannelShuffle",
    "torch.nn.modules.container": "Container ModuleDict ModuleList ParameterDict ParameterList Sequential",
    "torch.nn.modules.conv":
        "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d LazyConv3d "
        "LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d",
    "torch.nn.modules.distance": "CosineSimilarity PairwiseDistance",
    "torch.nn.modules.dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "torch.nn.modules.flatten": "Flatten Unflatten",
    "torch.nn.modules.fold": "Fold Unfold",
    "torch.nn.modules.instancenorm":
        "InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d",
    "torch.nn.modules.linear": "Bilinear Identity LazyLinear Linear",
    "torch.nn.modules.loss":
        "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss HingeEmbeddingLoss "
        "HuberLoss KLDivLoss L1Loss LinearCrossEntropyLoss MSELoss MarginRankingLoss MultiLabelMarginLoss "
        "MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss NLLLoss2d PoissonNLLLoss SmoothL1Loss SoftMarginLoss "
        "TripletMarginLoss TripletMarginWithDistanceLoss",
    "torch.nn.modules.module": "Module",
    "torch.nn.modules.normalization": "CrossMapLRN2d GroupNorm LayerNorm LocalResponseNorm RMSNorm",
    "torch.nn.modules.padding":
        "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d "
        "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d "
        "ZeroPad3d",
    "torch.nn.modules.pixelshuffle": "PixelShuffle PixelUnshuffle",
    "torch.nn.modules.pooling":
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d "
        "AvgPool1d AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d MaxPool1d "
        "MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d",
    "torch.nn.modules.rnn": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase",
    "torch.nn.modules.sparse": "Embedding EmbeddingBag",
    "torch.nn.modules.transformer":
        "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer",
    "torch.nn.modules.upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
    "torch.nn.parallel.data_parallel": "DataParallel",
    "torch.nn.utils.prune":
        "BasePruningMethod CustomFromMask Identity L1Unstructured LnStructured PruningContainer RandomStructured "
        "RandomUnstructured",
    "torch.nn.utils.spectral_norm": "SpectralNorm SpectralNormLoadStateDictPreHook SpectralNormStateDictHook",
    "torch.nn.utils.weight_norm": "WeightNorm",
    "torch.optim": "Adafactor Muon",
    "torch.optim.adadelta": "Adadelta",
    "torch.optim.adagrad": "Adagrad",
    "torch.optim.adam": "Adam",
    "torch.optim.adamax": "Adamax",
    "torch.optim.adamw": "AdamW",
    "torch.optim.asgd": "ASGD",
    "torch.optim.lbfgs": "LBFGS",
    "torch.optim.lr_scheduler":
        "ChainedScheduler ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR ExponentialLR LRScheduler "
        "LambdaLR LinearLR MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR ReduceLROnPlateau SequentialLR StepLR",
    "torch.optim.nadam": "NAdam",
    "torch.optim.optimizer": "Optimizer",
    "torch.optim.radam": "RAdam",
    "torch.optim.rmsprop": "RMSprop",
    "torch.optim.rprop": "Rprop",
    "torch.optim.sgd": "SGD",
    "torch.optim.swa_utils": "AveragedModel",
    "torch.utils.data.dataset":
        "ChainDataset ConcatDataset Dataset IterableDataset StackDataset Subset TensorDataset",
    "torch.utils.data.sampler":
        "BatchSampler RandomSampler Sampler SequentialSampler SubsetRandomSampler WeightedRandomSampler",
}
_OP_FUNCTION = type(ptcore.add)
_FUNCTIONS_OF = {"torch._C._VariableFunctionsClass", "torch._C._VariableFunctions", "torch._VF"}
# Parts of modules, and where they stand in ptcore.
_PARTS = {"torch.nn.modules.linear.NonDynamicallyQuantizableLinear": "nn.modules.linear",
          "torch.nn.parameter.UninitializedParameter": "nn.parameter",
          "torch.nn.parameter.UninitializedBuffer": "nn.parameter",
          "torch.nn.modules.module._WrappedHook": "nn.modules.module_hooks",
          "torch.utils.hooks.RemovableHandle": "utils.hooks"}
# PyTorch's modules and, where those of ptcore have other names, the namespaces that have their classes.
_SPACES = {"torch.nn.modules": "nn", "torch.nn.parallel": "nn.parallel",
           "torch.nn.utils.weight_norm": "nn.utils.weight_norm",
           "torch.nn.utils.prune": "nn.utils.prune",
           "torch.nn.utils.spectral_norm": "nn.utils.spectral_norm", "torch.optim.lr_scheduler": "optim.lr_scheduler",
           "torch.optim.swa_utils": "optim.swa_utils", "torch.optim": "optim",
           "torch.utils.data": "utils.data", "torch.nn": "nn"}
_ALIASES = {"log_sigmoid": "logsigmoid", "_threshold": "threshold"}


class Functions:
    """PyTorch's class of functions, of which a file takes one by ``getattr``."""

    def __getattr__(self, name):            # of Python's unpickler
        return self.named(name)

    def named(self, name):
        """The function of that name."""
        function = _operation(ptcore, name)
        if function is None:
            raise NotImplementedError(f"the file holds the function torch.{name[:100]}, which ptcore does not have")
        return function


def _operation(space, name):
    """A function of tensors in a namespace; None if the name means something else there."""
    name = _ALIASES.get(name, name)
    found = vars(space).get(name) if space is ptcore else getattr(space, name, None)
    if isinstance(found, _OP_FUNCTION):
        return found
    public = space in (nn.functional, nn.init) and not name.startswith("_") and callable(found)
    return found if public and not isinstance(found, type) else None


def _space(module):
    """The namespace in which the classes of PyTorch's module stand, or None."""
    for theirs, mine in _SPACES.items():
        if module == theirs or module.startswith(f"{theirs}."):
            return _lazy.namespace(mine)
    return None


def found(module, name):
    """The class or function of ptcore for PyTorch's name; None if there is none."""
    full = f"{module}.{name}"
    if full in _FUNCTIONS_OF:
        return Functions()
    if module in ("torch.nn.functional", "torch._C._nn"):
        return _operation(nn.functional, name)
    if module == "torch.nn.init":
        return _operation(nn.init, name)
    if module == "torch":
        return _formats().get(name) or _operation(ptcore, name)
    if full in _PARTS:
        return getattr(_lazy.namespace(_PARTS[full]), name.lstrip("_"))
    space = _space(module)
    cls = None
    if space is not None:
        cls = getattr(space, name) if name in space.__all__ else vars(space).get(name)
    return cls if isinstance(cls, type) and is_public(cls) else None


def _formats():
    return {name: getattr(ptcore, name) for name in (
        "contiguous_format", "channels_last", "channels_last_3d", "preserve_format")}


@functools.lru_cache(maxsize=1)
def _names():
    """{id of a class: PyTorch's (module, name)}."""
    known = {id(getattr(_lazy.namespace(place), full.rpartition(".")[2].lstrip("_"))): tuple(full.rsplit(".", 1))
             for full, place in _PARTS.items()}
    for module, names in CLASSES.items():
        space = _space(module)
        for name in names.split():
            cls = getattr(space, name, None)
            if cls is not None:
                known.setdefault(id(cls), (module, cls.__name__))
    return known


@functools.lru_cache(maxsize=1)
def public():
    """The classes of ptcore whose objects files may hold: PyTorch has them as well."""
    return frozenset([*(getattr(_space(module), name) for module, names in CLASSES.items() for name in names.split()
                        if hasattr(_space(module), name)), NonDynamicallyQuantizableLinear, WrappedHook])


def is_public(cls):
    """Whether objects of a class of ptcore may be in files."""
    return cls in public()


def name_of(thing):
    """The (module, name) that PyTorch's files have for a class or function of ptcore, or None."""
    if isinstance(thing, type):
        return _names().get(id(thing)) if thing.__module__.partition(".")[0] == "ptcore" else None
    name = getattr(thing, "__name__", None)
    if type(name) is not str:
        return None
    for space, module in ((nn.functional, "torch.nn.functional"), (ptcore, "torch"), (nn.init, "torch.nn.init")):
        if _operation(space, name) is thing:
            return module, name
    return None
