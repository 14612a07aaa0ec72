"""Whole training steps of networks: forward, loss, backward, optimiser."""
from . import workload


def training(name, network, batch, optimizer, target=1.25):
    """Times a step of ``network(xp)`` on ``batch(xp)``, inputs and classes."""
    def prepare(xp):
        model = network(xp)
        inputs, classes = batch(xp)
        opt = optimizer(xp.optim, model.parameters())

        def run():
            opt.zero_grad()
            xp.nn.functional.cross_entropy(model(inputs), classes).backward()
            opt.step()
        return run
    workload("train", name, prepare, target)


def sgd(optim, parameters):
    return optim.SGD(parameters, lr=1e-3, momentum=0.9)


def adam(optim, parameters):
    return optim.Adam(parameters, lr=1e-4)


def adamw(optim, parameters):
    return optim.AdamW(parameters, lr=1e-4)


def images(n, channels, side, classes):
    return lambda xp: (xp.randn(n, channels, side, side), xp.randint(classes, (n,)))


def lenet(xp):
    nn = xp.nn
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def resnet(xp):
    """Three stages of two residual blocks, 16 to 64 channels."""
    nn = xp.nn

    class Residual(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.norm1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(outputs)
            self.short = nn.Sequential()
            if stride != 1 or inputs != outputs:
                self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x):
            y = self.norm1(self.conv1(x)).relu()
            return (self.norm2(self.conv2(y)) + self.short(x)).relu()

    stages = [Residual(16, 16, 1), Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 32, 1),
              Residual(32, 64, 2), Residual(64, 64, 1)]
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *stages,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def gpt(xp):
    """Four layers of width 128 with four heads over runs of 64 characters."""
    nn = xp.nn

    class Block(nn.Module):
        def __init__(self, width=128, heads=4):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            n, length, width = x.shape
            q, k, v = (t.view(n, length, self.heads, -1).transpose(1, 2)
                       for t in self.qkv(self.norm1(x)).chunk(3, -1))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(n, length, width))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self, vocabulary=128, width=128, layers=4):
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, width)
            self.position = nn.Parameter(xp.zeros(64, width))
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

        def forward(self, numbers):
            x = self.embedding(numbers) + self.position
            return self.head(self.norm(self.blocks(x))).flatten(0, 1)

    return GPT()


def language_model(xp):
    """Embedding, two LSTM layers, decoder; 35 steps."""
    nn = xp.nn

    class Language(nn.Module):
        def __init__(self, vocabulary=2000, width=128):
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, width)
            self.lstm = nn.LSTM(width, width, 2)
            self.decoder = nn.Linear(width, vocabulary)

        def forward(self, numbers):
            return self.decoder(self.lstm(self.embedding(numbers))[0]).flatten(0, 1)

    return Language()


def tabular(xp):
    nn = xp.nn
    layers = []
    for i in range(3):
        layers += [nn.Linear(32 if i == 0 else 128, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.1)]
    return nn.Sequential(*layers, nn.Linear(128, 2))


training("LeNet, batch 64", lenet, images(64, 1, 28, 10), sgd)
training("ResNet 32x32, batch 16", resnet, images(16, 3, 32, 10), sgd)
training("GPT 4 layers of 128, 16x64", gpt, lambda xp: (xp.randint(128, (16, 64)), xp.randint(128, (1024,))), adamw)
training("LSTM language model, 35x20", language_model,
         lambda xp: (xp.randint(2000, (35, 20)), xp.randint(2000, (700,))), sgd)
training("tabular MLP, batch 256", tabular, lambda xp: (xp.randn(256, 32), xp.randint(2, (256,))), adam)
