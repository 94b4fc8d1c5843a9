"""What `regraft synthesize` emits, computed without it: formulas and expressions of TVM agree, and
so do modules of PyTorch where it is installed."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SPEC = """
input = ["N", "C_in", "H", "H"]
output = ["N", "C_out", "H", "H"]
batch = ["N"]
unordered = ["C_in", "C_out"]
dense = "sum r0: C_in, r1: k, r2: k; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r0, r1, r2]"
[variables]
C_in = 3
C_out = 4
[coefficients]
k = [3, 2]
s = [2, 2]
g = [4, 2]
[[layers]]
N = 1
C_in = 16
C_out = 32
H = 8
"""
SIZES = {"N": 1, "C_in": 16, "C_out": 32, "H": 8, "k": 3, "s": 2, "g": 4}


class Index:
    """A coordinate at every position of all loops: values, how many there are, and where windows
    leave their axes."""

    def __init__(self, values: Any, size: int, outside: Any = False) -> None:
        self.values, self.size, self.outside = values, size, outside


FUNCTIONS: dict[str, Callable[..., Index]] = {
    "split": lambda a, b: Index(a.values * b.size + b.values, a.size * b.size, a.outside | b.outside),
    "quotient": lambda a, block: Index(a.values // block, a.size // block, a.outside),
    "remainder": lambda a, block: Index(a.values % block, block, a.outside),
    "shift": lambda a: Index((a.values + 1) % a.size, a.size, a.outside),
    "stride": lambda a, stride: Index(a.values * stride, a.size * stride, a.outside),
}


def unfold(a: Index, b: Index) -> Index:
    """Windows: outside of the axis there is nothing."""
    values = a.values + b.values - b.size // 2
    outside = a.outside | b.outside | (values < 0) | (values >= a.size)
    return Index(np.clip(values, 0, a.size - 1), a.size, outside)


def numbers(text: str) -> str:
    """Sizes divide evenly."""
    return re.sub(r"(?<![/])/(?![/])", "//", text).replace("^", "**")


def by_formula(formula: str, x: Any, make: Callable[[list[int]], Any]) -> tuple[Any, list[Any]]:
    """What a formula computes for an input without its batch, by all its loops, and its weights."""
    sums, _, body = formula.partition(";") if formula.startswith("sum") else ("", "", formula)
    loops = {f"i{axis}": size for axis, size in enumerate([SIZES["C_out"], SIZES["H"], SIZES["H"]])}
    for entry in filter(None, sums.removeprefix("sum").split(", ")):
        name, size = entry.split(":")
        loops[name.strip()] = eval(numbers(size), {}, dict(SIZES))
    grid = np.indices(list(loops.values()), sparse=True)
    indices: dict[str, Any] = {name: Index(values, size) for (name, size), values in zip(loops.items(), grid)}
    known = {**SIZES, **FUNCTIONS, **indices, "unfold": unfold}
    reads = [eval(f"[{numbers(read)}]", {}, known) for read in re.findall(r"[xw]\[(.*?)\](?: \* |$)", body.strip())]
    product: Any = np.where(np.logical_or.reduce([np.broadcast_to(i.outside, list(loops.values())) for r in reads for i in r]), 0.0, 1.0)
    product = product * x[tuple(i.values for i in reads[0])]
    weights = []
    for read in reads[1:]:
        weights.append(make([i.size for i in read]))
        product = product * weights[-1][tuple(i.values for i in read)]
    return product.sum(axis=tuple(range(3, len(loops)))), weights


class Tensor:
    """A stand-in for TVM's: values, read at clipped positions, since both branches of a condition
    are computed here."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __getitem__(self, at: Any) -> Any:
        return self.values[tuple(np.clip(i, 0, n - 1) for i, n in zip(at, self.values.shape))]


def stand_in(tensors: list[Any]) -> types.ModuleType:
    """The few functions of TVM's tensor expressions that are emitted, on numpy; placeholders take
    these values, in order."""
    module = types.ModuleType("tvm")
    waiting = list(tensors)
    axes: list[Any] = []

    def placeholder(shape: tuple[int, ...], name: str) -> Tensor:
        values = waiting.pop(0)
        assert values.shape == tuple(shape), (name, values.shape, shape)
        return Tensor(values)

    def reduce_axis(bounds: tuple[int, int], name: str) -> Any:
        # Sums come after all outputs: at most 8 axes in all.
        axis = np.arange(bounds[1]).reshape([bounds[1]] + [1] * (7 - len(axes)))
        axes.append(axis)
        return axis

    def compute(shape: tuple[int, ...], function: Callable[..., Any], name: str) -> Tensor:
        summed = len(axes)
        grid = np.indices(shape, sparse=True)
        values = function(*(i.reshape(i.shape + (1,) * 8) for i in grid))
        del axes[:summed]
        return Tensor(np.broadcast_to(values, shape + values.shape[len(shape) :]).reshape(shape + (-1,))[..., 0])

    def total(values: Any, axis: list[Any]) -> Any:
        shape = np.broadcast_shapes(*(a.shape for a in axis))
        full = np.broadcast_to(values, np.broadcast_shapes(values.shape, shape))
        return full.sum(axis=tuple(range(full.ndim - 8, full.ndim)), keepdims=True)

    def every(*conditions: Any) -> Any:
        return np.logical_and.reduce(np.broadcast_arrays(*conditions))

    te = types.SimpleNamespace(placeholder=placeholder, reduce_axis=reduce_axis, compute=compute, sum=total)
    tir = types.SimpleNamespace(all=every, if_then_else=lambda condition, a, b: np.where(condition, a, b))
    setattr(module, "te", te)
    setattr(module, "tir", tir)
    return module


