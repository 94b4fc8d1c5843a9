"""An operator in place of a convolution, and which convolutions that is possible for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from ..errors import Failed
from .operators import Layer, line


class Replacement(nn.Module):
    """An operator in place of a convolution: what a stride leaves out is averaged before, and a
    bias stays."""

    def __init__(self, convolution: nn.Conv2d, operator: nn.Module) -> None:
        super().__init__()
        # As the convolution does, it keeps what remains of an axis that the stride does not divide.
        stride = (convolution.stride[0], convolution.stride[1])
        self.pool = nn.Identity() if stride == (1, 1) else nn.AvgPool2d(stride, ceil_mode=True)
        self.operator = operator
        self.bias = convolution.bias

    def forward(self, x: Tensor) -> Tensor:
        y = self.operator(self.pool(x))
        return y if self.bias is None else y + self.bias[:, None, None]


def replace(network: nn.Module, replaced: Mapping[str, type[nn.Module]]) -> nn.Module:
    """The network, with modules in place of the convolutions of these names."""
    for name, module in replaced.items():
        parent, _, leaf = name.rpartition(".")
        convolution = network.get_submodule(name)
        assert isinstance(convolution, nn.Conv2d), "only convolutions are replaced"
        setattr(network.get_submodule(parent), leaf, Replacement(convolution, module()))
    return network


def convolutions(network: nn.Module, side: int) -> dict[str, Layer | None]:
    """For each convolution the layer that an operator has to match, at its size behind the stride;
    `None` if it has groups, is dilated, does not keep the size, or is used at several sizes.
    """
    seen: dict[str, set[Layer]] = {}

    def watch(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        def note(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            outer = tuple(output.shape[1:])
            seen[name].add(((inputs[0].shape[1], *outer[1:]), outer))

        return note

    named = {name: module for name, module in network.named_modules() if isinstance(module, nn.Conv2d)}
    hooks = []
    for name, module in named.items():
        seen[name] = set()
        hooks.append(module.register_forward_hook(watch(name)))
    was_training = network.training
    try:
        with torch.no_grad():
            network.eval()(torch.zeros(1, 3, side, side))
    except (RuntimeError, ValueError, AssertionError) as error:
        raise Failed(f"the network does not take images of {side} x {side}: {line(error)}", hint="choose another --side") from None
    finally:
        network.train(was_training)
        for hook in hooks:
            hook.remove()
    return {name: only(seen[name]) if keeps_size(module) else None for name, module in named.items()}


def only(layers: set[Layer]) -> Layer | None:
    """The one of a set with one."""
    return next(iter(layers)) if len(layers) == 1 else None


def keeps_size(convolution: nn.Conv2d) -> bool:
    """Whether height and width stay, up to the stride."""
    same = tuple(size // 2 for size in convolution.kernel_size)
    is_odd = all(size % 2 for size in convolution.kernel_size)
    is_plain = convolution.groups == 1 and set(convolution.dilation) == {1} and convolution.padding_mode == "zeros"
    return is_plain and (convolution.padding == "same" or (is_odd and convolution.padding == same))
