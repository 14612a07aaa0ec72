"""How each module of nn is made and called: {name: (arguments of the constructor, inputs)}."""
import ptcore as pt

IMAGES = {1: (2, 4, 8), 2: (2, 4, 8, 8), 3: (2, 4, 6, 6, 6)}
CLASSES = ((3, 5), pt.tensor([0, 4, 2]))
PAIR = ((3, 5), (3, 5))
SIGNS = ((3, 5), pt.ones(3, 5))


def spatial(name, *args, lead=(2, 4)):
    """A module of 1, 2 and 3 spatial dims."""
    return {f"{name}{n}d": (args, [(*lead, *IMAGES[n][2:])]) for n in (1, 2, 3)}


# name of the class: (arguments of the constructor, inputs: shapes of floats, or tensors as they are)
MODULES = {
    **dict.fromkeys(("CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
                     "LogSigmoid", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softplus",
                     "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Dropout", "AlphaDropout", "Identity", "Flatten",
                     "FeatureAlphaDropout"), ((), [(2, 4)])),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Softmin"), ((1,), [(2, 4)])), "Softmax2d": ((), [IMAGES[2]]),
    "Threshold": ((0.5, 1.0), [(2, 4)]), "Unflatten": ((1, (2, 2)), [(2, 4)]), "Linear": ((4, 3), [(2, 4)]),
    "LazyLinear": ((3,), [(2, 4)]), "Bilinear": ((4, 3, 2), [(2, 4), (2, 3)]),
    "Embedding": ((5, 3), [pt.tensor([[0, 4]])]), "EmbeddingBag": ((5, 3), [pt.tensor([[0, 4]])]),
    "PairwiseDistance": ((), PAIR), "CosineSimilarity": ((), PAIR),
    **spatial("Conv", 4, 3, 2), **spatial("ConvTranspose", 4, 3, 2), **spatial("LazyConv", 3, 2),
    **spatial("LazyConvTranspose", 3, 2), **spatial("MaxPool", 2), **spatial("AvgPool", 2), **spatial("LPPool", 2, 2),
    **spatial("AdaptiveAvgPool", 2), **spatial("AdaptiveMaxPool", 2), **spatial("BatchNorm", 4),
    **spatial("InstanceNorm", 4), **spatial("LazyBatchNorm"), **spatial("LazyInstanceNorm"), **spatial("Dropout"),
    **{f"FractionalMaxPool{n}d": ((2, 3), [IMAGES[n]]) for n in (2, 3)},
    **{f"MaxUnpool{n}d": ((2,), [(2, 4, *[4] * n), pt.zeros((2, 4, *[4] * n), dtype=pt.int64)]) for n in (1, 2, 3)},
    **{f"{kind}Pad{n}d": ((1,), [IMAGES[n]]) for n in (1, 2, 3) for kind in ("Circular", "Reflection", "Replication",
                                                                            "Zero")},
    **{f"ConstantPad{n}d": ((1, 2.0), [IMAGES[n]]) for n in (1, 2, 3)},
    "SyncBatchNorm": ((4,), [IMAGES[2]]), "LayerNorm": ((4,), [(2, 4)]), "RMSNorm": ((4,), [(2, 4)]),
    "GroupNorm": ((2, 4), [IMAGES[1]]), "LocalResponseNorm": ((2,), [IMAGES[1]]), "CrossMapLRN2d": ((3,), [IMAGES[2]]),
    "Unfold": ((2,), [IMAGES[2]]), "Fold": ((4, 2), [(1, 12, 9)]), "PixelShuffle": ((2,), [IMAGES[2]]),
    "PixelUnshuffle": ((2,), [IMAGES[2]]), "ChannelShuffle": ((2,), [IMAGES[2]]),
    "Upsample": ((None, 2), [IMAGES[2]]), "UpsamplingNearest2d": ((4,), [IMAGES[2]]),
    "UpsamplingBilinear2d": ((4,), [IMAGES[2]]),
    "AdaptiveLogSoftmaxWithLoss": ((4, 10, [3]), [(2, 4), pt.tensor([0, 5])]),
    **{name: ((), PAIR) for name in ("L1Loss", "MSELoss", "HuberLoss", "SmoothL1Loss", "KLDivLoss", "PoissonNLLLoss",
                                     "BCEWithLogitsLoss", "MultiLabelSoftMarginLoss")},
    "BCELoss": ((), [pt.full((3, 5), 0.5), pt.full((3, 5), 0.5)]),
    "GaussianNLLLoss": ((), [(3, 5), (3, 5), pt.ones(3, 5)]),
    **{name: ((), SIGNS) for name in ("SoftMarginLoss", "HingeEmbeddingLoss")},
    "CosineEmbeddingLoss": ((), [(3, 5), (3, 5), pt.ones(3)]), "MarginRankingLoss": ((), [(3,), (3,), pt.ones(3)]),
    "TripletMarginLoss": ((), [(3, 5)] * 3), "TripletMarginWithDistanceLoss": ((), [(3, 5)] * 3),
    "LinearCrossEntropyLoss": ((4, 5), [(3, 4), pt.tensor([0, 4, 2])]),
    **{name: ((), CLASSES) for name in ("NLLLoss", "NLLLoss2d", "CrossEntropyLoss", "MultiMarginLoss")},
    "MultiLabelMarginLoss": ((), [(2, 3), pt.tensor([[0, 2, -1], [1, -1, -1]])]),
    "CTCLoss": ((), [(6, 2, 4), pt.ones(2, 2, dtype=pt.int64), pt.tensor([6, 6]), pt.tensor([2, 2])]),
    "RNN": ((4, 3), [(5, 2, 4), (1, 2, 3)]), "GRU": ((4, 3), [(5, 2, 4), (1, 2, 3)]), "LSTM": ((4, 3), [(5, 2, 4)]),
    "RNNCell": ((4, 3), [(2, 4), (2, 3)]), "GRUCell": ((4, 3), [(2, 4), (2, 3)]), "LSTMCell": ((4, 3), [(2, 4)]),
    "MultiheadAttention": ((4, 2), [(3, 2, 4)] * 3), "TransformerEncoderLayer": ((4, 2, 8), [(3, 2, 4)]),
    "TransformerDecoderLayer": ((4, 2, 8), [(3, 2, 4)] * 2), "Transformer": ((4, 2, 1, 1, 8), [(3, 2, 4)] * 2),
}
# Containers and bases: they have no input of their own.
OTHERS = {"Module", "Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "RNNBase",
          "RNNCellBase", "TransformerEncoder", "TransformerDecoder"}
# What these draw in training: elements to drop, slopes, or places.
RANDOM = ("Dropout", "AlphaDropout", "FeatureAlphaDropout", "RReLU", "FractionalMaxPool", "Transformer")


def given(name):
    """The inputs of a module, drawn from one state of the generator."""
    pt.manual_seed(1)
    return [pt.randn(x) if isinstance(x, tuple) else x for x in MODULES[name][1]]


def as_made(name, training):
    """A module as the table says, with the parameters that one call gives it if it is lazy."""
    settings, _ = MODULES[name]
    module = getattr(pt.nn, name)(*settings)
    if name.startswith("Lazy"):
        module(*given(name))
    return module.train(training)
