"""A network and many operators in it, of which the worse half is dropped at each milestone
(Jamieson and Talwalkar, "Non-stochastic best arm identification", 2016: successive halving).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from .candidates import Candidate
from .images import Images, mixed
from .runs import Run, Store, Subject
from .trainer import Recipe, Training


class Comparison:
    """Candidates trained from one seed, the first of which, the network itself, is never dropped.

    Attributes:
        runs: The last run of each candidate, by its name.
    """

    def __init__(
        self, network: str, candidates: Sequence[Candidate], images: Images, recipe: Recipe, seed: int, store: Store, device: torch.device
    ) -> None:
        self.network, self.candidates, self.images, self.recipe, self.seed = network, candidates, images, recipe, seed
        self.store, self.device = store, device
        self.runs: dict[str, Run] = {}

    def train(self, milestones: Sequence[int], each: Callable[[Candidate, Run], object]) -> None:
        """Trains until the last milestone those that stay. What the store knows is not repeated."""
        baseline, *alive = self.candidates
        for milestone in milestones:
            for candidate in (baseline, *alive):
                self._reach(candidate, milestone, each)
            alive.sort(key=lambda candidate: -self.runs[candidate.name].best)
            del alive[(len(alive) + 1) // 2 :]

    def _reach(self, candidate: Candidate, milestone: int, each: Callable[[Candidate, Run], object]) -> None:
        """Trains a candidate until so many epochs are done."""
        subject = Subject(
            self.network, self.images.name, str(self.recipe), candidate.formula, candidate.parameters, self.seed, self.recipe.epochs
        )
        known = self.store.get(subject, milestone)
        if known is not None:
            self.runs[candidate.name] = known
            return
        training = Training(candidate.network(mixed(self.seed, 0)), self.images, self.recipe, self.seed, self.device)
        state = self.store.saved(subject)
        if state is not None:
            training.resume(state, self._note(candidate, subject, state["epoch"]).seconds)
        while training.epoch < milestone:
            loss, accuracy = training.advance()
            # In this order: an epoch whose state is lost is trained again, one whose row is lost
            # would not be.
            self.store.put(subject, training.epoch, loss, accuracy, training.seconds)
            run = self._note(candidate, subject, training.epoch)
            self.store.save(subject, training.state())
            each(candidate, run)

    def _note(self, candidate: Candidate, subject: Subject, epoch: int) -> Run:
        run = self.store.get(subject, epoch)
        assert run is not None, "a row that was just written is there"
        self.runs[candidate.name] = run
        return run
