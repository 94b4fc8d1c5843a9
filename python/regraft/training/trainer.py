"""Training one network, repeatable from a seed."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import Failed
from .images import Images, mixed

MOMENTUM, DECAY = 0.9, 1e-3
"""Of gradients, from step to step; and of weights, relative to the rate."""
LARGEST = 5.0
"""Norm of the gradients at most."""


@dataclass(frozen=True)
class Recipe:
    """How a network is trained: by gradient descent with momentum, at a rate that falls to zero
    along a cosine.

    Attributes:
        batch: Images at once.
        rate: The rate at the beginning.
        epochs: Epochs that are planned.
    """

    batch: int
    rate: float
    epochs: int

    def __str__(self) -> str:
        return f"batch {self.batch}, rate {self.rate:g}"


class Training:
    """A network in training.

    Attributes:
        epoch: Epochs done.
        seconds: Seconds that they took.
    """

    def __init__(self, network: nn.Module, images: Images, recipe: Recipe, seed: int, device: torch.device) -> None:
        self.network = network.to(device)
        self.images, self.recipe, self.seed, self.device = images, recipe, seed, device
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=recipe.rate, momentum=MOMENTUM, weight_decay=DECAY)
        self.epoch = 0
        self.seconds = 0.0

    def state(self) -> dict[str, Any]:
        """All that later epochs depend on: random numbers follow from the seed and the epoch, the
        rate from the step."""
        found = [self.optimizer.state[parameter].get("momentum_buffer") for parameter in self.network.parameters()]
        momenta = {at: momentum for at, momentum in enumerate(found) if momentum is not None}
        return {"epoch": self.epoch, "network": self.network.state_dict(), "momenta": momenta}

    def resume(self, state: dict[str, Any], seconds: float) -> None:
        """Goes on where a state was taken, after so many seconds."""
        self.network.load_state_dict(state["network"])
        for at, parameter in enumerate(self.network.parameters()):
            if at in state["momenta"]:
                self.optimizer.state[parameter]["momentum_buffer"] = state["momenta"][at].to(self.device)
        self.epoch, self.seconds = state["epoch"], seconds

    def advance(self) -> tuple[float, float]:
        """One epoch, then the mean loss in it, infinite if it diverged, and the accuracy on
        held-back images."""
        start = time.monotonic()
        loss = self._epoch()
        self.epoch += 1
        accuracy = self._accuracy()
        self.seconds += time.monotonic() - start
        return loss, accuracy

    def _epoch(self) -> float:
        torch.manual_seed(mixed(self.seed, self.epoch + 1))
        self.network.train()
        steps = self.images.count // self.recipe.batch
        total = 0.0
        for at, (images, classes) in enumerate(self.images.training(self.recipe.batch, self.seed, self.epoch + 1, self.device)):
            total += self._step(images, classes, (self.epoch + at / steps) / self.recipe.epochs)
            # Nothing brings such weights back.
            if not math.isfinite(total):
                return math.inf
        return total / steps

    def _step(self, images: Tensor, classes: Tensor, done: float) -> float:
        """One step down the gradient, after a share of all of them; the loss before it."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.rate * 0.5 * (1 + math.cos(math.pi * done))
        self.optimizer.zero_grad()
        scores = self.network(images)
        if not isinstance(scores, Tensor):
            raise Failed("in training the network makes more than a number for each class", hint="choose another --network")
        loss = F.cross_entropy(scores, classes)
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), LARGEST)
        self.optimizer.step()
        return float(loss)

    def _accuracy(self) -> float:
        """Share of held-back images that are told right."""
        self.network.eval()
        right = seen = 0
        with torch.no_grad():
            for images, classes in self.images.held_back(self.recipe.batch, self.device):
                right += int((self.network(images).argmax(1) == classes).sum())
                seen += len(classes)
        return right / seen
