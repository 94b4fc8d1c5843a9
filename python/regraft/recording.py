"""`record`: what operators cost on this machine, for a search on another one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Union

from .command import Progress, Sizes, ask, bound, options, seconds, sized
from .errors import Interrupted
from .model import Given, Model


class Recording:
    """Prices that were recorded, and the file that holds them.

    Attributes:
        path: The file, for `optimize(model, cost=recording.cost)` on another machine.
        report: What was recorded: the report of the command.
    """

    def __init__(self, path: Path, report: dict[str, Any]) -> None:
        self.path = path
        self.report = report

    @property
    def cost(self) -> str:
        """The argument `cost` of `optimize` that decides by these prices."""
        return f"profile:{self.path}"

    def __repr__(self) -> str:
        return f"<regraft.Recording {self.path}: {self.report['prices']} prices on {self.report['machine']}>"


def record(
    model: Model,
    output: str | os.PathLike[str],
    *,
    shapes: Mapping[str, Sizes] | None = None,
    bind: Mapping[str, Union[int, Iterable[int]]] | None = None,
    budget: float | str = 60.0,
    target: str | None = None,
    threads: int | None = None,
    seed: int = 0,
    runtime_library: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> Recording:
    """Measures a model here, without searching, and writes what a search on another machine needs
    to a file.

    Args: model: A path, bytes, or an `onnx.ModelProto`; where it is optimized it must be the same
    file, byte for byte. output: The file to write. shapes: Sizes of inputs to measure at. bind:
    Values of symbolic sizes to measure at: `{"N": 8}`, or several: `{"N": [1, 8]}`. budget: Time
    that it may take, in seconds, or as text. target: The runtime that the model will run on:
    `"onnxruntime"` or `"openvino"`; by default the former. threads: Threads of an operator; by
    default what the runtime itself uses. seed: Seed of made-up inputs. runtime_library: The
    runtime's library; by default that of its package. progress: True, or a function of the phase
    and of what begins in it.

    Raises:
        Failed: The model cannot be read or run, or the file cannot be written. Nothing was written.
        Interrupted: Ctrl-C. Nothing was written.
    """
    given, path = Given(model), Path(output)
    arguments = ["cost", "record", str(given.path), f"--output={path}", "--json"] + options(
        shape=sized(shapes),
        bind=bound(bind),
        budget=seconds(budget),
        target=target,
        threads=threads,
        seed=seed,
        runtime_library=runtime_library,
    )
    answer = ask(arguments, progress=progress, place=str(given.path))
    if answer.code == Interrupted.exit_code or not answer.output:
        raise Interrupted("interrupted: nothing was written", place=str(given.path))
    return Recording(path, answer.json())
