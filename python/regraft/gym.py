"""Rewriting as an environment of `gymnasium`: what X-RLflow trains its agents in.

    >>> import regraft.gym
    >>> environment = regraft.gym.Rewriting("model.onnx")
    >>> observation, info = environment.reset()
    >>> observation, reward, terminated, truncated, info = environment.step(environment.stop)

A state is a graph with the graphs that one proved rewrite leads to; an action takes one of these,
or stops. Rewards are hundredths of the first graph's cost under a price list: nothing is measured,
and the same actions earn the same. Needs the package `gymnasium`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy
from numpy.typing import NDArray

from ._regraft import Environment as _Environment
from ._regraft import State as _State
from .errors import Failed

Observation = dict[str, NDArray[Any]]


class Rewriting(gymnasium.Env[Observation, numpy.int64]):
    """A model under rewriting (He and others, X-RLflow, MLSys 2023, section 3.2).

    Actions: the candidate of this number; the last action, `stop`, ends the episode. A number
    without a candidate changes nothing and counts as a step: `action_masks` tells which have one.

    Observations:
        nodes: How many nodes of each type the graph has, as logarithms of one more.
        differences: By how many each candidate has more.
        savings: What each candidate saves, in hundredths of the first graph's cost.
        mask: 1 for each action that can be taken.

    `graphs` has the graphs themselves, for networks on graphs.

    Args: model: Model file, or name in the zoo. prices: Measured prices, as `regraft cost export`
    writes them; the analytic roofline without. shapes: Sizes of inputs by name. binds: Values of
    symbols. horizon: Rewrites of an episode at most. feedback: A state is rewarded after every so
    many rewrites, and at the end. slots: Candidates that there is a place for, with the one that
    stops. shaping: What other steps earn: "potential" (what the price list says, paid in advance,
    which changes no optimum), "none", or "bonus" (0.1, as published). linear_sizes: Divide sizes by
    4096, as published, rather than take logarithms; for `graphs`.

    Raises:
        Failed: The model or the prices cannot be read.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        prices: str | os.PathLike[str] | None = None,
        shapes: Mapping[str, Sequence[int]] | None = None,
        binds: Mapping[str, int] | None = None,
        horizon: int = 100,
        feedback: int = 5,
        slots: int = 100,
        shaping: str = "potential",
        linear_sizes: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if slots < 2:
            raise Failed("a slot is for stopping: there are at least 2", hint="slots=100")
        listed = [f"{name}:{','.join(map(str, sizes))}" for name, sizes in (shapes or {}).items()]
        try:
            self._native = _Environment(
                os.fspath(model),
                None if prices is None else os.fspath(prices),
                listed,
                list((binds or {}).items()),
                horizon,
                feedback,
                slots,
                shaping,
                linear_sizes,
            )
        except ValueError as error:
            raise _failed(error, model) from None
        self.render_mode = render_mode
        self.horizon = horizon
        self.stop = slots - 1
        self._steps = 0
        self._state: _State | None = None
        types = self._native.types
        self.action_space = gymnasium.spaces.Discrete(slots)
        spaces: Any = gymnasium.spaces.Dict(
            {
                "nodes": _numbers(types),
                "differences": _numbers(slots, types),
                "savings": _numbers(slots),
                "mask": gymnasium.spaces.MultiBinary(slots),
            }
        )
        self.observation_space = spaces

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode, always with the model as it is."""
        super().reset(seed=seed, options=options)
        self._steps = 0
        self._state = self._native.reset()
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Takes an action."""
        state, chosen = self._known(), int(action)
        reward, terminated = 0.0, False
        self._steps += 1
        if chosen == self.stop or chosen < len(state.rules):
            self._state = state = self._native.step(chosen)
            reward, terminated = float(state.reward), state.terminated
        truncated = not terminated and (state.truncated or self._steps >= self.horizon)
        return self._observation(), reward, terminated, truncated, self._info()

    def action_masks(self) -> NDArray[numpy.bool_]:
        """Which actions can be taken: what `sb3_contrib.MaskablePPO` asks for."""
        mask = numpy.zeros(self.stop + 1, dtype=bool)
        mask[: len(self._known().rules)] = True
        mask[self.stop] = True
        return mask

    def graphs(self) -> list[tuple[NDArray[numpy.uint8], NDArray[numpy.uint32], NDArray[numpy.float32]]]:
        """All candidates and, last, the current graph: types of nodes, edges as pairs of nodes, and
        the last four sizes of each edge's tensor. An edge from each node to itself is
        understood."""
        self._known()
        return [
            (
                numpy.frombuffer(types, dtype=numpy.uint8),
                numpy.array(edges, dtype=numpy.uint32).reshape(-1, 2),
                numpy.array(shapes, dtype=numpy.float32).reshape(-1, 4),
            )
            for types, edges, shapes in self._native.graphs()
        ]

    def best(self) -> tuple[float, list[str]]:
        """The cheapest state of all episodes: by what factor it is faster under the price list, and
        the rules that lead there."""
        cost, rules = self._native.best()
        return self._known().costs[0] / max(cost, 1), rules

    def write_best(self, path: str | os.PathLike[str]) -> None:
        """Writes the cheapest state of all episodes as a model. It is made by proved rules; it was
        neither run nor timed: `regraft.check` and `regraft.bench` do that."""
        try:
            self._native.write(os.fspath(path))
        except ValueError as error:
            raise _failed(error, path) from None

    def render(self) -> str | None:
        """One line about the state, where the mode of rendering is "ansi"."""
        if self.render_mode != "ansi":
            return None
        state = self._known()
        return f"{state.costs[0] / max(state.costs[1], 1):.4f}x after {self._steps} steps, {len(state.rules)} candidates"

    def _known(self) -> _State:
        if self._state is None:
            self.reset()
        assert self._state is not None
        return self._state

    def _observation(self) -> Observation:
        state, slots = self._known(), self.stop + 1
        differences = numpy.zeros((slots, self._native.types), dtype=numpy.float32)
        savings = numpy.zeros(slots, dtype=numpy.float32)
        count = len(state.rules)
        if count:
            differences[:count] = numpy.array(state.differences, dtype=numpy.float32)
            costs = numpy.array(state.candidate_costs, dtype=numpy.float64)
            savings[:count] = 100 * (state.costs[1] - costs) / max(state.costs[0], 1)
        return {
            "nodes": numpy.log1p(numpy.array(state.counts, dtype=numpy.float32)),
            "differences": differences,
            "savings": savings,
            "mask": self.action_masks().astype(numpy.int8),
        }

    def _info(self) -> dict[str, Any]:
        state = self._known()
        first, now = state.costs
        return {"cost": now, "speedup": first / max(now, 1), "rules": list(state.rules), "left_out": state.left_out}


def _failed(error: ValueError, place: str | os.PathLike[str]) -> Failed:
    cause, hint = (*error.args, None)[:2]
    return Failed(cause, place=os.fspath(place), hint=hint)


def _numbers(*shape: int) -> gymnasium.spaces.Box[Any]:
    return gymnasium.spaces.Box(-numpy.inf, numpy.inf, shape, numpy.float32)


gymnasium.register(id="regraft/Rewriting-v0", entry_point="regraft.gym:Rewriting")
