"""`rules` and `explain`: what may be done to a model, and what was."""

from __future__ import annotations

import json
import os
from typing import Any, TypedDict, Union

from .command import ask
from .model import Folder, Given, Model
from .optimization import Result


class Rule(TypedDict, total=False):
    """A rewrite rule."""

    name: str
    """Its name, for `deny`."""
    trust: str
    """How far it is trusted: `proved`, ..."""
    numeric: str
    """What it does to rounding: its numeric class."""


def rules() -> list[Rule]:
    """The shipped rewrite rules, each with its trust and its numeric class."""
    found: list[Rule] = ask(["rules", "list", "--json"]).json()
    return found


def explain(subject: Union[Result, str, os.PathLike[str], dict[str, Any]], other: Model | None = None) -> str:
    """Tells what was done to a model, or what differs between two.

    Args:
        subject: A result, a report, or the path of a report; with `other`, a model.
        other: A second model.
    """
    if other is not None:
        first = Given(subject.path if isinstance(subject, Result) else subject)  # type: ignore[arg-type]
        second = Given(other)
        return ask(["explain", str(first.path), str(second.path)], place=str(first.path)).output
    if isinstance(subject, (str, os.PathLike)):
        return ask(["explain", os.fspath(subject)], place=os.fspath(subject)).output
    folder = Folder()
    file = folder.path / "report.json"
    file.write_text(json.dumps(subject.report if isinstance(subject, Result) else subject), encoding="utf-8")
    return ask(["explain", str(file)]).output
