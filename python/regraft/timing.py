"""`bench`: models timed against each other."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from . import inputs
from .command import Progress, Sizes, ask, bound, options, seconds, sized
from .errors import Interrupted
from .model import Given, Model
from .speedup import Speedup


class Timed:
    """One of several models.

    Attributes:
        model: Its file.
        median: Median time of a run, in seconds.
        speedup: How many times faster it is than the first.
    """

    def __init__(self, report: dict[str, Any]) -> None:
        self.model: str = report["model"]
        self.median: float = report["median_ns"] / 1e9
        self.speedup = Speedup.of(report["speedup"])

    def __repr__(self) -> str:
        return f"<regraft.Timed {self.model}: {1e3 * self.median:.3f} ms, {self.speedup}>"


class Bench:
    """Models timed against each other.

    Attributes:
        models: Their times, in the order that they were given.
        report: Everything that was measured: the report of the command.
    """

    def __init__(self, report: dict[str, Any]) -> None:
        self.report = report
        self.models = [Timed(one) for one in report["models"]]

    @property
    def speedup(self) -> Speedup:
        """How many times faster the last model is than the first."""
        return self.models[-1].speedup

    def __repr__(self) -> str:
        return f"<regraft.Bench {self.models!r}>"


def bench(
    *models: Model,
    shapes: Mapping[str, Sizes] | None = None,
    bind: Mapping[str, int] | None = None,
    data: inputs.Data = None,
    budget: float | str | None = None,
    runs: int | None = None,
    target: str | None = None,
    threads: int | None = None,
    seed: int = 0,
    runtime_library: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> Bench:
    """Times models against each other, interleaved, with the runtime's own optimizer fully on.

    Args: models: Paths, bytes, or `onnx.ModelProto`s; the first is the baseline. shapes: Sizes of
    inputs to measure at. bind: Values of symbolic sizes to measure at. data: Real inputs to measure
    with. budget: Time that it may take, in seconds, or as text; by default 10 seconds. runs: Runs
    of each model, instead of a budget. target: The runtime that they run on: `"onnxruntime"` or
    `"openvino"`; by default the former. threads: Threads of an operator; by default what the
    runtime itself uses. seed: Seed of made-up inputs. runtime_library: The runtime's library; by
    default that of its package. progress: True, or a function of the phase and of what begins in
    it.

    Raises:
        Failed: A model cannot be read or run.
        Interrupted: Ctrl-C.
    """
    given = [Given(model) for model in models]
    holds = inputs.Held(data)
    arguments = ["bench", *(str(model.path) for model in given), "--json"] + options(
        shape=sized(shapes),
        bind=bound(bind),
        data=holds.arguments,
        budget=seconds(budget),
        runs=runs,
        target=target,
        threads=threads,
        seed=seed,
        runtime_library=runtime_library,
    )
    answer = ask(arguments, progress=progress, place=str(given[0].path) if given else None)
    found = Bench(answer.json()) if answer.output else None
    if answer.code == Interrupted.exit_code or found is None:
        raise Interrupted("interrupted", result=found)
    return found