FORMULAS = [
    "sum r0: C_in; x[r0, i1, i2] * w[i0, r0]",
    "sum r0: C_in/s; x[remainder(shift(split(i0, r0)), C_in), i1, shift(i2)] "
    "* w[quotient(shift(split(i0, r0)), C_in), remainder(shift(split(i0, r0)), C_in)]",
    "sum r0: C_in, r1: k, r2: k, r3: C_out/s; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r3, r2] * w[r3, r0, r1]",
    "sum r0: C_in, r1: k, r2: k, r3: C_in/g; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r3, r1, r2] * w[r3, r0]",
]


class Emitted(unittest.TestCase):
    """Operators that were judged, whose files are computed in other ways."""

    folder: Path

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        (cls.folder / "layer.toml").write_text(SPEC)
        (cls.folder / "operators.txt").write_text("\n".join(FORMULAS))
        cls.synthesize("--operators", "operators.txt", "--threads", "1", "--report", "judged.json")
        # All are emitted, whatever this machine finds faster today: the smaller, the slower.
        judged = json.loads((cls.folder / "judged.json").read_text())
        judged["timed"].sort(key=lambda operator: operator["parameters"])
        for place, operator in enumerate(judged["timed"]):
            operator["faster"] = 2.0 + place
            operator["layers"] = [2.0 + place]
        (cls.folder / "judged.json").write_text(json.dumps(judged))
        cls.synthesize("--join", "judged.json", "--emit", "found")

    @classmethod
    def synthesize(cls, *options: str) -> None:
        command = [str(Path(sys.executable).with_name("regraft")), "synthesize", "--spec", "layer.toml", *options]
        ended = subprocess.run(command, cwd=cls.folder, env={**os.environ, "REGRAFT_TRAINER": ""}, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stdout + ended.stderr

    def operators(self) -> list[tuple[str, Any, Any, list[Any]]]:
        """For each: the name of its files, an input with its batch, the output by its formula, and
        weights."""
        random = np.random.default_rng(1)
        found = []
        for path in sorted((self.folder / "found").glob("operator-??.txt")):
            x = random.standard_normal([1, SIZES["C_in"], SIZES["H"], SIZES["H"]])
            y, weights = by_formula(path.read_text().strip(), x[0], random.standard_normal)
            found.append((path.stem, x, y, weights))
        self.assertEqual(len(found), len(FORMULAS))
        return found

    def test_expressions_of_tvm_compute_the_formula(self) -> None:
        for name, x, y, weights in self.operators():
            module = stand_in([x, *weights])
            before = sys.modules.get("tvm")
            sys.modules["tvm"] = module
            try:
                scope: dict[str, Any] = {}
                exec((self.folder / "found" / f"{name}-tvm.py").read_text(), scope)
                result = scope["operator"]()[-1].values
            finally:
                sys.modules.pop("tvm")
                if before is not None:
                    sys.modules["tvm"] = before
            np.testing.assert_allclose(result[0], y, atol=1e-9, err_msg=name)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
    def test_modules_of_pytorch_compute_the_formula(self) -> None:
        import torch

        for name, x, y, weights in self.operators():
            scope: dict[str, Any] = {}
            exec((self.folder / "found" / f"{name}.py").read_text(), scope)
            self.assertEqual(scope["FORMULA"], (self.folder / "found" / f"{name}.txt").read_text().strip())
            ((layer, kind),) = scope["LAYERS"].items()
            self.assertEqual(layer, (x.shape[1:], y.shape))
            module = kind().double()
            with torch.no_grad():
                for parameter, weight in zip(module.parameters(), weights):
                    parameter.copy_(torch.tensor(weight))
                result = module(torch.tensor(np.concatenate([x, x])))
            np.testing.assert_allclose(result[1].numpy(), y, atol=1e-9, err_msg=name)
        from regraft.training import operators

        self.assertEqual([one.name for one in operators.load(self.folder / "found")], [name for name, *_ in self.operators()])


if __name__ == "__main__":
    unittest.main()
