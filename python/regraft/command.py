"""Calls of the command, in this process: keyword arguments are its options."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Union

from ._regraft import call
from .errors import Failed

Progress = Union[bool, Callable[[str, str], object], None]
"""Who is told of progress: a function of the phase and of what begins in it; True for a line on
standard error (by tqdm, where that is installed); None or False for nobody."""

Sizes = Union[Sequence[Union[int, str]], str]
"""Sizes of a tensor, in order: numbers, and names of symbolic sizes; or the same as text."""

INTERPRETER = [sys.executable, "-m", "regraft"] if sys.executable else []
"""What starts this package's command in a process of its own."""

RUNTIMES = {
    "onnxruntime": ("capi", ("REGRAFT_ONNXRUNTIME", "ORT_DYLIB_PATH")),
    "openvino": ("libs", ("REGRAFT_OPENVINO",)),
}
"""For the package of each runtime, the folder of its library, and environment variables that name
another one."""


class RegraftWarning(UserWarning):
    """Something odd that is no error."""


def find_runtimes() -> None:
    """Has the libraries of the installed packages loaded, unless the environment names others."""
    for package, (folder, variables) in RUNTIMES.items():
        if any(os.environ.get(name) for name in variables):
            continue
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            os.environ[variables[0]] = str(Path(spec.submodule_search_locations[0]) / folder)


def option(name: str, value: object) -> list[str]:
    """An option of the command: nothing for None and False, a bare flag for True, one option for
    each element of a sequence.
    """
    flag = "--" + name.replace("_", "-")
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [word for one in value for word in option(name, one)]
    return [f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}"]


def options(**named: object) -> list[str]:
    """Options of the command, by their names with underscores."""
    return [word for name, value in named.items() for word in option(name, value)]


def several(values: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """One value or several, as a list."""
    return [os.fspath(values)] if isinstance(values, (str, os.PathLike)) else [os.fspath(value) for value in values]


def sized(sizes: Mapping[str, Sizes] | None) -> list[str]:
    """Sizes of inputs, as the command reads them: `x:1,3,224,224`."""
    return [f"{name}:{given if isinstance(given, str) else ','.join(map(str, given))}" for name, given in (sizes or {}).items()]


def bound(values: Mapping[str, int | Iterable[int]] | None) -> list[str]:
    """Values of symbolic sizes, as the command reads them: `N=1,8`."""
    listed = {symbol: [given] if isinstance(given, int) else given for symbol, given in (values or {}).items()}
    return [f"{symbol}={','.join(map(str, given))}" for symbol, given in listed.items()]


def seconds(time: float | str | None) -> str | None:
    """A time, as the command reads it: seconds, unless it is text such as "5m"."""
    return None if time is None else time if isinstance(time, str) else f"{round(1000 * time)}ms"


class Answer:
    """What a command did: its exit code, and what it printed."""

    def __init__(self, code: int, output: str) -> None:
        self.code = code
        self.output = output

    def json(self) -> Any:
        """The output, as JSON."""
        return json.loads(self.output)


def ask(arguments: Sequence[str], *, progress: Progress = None, place: str | None = None) -> Answer:
    """Runs a command.

    Raises:
        Failed: with the cause and the hint of the command, and `place`.
    """
    find_runtimes()
    shown = Shown() if progress is True else None
    receiver = shown.step if shown else progress if callable(progress) else None
    try:
        code, output, notes, failure = call(list(arguments), INTERPRETER, receiver)
    finally:
        if shown:
            shown.close()
    for note in notes:
        warnings.warn(note, RegraftWarning, stacklevel=3)
    if failure is not None:
        cause, hint = failure
        raise Failed(cause, place=place, hint=hint)
    return Answer(code, output)


class Shown:
    """Progress on standard error: by tqdm, where that is installed."""

    def __init__(self) -> None:
        self.bar: Any = None
        if importlib.util.find_spec("tqdm") is not None:
            from tqdm.auto import tqdm

            self.bar = tqdm(total=None, bar_format="{elapsed} {desc}", leave=False)

    def step(self, phase: str, detail: str) -> None:
        """A step begins."""
        if self.bar is not None:
            self.bar.set_description_str(f"{phase}: {detail}")
        else:
            print(f"{phase:>8}  {detail}", file=sys.stderr)

    def close(self) -> None:
        """Leaves a clean line."""
        if self.bar is not None:
            self.bar.close()
