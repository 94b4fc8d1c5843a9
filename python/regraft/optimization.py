"""`optimize`: a faster model with the same outputs."""

from __future__ import annotations

import html
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from . import inputs
from .command import Progress, Sizes, ask, bound, options, seconds, several, sized
from .errors import Failed, Interrupted, Unmet
from .model import Folder, Given, Model, load
from .speedup import Speedup

if TYPE_CHECKING:
    import onnx

WEIGHTS = (".data", ".data2")
"""Endings of the files beside a model that hold its weights, if it has such a file."""

RULES_SHOWN = 12
"""Rules listed in a notebook, most gain first."""


class Result:
    """A model that was written, and how it was made.

    Attributes:
        path: The file. Where no output was named, it is removed with this object.
        report: What was done and measured: the report of the command, see its schema in the guide.
        verdict: The same in one line.
    """

    def __init__(self, path: Path, report: dict[str, Any], verdict: str, folder: Folder | None) -> None:
        self.path = path
        self.report = report
        self.verdict = verdict
        self._folder = folder

    @property
    def speedup(self) -> Speedup:
        """How many times faster the model runs than the input, on this machine; where prices of
        another one decided, what is predicted for that one: see `prediction`.
        """
        return Speedup.of(self.report["speedup"])

    @property
    def prediction(self) -> dict[str, Any] | None:
        """What `speedup` rests on if it was predicted from prices recorded on another machine, and
        not measured here: the device, and how much was carried over. None if it was measured.
        """
        found: dict[str, Any] | None = self.report.get("prediction")
        return found

    @cached_property
    def model(self) -> onnx.ModelProto:
        """The model, read when it is first asked for. Needs the package `onnx`."""
        return load(self.path)

    @property
    def certificate(self) -> str | None:
        """Every rewrite as data, for `check` to replay; None if none was written."""
        path = self.report.get("certificate")
        return Path(path).read_text(encoding="utf-8") if path else None

    @property
    def rewrites(self) -> int:
        """How many rewrites were made."""
        return len(self.report["applied"])

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Copies the model, with its certificate and its external data, if it has any, beside it;
        returns the path.

        Raises:
            Failed: It cannot be written, or has external data, whose file cannot be renamed.
        """
        target = Path(path)
        named = [self.path.with_name(self.path.name + ending) for ending in WEIGHTS]
        apart = [file for file in named if file.exists()]
        if apart and target.name != self.path.name:
            hint = f"call it {self.path.name}, in any folder, or name it when it is made: optimize(model, output)"
            raise Failed(f"its weights are in {apart[0].name}, which the model names", place=str(target), hint=hint)
        certificate = self.report.get("certificate")
        try:
            for file in [self.path, *apart]:
                shutil.copyfile(file, target.with_name(file.name) if file != self.path else target)
            if certificate:
                shutil.copyfile(certificate, target.with_suffix(".certificate"))
        except OSError as error:
            raise Failed(f"cannot write it: {error}", place=str(target), hint="check the path") from None
        return target

    def __repr__(self) -> str:
        return f"<regraft.Result {self.verdict}>"

    def _gain(self, ns: float) -> str:
        """A gain by the price list: time, or operators where it counted those."""
        return f"{ns / 1e6:.0f} operators" if self.report["cost"] == "operators" else f"{ns / 1e6:.3f} ms"

    def _repr_html_(self) -> str:
        """A summary for notebooks: the verdict, times and sizes, and the rules that were applied by
        what they gain."""
        gains: dict[str, list[float]] = {}
        for applied in self.report["applied"]:
            gains.setdefault(applied["rule"], []).append(applied["gain_ns"])
        ordered = sorted(gains.items(), key=lambda rule: -sum(rule[1]))
        rows = [
            f"<tr><td>{html.escape(rule)}</td><td style='text-align:right'>{len(each)}</td>"
            f"<td style='text-align:right'>{self._gain(sum(each))}</td></tr>"
            for rule, each in ordered[:RULES_SHOWN]
        ]
        more = len(ordered) - RULES_SHOWN
        rest = f"<p>and {more} more</p>" if more > 0 else ""
        table = f"<table><tr><th>rule</th><th>times</th><th>gain</th></tr>{''.join(rows)}</table>{rest}" if rows else ""
        return f"<p><b>regraft</b> {html.escape(self.verdict)}</p>{table}"


def optimize(
    model: Model,
    output: str | os.PathLike[str] | None = None,
    *,
    shapes: Mapping[str, Sizes] | None = None,
    bind: Mapping[str, Union[int, Iterable[int]]] | None = None,
    freeze: Mapping[str, Union[int, Sizes]] | None = None,
    data: inputs.Data = None,
    budget: float | str | None = None,
    target: str | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    search: str | None = None,
    steps: int | None = None,
    cost: str | None = None,
    seed: int = 0,
    rules: Iterable[str | os.PathLike[str]] = (),
    deny: Iterable[str] = (),
    allow: Iterable[str] = (),
    require: str | None = None,
    min_speedup: float | None = None,
    max_load: float | str | None = None,
    max_memory: int | str | None = None,
    allow_growth: int | str | None = None,
    opset: int | None = None,
    cost_store: str | os.PathLike[str] | None = None,
    frozen: bool = False,
    untimed: bool = False,
    certificate: bool = True,
    overwrite: bool = False,
    runtime_library: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> Result:
    """Writes a faster model with the same outputs.

    Names, order, types and declared sizes of inputs and outputs stay, unless `freeze` asks for
    others. If nothing is faster beyond noise, the model is written unchanged, and the verdict says
    so.

    Args: model: The path of a model, its bytes, or an `onnx.ModelProto`. output: Where to write the
    result, over an earlier one; by default a temporary file that lives as long as the result.
    shapes: Sizes of inputs to measure at, for those that leave some open: `{"x": [1, 3, 224,
    224]}`. The result is right for all sizes. bind: Values of symbolic sizes to measure at: `{"N":
    8}`, or several: `{"N": [1, 8]}`. freeze: Sizes to write the model for, and no others. data:
    Real inputs to check and measure with: arrays or files of each input, or a folder. budget: Time
    that the whole call may take, in seconds, or as text: `"5m"`; by default a minute, for each
    runtime with `target="fastest"`. target: The runtime that the model will run on:
    `"onnxruntime"`, `"openvino"`, or `"fastest"`, which asks each of those that are installed;
    `.report["runtime"]` says which one it was. By default ONNX Runtime. threads: Threads of an
    operator where the model is deployed; by default what the runtime itself uses. memory: Bytes of
    memory that the call may take. search: How to search; `regraft optimize --help` lists the ways.
    steps: Longest sequence of rewrites. cost: Where prices come from: `"measured"`, `"roofline"`,
    or `"profile:FILE"`, which `record` wrote on another machine: they decide, and nothing is timed.
    seed: Seed of everything random. rules: Files with more rules. deny: Rules, or numeric classes
    of rules such as `"fast-bilinear"`, that are not used. allow: Trust levels of rules that are
    used beside the proved ones. require: Least trust: with `"proved"`, every rewrite is proved
    where it is made, too. min_speedup: Speed-up below whose lower end the call raises `Unmet`.
    max_load: Most that a new process may take to load the result: seconds, or as text `"1.5x"` what
    the input takes. max_memory: Most memory of a process that loads and runs the result: bytes, or
    `"1.2x"`. allow_growth: Bytes that the file may grow by; by default 5 % or 4 MiB, whichever is
    more. opset: Version of the standard opset to write the model at; by default its own.
    cost_store: File of measurements. frozen: Measure nothing, and decide by what the store holds:
    two such calls give the same bytes. untimed: Time nothing: a model with as few operators as take
    no more arithmetic is written, and checked. certificate: Whether to write a certificate beside
    the result. overwrite: Whether `output` may be the model's own file. runtime_library: The
    runtime's library; by default that of its package. progress: True, or a function of the phase
    and of what begins in it.

    Returns:
        The result: `.model`, `.path`, `.speedup`, `.report`, `.certificate`.

    Raises: Failed: The model cannot be read, run or written, or an argument is wrong. Nothing was
    written. Unmet: A promise was not met; `.result` holds what was written. Interrupted: Ctrl-C;
    `.result` holds the best valid model found so far.
    """
    given, folder, holds = Given(model), Folder(), inputs.Held(data)
    path = Path(output) if output is not None else folder.path / "optimized.onnx"
    arguments = ["optimize", str(given.path), f"--output={path}", "--json"]
    arguments += options(
        shape=sized(shapes),
        bind=bound(bind),
        freeze=[f"{name}={one}" if isinstance(one, int) else sized({name: one})[0] for name, one in (freeze or {}).items()],
        data=holds.arguments,
        budget=seconds(budget),
        target=target,
        threads=threads,
        memory=memory,
        search=search,
        steps=steps,
        cost=cost,
        seed=seed,
        rules=several(rules),
        deny=several(deny),
        allow=several(allow),
        require=require,
        min_speedup=min_speedup,
        max_load=seconds(max_load),
        max_memory=max_memory,
        allow_growth=allow_growth,
        opset=opset,
        cost_store=cost_store,
        frozen=frozen,
        untimed=untimed,
        no_certificate=not certificate,
        force_overwrite=overwrite,
        runtime_library=runtime_library,
    )
    answer = ask(arguments, progress=progress, place=str(given.path))
    report = answer.json() if answer.output else None
    if report is None:
        raise Interrupted("interrupted before anything was found", place=str(given.path))
    result = Result(path, report, verdict(report, folder), folder if output is None else None)
    if answer.code == Interrupted.exit_code:
        raise Interrupted("interrupted: the best valid model found so far was written", place=str(given.path), result=result)
    if answer.code == Unmet.exit_code:
        raise Unmet(unmet(result, min_speedup, max_load, max_memory), place=str(given.path), result=result)
    return result


def unmet(result: Result, min_speedup: float | None, max_load: object, max_memory: object) -> str:
    """Which promise was not met."""
    if min_speedup is not None and result.speedup.low < min_speedup:
        return f"below min_speedup={min_speedup}: {result.speedup}"
    limits = [name for name, limit in (("max_load", max_load), ("max_memory", max_memory)) if limit is not None]
    if limits and result.report.get("startup") is None:
        return f"what a process takes that loads the result is not known, so {' and '.join(limits)} cannot be shown to hold"
    return f"{' or '.join(limits)} is exceeded" if limits else "the runtime refuses the result as it refuses the model"


def verdict(report: dict[str, Any], folder: Folder) -> str:
    """A report in one line."""
    file = folder.path / "report.json"
    file.write_text(json.dumps(report), encoding="utf-8")
    return ask(["explain", "--quiet", str(file)]).output.strip().removeprefix("verdict: ")
