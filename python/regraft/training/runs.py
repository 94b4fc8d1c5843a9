"""Runs in a database, and the networks that they left beside it: what was trained is not trained
again."""

from __future__ import annotations

import hashlib
import math
import os
import sqlite3
import weakref
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import torch

from ..errors import Failed

# Beside the table `runs` of `regraft-train`, so that one file may hold both.
TABLE = """
CREATE TABLE IF NOT EXISTS network_runs (
  network TEXT NOT NULL, data TEXT NOT NULL, recipe TEXT NOT NULL, formula TEXT NOT NULL, parameters INTEGER NOT NULL,
  seed INTEGER NOT NULL, planned INTEGER NOT NULL, epoch INTEGER NOT NULL,
  loss REAL NOT NULL, accuracy REAL NOT NULL, seconds REAL NOT NULL,
  PRIMARY KEY (network, data, recipe, formula, parameters, seed, planned, epoch))
"""
SAME = "network = ? AND data = ? AND recipe = ? AND formula = ? AND parameters = ? AND seed = ? AND planned = ?"


@dataclass(frozen=True)
class Subject:
    """What a run trains, and how.

    Attributes: network: The network's name. data: What the images are. recipe: How it is trained.
    formula: The operator's formula, or `baseline`. parameters: How many numbers training changes:
    it tells the same operator in other layers apart. seed: The seed. planned: Epochs that are
    planned: the rate depends on them.
    """

    network: str
    data: str
    recipe: str
    formula: str
    parameters: int
    seed: int
    planned: int


@dataclass(frozen=True)
class Run:
    """A network trained for some epochs from a seed.

    Attributes:
        subject: What was trained, and how.
        epoch: Epochs done.
        loss: Mean loss of the last epoch; infinite if it diverged.
        accuracy: Share of held-back images that are told right.
        best: The largest such share until now: the score.
        seconds: Seconds that all epochs took.
    """

    subject: Subject
    epoch: int
    loss: float
    accuracy: float
    best: float
    seconds: float

    def report(self) -> dict[str, Any]:
        """For JSON, which knows no infinity."""
        own = {name: value for name, value in vars(self).items() if name != "subject"}
        return {**vars(self.subject), **own, "loss": self.loss if math.isfinite(self.loss) else None}


class Store:
    """A database of runs, made if it is not there; and a folder beside it, with the state of each
    run."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.folder = file.with_name(file.name + ".checkpoints")
        try:
            self.connection = sqlite3.connect(file, timeout=30)
            weakref.finalize(self, self.connection.close)
            self._run(TABLE)
        except sqlite3.Error as error:
            raise self._failed(error) from None

    def get(self, subject: Subject, epoch: int) -> Run | None:
        """The run of a subject after so many epochs."""
        rows = self._run(f"SELECT epoch, loss, accuracy, seconds FROM network_runs WHERE {SAME} AND epoch <= ?", *astuple(subject), epoch)
        last = max(rows, default=None)
        if last is None or last[0] != epoch:
            return None
        best = max(accuracy for _, _, accuracy, _ in rows)
        return Run(subject, epoch, loss=last[1], accuracy=last[2], best=best, seconds=last[3])

    def put(self, subject: Subject, epoch: int, loss: float, accuracy: float, seconds: float) -> None:
        """Adds a run; one that is there already stays."""
        marks = ", ".join("?" * 11)
        self._run(f"INSERT OR IGNORE INTO network_runs VALUES ({marks})", *astuple(subject), epoch, loss, accuracy, seconds)

    def saved(self, subject: Subject) -> dict[str, Any] | None:
        """The state of a run that was saved last, if the database knows its epoch."""
        file = self._checkpoint(subject)
        if not file.exists():
            return None
        try:
            state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
            epoch = int(state["epoch"])
        except Exception:
            raise Failed("it is no checkpoint that can be read", place=str(file), hint="remove it: the run begins anew") from None
        return state if self.get(subject, epoch) else None

    def save(self, subject: Subject, state: dict[str, Any]) -> None:
        """Replaces the state of a run, at once or not at all."""
        file = self._checkpoint(subject)
        new = file.with_suffix(f".{os.getpid()}.new")
        try:
            self.folder.mkdir(exist_ok=True)
            torch.save(state, new)
            os.replace(new, file)
        except (OSError, RuntimeError) as error:
            raise Failed(f"cannot write it: {' '.join(str(error).split())}", place=str(file), hint="check the disk") from None
        finally:
            new.unlink(missing_ok=True)

    def _checkpoint(self, subject: Subject) -> Path:
        return self.folder / f"{hashlib.sha256(repr(astuple(subject)).encode()).hexdigest()[:24]}.pt"

    def _run(self, statement: str, *values: object) -> list[Any]:
        try:
            with self.connection:
                return self.connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._failed(error) from None

    def _failed(self, error: sqlite3.Error) -> Failed:
        return Failed(f"cannot use the database: {error}", place=str(self.file), hint="name another file with --store")
