"""`check`: whether two models are the same."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from . import inputs
from .command import Progress, Sizes, ask, bound, options, sized
from .errors import Interrupted, Unmet
from .model import Given, Model


class Check:
    """Whether two models are the same, and how that is known. True if they are.

    Attributes:
        same: Whether they are.
        word: How that is known: `proved`, `bounded`, `tested`, ..
        differences: What differs, most telling first.
        report: Everything that was found: the report of the command.
    """

    def __init__(self, report: dict[str, Any]) -> None:
        self.report = report
        self.same: bool = report["same"]
        self.word: str = report["word"]
        self.differences: list[str] = report["differences"]

    def __bool__(self) -> bool:
        return self.same

    def __repr__(self) -> str:
        return f"<regraft.Check {'same' if self.same else 'different'}: {self.word}>"


def check(
    a: Model,
    b: Model,
    *,
    shapes: Mapping[str, Sizes] | None = None,
    bind: Mapping[str, int] | None = None,
    data: inputs.Data = None,
    tolerance: float | None = None,
    reference: bool = True,
    target: str | None = None,
    threads: int | None = None,
    seed: int = 0,
    certificate: str | os.PathLike[str] | bool | None = None,
    effort: int | None = None,
    require: str | None = None,
    runtime_library: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> Check:
    """Tells whether two models are the same: by a certificate, by a proof, or by comparing their
    outputs.

    Args: a: The model that is right: a path, bytes, or an `onnx.ModelProto`. b: The model in
    question. shapes: Sizes of inputs to compare at. bind: Values of symbolic sizes to compare at.
    data: Real inputs to compare on, too. tolerance: Difference that is tolerated, relative to the
    largest magnitude of an output. reference: Whether to run both on the reference executor, too.
    target: The runtime that they run on: `"onnxruntime"` or `"openvino"`; by default the former.
    threads: Threads of an operator. seed: Seed of made-up inputs. certificate: The certificate of
    `b`; by default the file beside it, if there is one; False for none. effort: How hard to look
    for a proof. require: Least that must be known: `"tested"`, `"bounded"`, `"proved"`, ..
    runtime_library: The runtime's library; by default that of its package. progress: True, or a
    function of the phase and of what begins in it.

    Raises:
        Failed: A model cannot be read or run.
        Unmet: They are the same as far as is known, but less is known than `require` asks for.
        Interrupted: Ctrl-C; `.result` holds what was found so far.
    """
    models = Given(a), Given(b)
    holds = inputs.Held(data)
    arguments = ["check", *(str(model.path) for model in models), "--json"] + options(
        shape=sized(shapes),
        bind=bound(bind),
        data=holds.arguments,
        tolerance=tolerance,
        no_reference=not reference,
        target=target,
        threads=threads,
        seed=seed,
        certificate=None if isinstance(certificate, bool) else certificate,
        no_certificate=certificate is False,
        effort=effort,
        require=require,
        runtime_library=runtime_library,
    )
    place = str(models[1].path)
    answer = ask(arguments, progress=progress, place=place)
    if not answer.output:
        raise Interrupted("interrupted before anything was compared", place=place)
    found = Check(answer.json())
    if answer.code == Interrupted.exit_code:
        raise Interrupted("interrupted", place=place, result=found)
    if answer.code == Unmet.exit_code and found.same:
        raise Unmet(f"{found.word} is less than {require}", place=place, result=found)
    return found
