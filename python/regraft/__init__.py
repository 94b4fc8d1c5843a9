"""Makes ONNX models faster without changing what they compute.

    >>> import regraft
    >>> result = regraft.optimize("model.onnx", "fast.onnx")
    >>> print(result.verdict)

`optimize` searches the models that are equal to the input by proved rewrite rules, times the best
against it under ONNX Runtime with all of its own optimizations on, checks the winner, and writes
it. If nothing is faster beyond noise, the input is written unchanged.
"""

import os

# ONNX Runtime reads it once, when it starts, and sends what it collects until then.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

from ._regraft import __version__
from .timing import Bench, Timed, bench
from .comparison import Check, check
from .errors import Error, Failed, Interrupted, Unmet
from .optimization import Result, optimize
from .recording import Recording, record
from .farming import Row, farm
from .library import Rule, explain, rules
from .dropins import simplify, slim
from .speedup import Speedup

__all__ = [
    "Bench",
    "Check",
    "Error",
    "Failed",
    "Interrupted",
    "Recording",
    "Result",
    "Row",
    "Rule",
    "Speedup",
    "Timed",
    "Unmet",
    "__version__",
    "bench",
    "check",
    "explain",
    "farm",
    "optimize",
    "record",
    "rules",
    "simplify",
    "slim",
]
