"""`farm`: many models, on this machine or in a Ray cluster."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .command import Progress, ask, options
from .errors import Interrupted
from .speedup import Speedup


@dataclass(frozen=True)
class Row:
    """One task of a farm.

    Attributes:
        task: Its name.
        kind: "optimize", "bench", "generate" or "merge".
        subject: Model or specification.
        input: The file that it is about, relative to the folder of the jobs.
        sizes: Sizes or symbols, as given; or the shard.
        threads: Threads of an operator, if given.
        target: The runtime, if given.
        state: "done", "unmet", "failed" or "crashed"; None if it is open.
        speedup: How many times faster, if that was measured.
        nodes: Nodes before and after, of an optimized model.
        seconds: How long it took.
        host: The machine that worked on it.
        machine: Its processor, the digest of its features, its number of logical processors.
        output: What it made, if it made something.
        cause: Why it did not.
    """

    task: str
    kind: str
    subject: str
    input: str
    sizes: str
    threads: int | None
    target: str
    state: str | None
    speedup: Speedup | None
    nodes: tuple[int, int] | None
    seconds: float | None
    host: str
    machine: str
    output: Path | None
    cause: str

    @classmethod
    def of(cls, report: dict[str, Any], folder: Path) -> Row:
        """From the table of the command; `folder` is that of the jobs."""
        measured = report["speedup"]
        speedup = Speedup.of(measured) if measured else None
        output = folder / report["output"] if report["output"] else None
        nodes = tuple(report["nodes"]) if report["nodes"] else None
        return cls(**{**report, "speedup": speedup, "nodes": nodes, "output": output})


def farm(
    jobs: str | os.PathLike[str],
    *,
    ray: str | None = None,
    send: bool = False,
    again: bool = False,
    progress: Progress = None,
) -> list[Row]:
    """Works on a file of jobs until every task has ended, and returns a row for each.

    What is done already is not repeated.

    Args:
        jobs: The file, as TOML: see `regraft farm --help`.
        ray: Address of a Ray cluster, such as "auto"; by default, processes on this machine.
        send: Send files to the machines of the cluster though they may see the folder.
        again: Try again what failed or crashed.
        progress: True, or a function of how many are done and of what begins.

    Raises:
        Failed: The file of jobs has a mistake, or there is no cluster. Tasks that fail are rows.
        Interrupted: Ctrl-C. `result` has the rows; the same call goes on.
    """
    arguments = ["farm", os.fspath(jobs), "--json", *options(ray=ray, send=send, again=again)]
    answer = ask(arguments, progress=progress, place=os.fspath(jobs))
    folder = Path(os.path.abspath(jobs)).parent
    rows = [Row.of(row, folder) for row in answer.json()["rows"]] if answer.output else []
    if answer.code == Interrupted.exit_code:
        raise Interrupted("interrupted", result=rows)
    return rows
