"""How many times faster one model is than another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Speedup(float):
    """A ratio of times: a number, with the interval that it lies in with 95 % confidence.

    Attributes:
        low: Lower end of the interval.
        high: Upper end.
        pairs: How many pairs of runs it rests on; 0 if nothing was timed.
    """

    low: float
    high: float
    pairs: int

    def __new__(cls, median: float, low: float, high: float, pairs: int) -> Speedup:
        """A ratio of 2.0: twice as fast."""
        self = super().__new__(cls, median)
        self.low, self.high, self.pairs = low, high, pairs
        return self

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> Speedup:
        """From a report."""
        return cls(report["median"], report["low"], report["high"], report["pairs"])

    def __getnewargs__(self) -> tuple[float, float, float, int]:  # type: ignore[override]
        return float(self), self.low, self.high, self.pairs

    def __repr__(self) -> str:
        return f"{float(self):.3f} [{self.low:.3f}, {self.high:.3f}]"

    __str__ = __repr__
