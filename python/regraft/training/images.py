"""Images to train on: what every source of them has in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy
import torch
from torch import Tensor

Batches = Iterator[tuple[Tensor, Tensor]]
"""Normalized images `[N, 3, side, side]`, and their classes `[N]`."""


class Images(Protocol):
    """Images to train on, and held-back ones.

    Attributes:
        name: What they are, and how many: runs on others are other runs.
        place: Where they are.
        side: Height and width.
        classes: How many classes they have.
        count: How many there are to train on.
    """

    name: str
    place: str
    side: int
    classes: int
    count: int

    def training(self, batch: int, seed: int, epoch: int, device: torch.device) -> Batches:
        """All, in an order and with changes that the seed and the epoch alone decide; an incomplete
        batch at the end is left out."""

    def held_back(self, batch: int, device: torch.device) -> Batches:
        """All that are not trained on, unchanged."""


def mixed(*numbers: int) -> int:
    """A seed from several numbers."""
    return int(numpy.random.SeedSequence(numbers).generate_state(1)[0])


def normalized(pixels: Tensor, mean: tuple[float, ...], deviation: tuple[float, ...]) -> Tensor:
    """Bytes `[N, 3, H, W]` as numbers around 0, for each colour."""
    scale = [torch.tensor(values, device=pixels.device)[:, None, None] for values in (mean, deviation)]
    return (pixels.float() / 255 - scale[0]) / scale[1]
