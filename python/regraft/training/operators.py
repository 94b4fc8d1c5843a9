"""Operators that `regraft synthesize --emit` wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..errors import Failed

Layer = tuple[tuple[int, ...], tuple[int, ...]]
"""Shapes of what a layer reads and makes, without the batch."""

FILE = re.compile(r"operator-[0-9]+\.py")
"""Names of their files; expressions of TVM lie beside them."""

EMIT = "write the folder again with `regraft synthesize --emit`"
"""What mends a file."""


@dataclass(frozen=True)
class Operator:
    """What a file `operator-NN.py` defines.

    Attributes:
        name: Its file, without the ending.
        formula: What it computes.
        layers: A module for each layer of the specification that it was synthesized for.
        place: Its file.
    """

    name: str
    formula: str
    layers: Mapping[Layer, type[nn.Module]]
    place: Path

    def checked(self, layer: Layer) -> type[nn.Module]:
        """The module for a layer.

        Raises:
            Failed: if it does not make of a batch what the layer makes of it.
        """
        module, (inner, outer) = self.layers[layer], layer
        try:
            made = tuple(module()(torch.zeros(2, *inner)).shape)
        except Exception as error:
            raise Failed(f"its module for {shown(layer)} does not run: {line(error)}", place=str(self.place), hint=EMIT) from None
        if made != (2, *outer):
            raise Failed(f"its module for {shown(layer)} makes {made} of a batch of 2", place=str(self.place), hint=EMIT)
        return module


def load(folder: Path) -> list[Operator]:
    """The operators of a folder, by their names.

    Raises:
        Failed: if there are none, or one is not as the command writes it.
    """
    files = sorted(file for file in folder.glob("operator-*.py") if FILE.fullmatch(file.name))
    if not files:
        raise Failed("there is no file operator-NUMBER.py in it" if folder.is_dir() else "there is no such folder", place=str(folder), hint=EMIT)
    return [read(file) for file in files]


def read(file: Path) -> Operator:
    """The operator of a file, which is run."""
    scope: dict[str, Any] = {"__name__": file.stem}
    try:
        exec(compile(file.read_bytes(), str(file), "exec"), scope)
    except Exception as error:
        raise Failed(f"it does not run: {line(error)}", place=str(file), hint=EMIT) from None
    layers, formula = scope.get("LAYERS"), scope.get("FORMULA")
    if not isinstance(layers, dict) or not layers or not isinstance(formula, str):
        raise Failed("it lacks LAYERS, a module for each layer, or FORMULA", place=str(file), hint=EMIT)
    return Operator(file.stem, formula, layers, file)


def shown(layer: Layer) -> str:
    """A layer, for readers."""
    inner, outer = ("x".join(map(str, shape)) for shape in layer)
    return f"{inner} to {outer}"


def line(error: BaseException) -> str:
    """What an error says, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
