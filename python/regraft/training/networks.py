"""Networks for images, at their beginning: drawn from PyTorch's generator, which the caller
seeds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from torch import Tensor, nn

from ..errors import Failed

TORCHVISION = "torchvision/"
"""What the names of torchvision's networks begin with."""


class Block(nn.Module):
    """Two convolutions beside a shortcut (He and others, "Deep Residual Learning for Image
    Recognition", 2016)."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inner, outer, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outer),
            nn.ReLU(inplace=True),
            nn.Conv2d(outer, outer, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outer),
        )
        self.shortcut = nn.Sequential()
        if (inner, stride) != (outer, 1):
            self.shortcut = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.body(x) + self.shortcut(x))


def residual(stem: nn.Module, widths: Sequence[int], blocks: Sequence[int], classes: int) -> nn.Module:
    """A stem, stages of blocks, each but the first at half the size of the one before, and a linear
    classifier."""
    parts: OrderedDict[str, nn.Module] = OrderedDict(stem=stem)
    inner = widths[0]
    for stage, (outer, count) in enumerate(zip(widths, blocks)):
        strides = [1 if stage == 0 else 2] + [1] * (count - 1)
        parts[f"stage{stage}"] = nn.Sequential(*(Block(outer if at else inner, outer, stride) for at, stride in enumerate(strides)))
        inner = outer
    parts["head"] = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, classes))
    network = nn.Sequential(parts)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network


def stem(width: int, kernel: int) -> list[nn.Module]:
    """A convolution that halves the size."""
    return [nn.Conv2d(3, width, kernel, 2, kernel // 2, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]


def resnet(blocks: Sequence[int], classes: int) -> nn.Module:
    """A residual network for ImageNet."""
    return residual(nn.Sequential(*stem(64, 7), nn.MaxPool2d(3, 2, 1)), (64, 128, 256, 512), blocks, classes)


def network(name: str, classes: int) -> nn.Module:
    """The network of a name.

    `small` has, for images of 32 x 32, the layers of the network that `regraft-train` trains.

    Raises:
        Failed: if there is none.
    """
    if name == "small":
        return residual(nn.Sequential(*stem(32, 3)), (32, 64), (1, 1), classes)
    if name == "resnet18":
        return resnet((2, 2, 2, 2), classes)
    if name == "resnet34":
        return resnet((3, 4, 6, 3), classes)
    if not name.startswith(TORCHVISION):
        raise Failed(f"there is no network `{name}`", hint="small, resnet18, resnet34, or torchvision/NAME")
    try:
        from torchvision import models
    except ImportError:
        raise Failed(f"`{name}` needs torchvision, which is not installed", hint="pip install torchvision") from None
    own = name[len(TORCHVISION) :]
    make = vars(models).get(own)
    # Lower-case functions make networks; classes, modules and what begins with an underscore do
    # not.
    if not callable(make) or isinstance(make, type) or make.__name__.startswith(("_", "get_", "list_")):
        raise Failed(f"torchvision has no network `{own}`", hint="its documentation lists them: densenet121, ..")
    made: nn.Module = make(num_classes=classes)
    return made


def parameters(network: nn.Module) -> int:
    """How many numbers training changes."""
    return sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)
