"""Why a call did not do what it was asked to: one class for each exit code of the command."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """A call did not do what it was asked to.

    Attributes:
        cause: What is wrong, in one line.
        place: The file that it is about, if it is about one.
        hint: How to mend it, if that is known.
        result: What there is nevertheless: for `Unmet` and `Interrupted`, what the call would have
            returned.
    """

    exit_code = 2

    def __init__(self, cause: str, *, place: str | None = None, hint: str | None = None, result: Any = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.place = place
        self.hint = hint
        self.result = result

    def __str__(self) -> str:
        return self.cause if self.hint is None else f"{self.cause} (hint: {self.hint})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.cause, self.place, self.hint, self.result)


class Unmet(Error):
    """Done, but a promise was not met: `min_speedup`, `max_load`, `max_memory` or `require`."""

    exit_code = 1


class Failed(Error):
    """The input, an argument, the file system, or a defect of Regraft. Nothing was written."""

    exit_code = 2


class Interrupted(Error, KeyboardInterrupt):
    """Ctrl-C. `optimize` has written the best valid model found so far: see `result`."""

    exit_code = 130


def _restored(kind: type[Error], cause: str, place: str | None, hint: str | None, result: Any) -> Error:
    return kind(cause, place=place, hint=hint, result=result)
