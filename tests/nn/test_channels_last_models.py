"""Models in the channels-last format copy no tensor to another layout, forward or backward.

A plan records each kernel and each copy that a call makes, so its steps are what is counted. (Casts are copies, too:
models are in float32.)
"""
import pytest

import ptcore
from ptcore import nn
from ptcore._ops.plan.plan import Plan

pytestmark = pytest.mark.core

F = nn.functional


class Residual(nn.Module):
    """A block of ResNet-18."""
    def __init__(self, channels, filters, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, filters, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(filters)
        self.conv2 = nn.Conv2d(filters, filters, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(filters)
        self.down = nn.Sequential(nn.Conv2d(channels, filters, 1, stride, bias=False), nn.BatchNorm2d(filters))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.down(x))


def resnet():
    return nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                         Residual(16, 16, 1), Residual(16, 32, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(32, 10))


class UNet(nn.Module):
    def __init__(self, up):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1, padding_mode="reflect")
        self.norm = nn.GroupNorm(4, 32)
        self.up = nn.ConvTranspose2d(32, 16, 2, 2) if up is None else nn.Sequential(
            nn.Upsample(scale_factor=2, mode=up), nn.Conv2d(32, 16, 1))
        self.c, self.out = nn.Conv2d(32, 16, 3, padding=1), nn.Conv2d(16, 2, 1)

    def forward(self, x):
        a = F.leaky_relu(self.a(x))
        b = F.dropout2d(F.silu(self.norm(self.b(F.avg_pool2d(a, 2)))), 0.1)
        return self.out(F.relu(self.c(ptcore.cat([a, self.up(b)], 1))))


class Inverted(nn.Module):
    """A block of MobileNet."""
    def __init__(self, channels, stride):
        super().__init__()
        wide = 4 * channels
        self.layers = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.Hardswish())
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, 16, 1), nn.ReLU(), nn.Conv2d(16, wide, 1),
                                     nn.Hardsigmoid())
        self.project = nn.Sequential(nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.layers(x)
        return self.project(y * self.squeeze(y))


def mobilenet():
    return nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish(), Inverted(16, 1),
                         Inverted(16, 2), nn.Conv2d(16, 64, 1, bias=False), nn.BatchNorm2d(64), nn.Hardswish(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(64, 5))


class ConvNeXt(nn.Module):
    """A block, whose linear layers see the channels as the last dim."""
    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.wide, self.narrow = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(ptcore.full((channels,), 0.5))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.narrow(F.gelu(self.wide(y)))).permute(0, 3, 1, 2)


def convnext():
    return nn.Sequential(nn.Conv2d(3, 32, 4, 4), ConvNeXt(32), ConvNeXt(32), nn.Conv2d(32, 32, 2, 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(32), nn.Linear(32, 5))


MODELS = {"resnet": resnet, "mobilenet": mobilenet, "convnext": convnext, "unet": lambda: UNet(None),
          "unet, nearest": lambda: UNet("nearest"), "unet, bilinear": lambda: UNet("bilinear")}


def steps_of(model, x):
    """The steps of a forward and of a backward to all parameters and the input."""
    plan = Plan()
    plan.begin([x, *model.parameters(), *model.buffers()])
    try:
        loss = model(x).square().mean()
        forward = len(plan)
        ptcore.autograd.grad(loss, [x, *model.parameters()])
    finally:
        plan.stop()
    steps = plan.steps
    return steps[:forward], steps[forward:]


def neighbours(steps):
    """The copies among steps, each with the steps around it."""
    return [steps[max(0, k - 1):k + 2] for k, name in enumerate(steps) if name in ("copy", "clone", "contiguous")]


@pytest.mark.parametrize("name", MODELS)
def test_no_copies(name):
    ptcore.manual_seed(0)
    model = MODELS[name]().to(memory_format=ptcore.channels_last)
    x = ptcore.randn(2, 3, 32, 32).to(memory_format=ptcore.channels_last).requires_grad_()
    forward, backward = steps_of(model, x)
    assert len(forward) > 8 and len(backward) > 8
    assert not neighbours(forward)
    assert not neighbours(backward)
