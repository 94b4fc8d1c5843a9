"""The networks that are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from ..errors import Failed
from .networks import parameters
from .operators import Layer, Operator, shown
from .replacement import convolutions, replace

BASELINE = "baseline"
"""Name and formula of the network itself."""
FEW = 8
"""Layers that an error names at most."""


@dataclass(frozen=True)
class Candidate:
    """A network with an operator in it, or the network itself.

    Attributes:
        name: The operator's name.
        formula: Its formula.
        make: Makes the network itself.
        replaced: Modules by the names of the convolutions that they replace.
        convolutions: How many convolutions the network has.
        parameters: How many numbers training changes.
    """

    name: str
    formula: str
    make: Callable[[], nn.Module]
    replaced: Mapping[str, type[nn.Module]]
    convolutions: int
    parameters: int

    def network(self, seed: int) -> nn.Module:
        """At its beginning, from a seed; what is not replaced begins as it does in the network
        itself."""
        torch.manual_seed(seed)
        return replace(self.make(), self.replaced)


def candidates(make: Callable[[], nn.Module], operators: Sequence[Operator], *, side: int, keep_pointwise: bool) -> list[Candidate]:
    """The network itself, then with each operator.

    Args:
        make: Makes the network.
        side: Height and width of its images.
        keep_pointwise: Leave convolutions with a kernel of 1 x 1 as they are.

    Raises:
        Failed: if an operator fits no convolution of the network.
    """
    network = make()
    layers = convolutions(network, side)
    made = [Candidate(BASELINE, BASELINE, make, {}, len(layers), parameters(network))]
    kept = {name for name in layers if keep_pointwise and math.prod(network.get_submodule(name).kernel_size) == 1}
    fit = {name: layer for name, layer in layers.items() if layer is not None and name not in kept}
    for operator in operators:
        modules = {layer: operator.checked(layer) for layer in set(fit.values()) if layer in operator.layers}
        replaced = {name: modules[layer] for name, layer in fit.items() if layer in modules}
        if not replaced:
            raise Failed(
                f"none of its layers is in the network: it has {listed(operator.layers)}",
                place=str(operator.place),
                hint=f"choose another --side, --network or folder: at {side} x {side} the network has {listed(fit.values())}",
            )
        count = parameters(replace(make(), replaced))
        made.append(Candidate(operator.name, operator.formula, make, replaced, len(layers), count))
    return made


def listed(layers: Iterable[Layer]) -> str:
    """Some of many layers, for readers."""
    names = list(dict.fromkeys(map(shown, layers)))
    return ", ".join(names[:FEW] + [".."] * (len(names) > FEW)) or "none"
