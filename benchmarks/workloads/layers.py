"""Forward and backward of one module each, gradients of its input and parameters."""
from . import workload


def layer(name, make, shape, target=1.25):
    """Times ``make(xp.nn)(x)`` and its gradients for x of the given shape."""
    def prepare(xp):
        module, x = make(xp.nn), xp.randn(*shape, requires_grad=True)
        wanted = [x, *module.parameters()]
        seed = xp.ones_like(first(module(x)))

        def run():
            xp.autograd.grad(first(module(x)), wanted, seed)
        return run
    workload("layer", name, prepare, target)


def first(out):
    return out[0] if isinstance(out, tuple) else out


layer("Linear 256-256, batch 64", lambda nn: nn.Linear(256, 256), (64, 256))
layer("Conv2d 1-32 5x5, 64x28x28", lambda nn: nn.Conv2d(1, 32, 5), (64, 1, 28, 28))
layer("Conv2d 64-64 3x3, 16x32x32", lambda nn: nn.Conv2d(64, 64, 3, padding=1), (16, 64, 32, 32))
layer("Conv2d 64-128 3x3 stride 2", lambda nn: nn.Conv2d(64, 128, 3, stride=2, padding=1), (16, 64, 32, 32))
layer("Conv2d 256-256 3x3, 16x8x8", lambda nn: nn.Conv2d(256, 256, 3, padding=1), (16, 256, 8, 8))
layer("Conv2d 128-128 1x1, 16x16x16", lambda nn: nn.Conv2d(128, 128, 1), (16, 128, 16, 16))
layer("Conv2d depthwise 64 3x3", lambda nn: nn.Conv2d(64, 64, 3, padding=1, groups=64), (16, 64, 32, 32))
layer("Conv2d depthwise 64 stride 2", lambda nn: nn.Conv2d(64, 64, 3, stride=2, padding=1, groups=64), (16, 64, 32, 32))
layer("Conv2d 64-64 dilation 2", lambda nn: nn.Conv2d(64, 64, 3, padding=2, dilation=2), (8, 64, 32, 32))
layer("Conv1d 64-64 5, 16x256", lambda nn: nn.Conv1d(64, 64, 5, padding=2), (16, 64, 256))
layer("Conv3d 16-16 3x3x3, 4x16x16x16", lambda nn: nn.Conv3d(16, 16, 3, padding=1), (4, 16, 16, 16, 16))
layer("ConvTranspose2d 64-32 4x4 stride 2", lambda nn: nn.ConvTranspose2d(64, 32, 4, 2, 1), (16, 64, 16, 16))
layer("MaxPool2d 2, 16x64x32x32", lambda nn: nn.MaxPool2d(2), (16, 64, 32, 32))
layer("MaxPool2d 3 stride 2 padding 1", lambda nn: nn.MaxPool2d(3, 2, 1), (16, 64, 32, 32))
layer("AvgPool2d 2, 16x64x32x32", lambda nn: nn.AvgPool2d(2), (16, 64, 32, 32))
layer("AdaptiveAvgPool2d 1", lambda nn: nn.AdaptiveAvgPool2d(1), (16, 256, 8, 8))
layer("BatchNorm2d 64, 16x32x32", lambda nn: nn.BatchNorm2d(64), (16, 64, 32, 32))
layer("BatchNorm1d 256, batch 128", lambda nn: nn.BatchNorm1d(256), (128, 256))
layer("LayerNorm 512, 1024 rows", lambda nn: nn.LayerNorm(512), (1024, 512))
layer("RMSNorm 512, 1024 rows", lambda nn: nn.RMSNorm(512), (1024, 512))
layer("GroupNorm 8 of 64, 16x32x32", lambda nn: nn.GroupNorm(8, 64), (16, 64, 32, 32))
layer("InstanceNorm2d 64, 16x32x32", lambda nn: nn.InstanceNorm2d(64, affine=True), (16, 64, 32, 32))
layer("Dropout 0.5 1M", lambda nn: nn.Dropout(0.5), (1024, 1024))
layer("GELU 1M", lambda nn: nn.GELU(), (1024, 1024))
layer("SiLU 1M", lambda nn: nn.SiLU(), (1024, 1024))
layer("LogSoftmax 1M", lambda nn: nn.LogSoftmax(1), (1024, 1024))
layer("Upsample bilinear 2, 8x32x32x32", lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"), (8, 32, 32, 32))
layer("Upsample nearest 2, 8x32x32x32", lambda nn: nn.Upsample(scale_factor=2), (8, 32, 32, 32))
layer("ReflectionPad2d 2, 16x64x32x32", lambda nn: nn.ReflectionPad2d(2), (16, 64, 32, 32))
layer("LSTM 128-128, 35 steps, batch 32", lambda nn: nn.LSTM(128, 128), (35, 32, 128))
layer("GRU 128-128, 35 steps, batch 32", lambda nn: nn.GRU(128, 128), (35, 32, 128))
layer("RNN 128-128, 35 steps, batch 32", lambda nn: nn.RNN(128, 128), (35, 32, 128))
layer("TransformerEncoderLayer 128, 16x64",
      lambda nn: nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True), (16, 64, 128))


def attention(name, shape, causal):
    def prepare(xp):
        parts = [xp.randn(*shape, requires_grad=True) for _ in range(3)]
        seed = xp.ones(*shape)

        def run():
            out = xp.nn.functional.scaled_dot_product_attention(*parts, is_causal=causal)
            xp.autograd.grad(out, parts, seed)
        return run
    workload("layer", name, prepare, 1.25)


attention("attention 16x4x64x32 causal", (16, 4, 64, 32), True)
attention("attention 4x8x256x64", (4, 8, 256, 64), False)
attention("attention 1x8x1024x64 causal", (1, 8, 1024, 64), True)


def lookup(name, rows, width, shape):
    def prepare(xp):
        module, index = xp.nn.Embedding(rows, width), xp.randint(rows, shape)
        seed = xp.ones(*shape, width)

        def run():
            xp.autograd.grad(module(index), [module.weight], seed)
        return run
    workload("layer", name, prepare, 1.25)


lookup("Embedding 1000 x 128, 32x64", 1000, 128, (32, 64))
lookup("Embedding 20000 x 64, 16x35", 20000, 64, (16, 35))


def loss(name, make):
    def prepare(xp):
        x = xp.randn(2048, 512, requires_grad=True)
        call = make(xp, x)

        def run():
            xp.autograd.grad(call(), [x])
        return run
    workload("layer", name, prepare, 1.25)


def cross_entropy(xp, x):
    target = xp.randint(512, (2048,))
    return lambda: xp.nn.functional.cross_entropy(x, target)


def binary_cross_entropy(xp, x):
    target = xp.rand(2048, 512)
    return lambda: xp.nn.functional.binary_cross_entropy_with_logits(x, target)


def smooth_l1(xp, x):
    target = xp.randn(2048, 512)
    return lambda: xp.nn.functional.smooth_l1_loss(x, target)


loss("cross_entropy 2048 x 512", cross_entropy)
loss("binary_cross_entropy_with_logits 1M", binary_cross_entropy)
loss("smooth_l1_loss 1M", smooth_l1)
