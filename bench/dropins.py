#!/usr/bin/env python3
"""Drop-ins beside what they stand for: which models each accepts, and whether what comes out
computes the same.

    dropins.py FOLDER... [--only PART] [--limit N] [--json FILE]

Every FOLDER holds NAME.onnx (`regraft-gauntlet fuzz --models 300 --export FOLDER`), or
NAME/model.onnx as the node tests of ONNX do, with their inputs (`scripts/node_tests.py export
FOLDER`). Each call has a process of its own and 60 s. Needs the packages `regraft`, `onnxsim` and
`onnxslim` (`make wheel`, `scripts/setup.sh foreign`). Exit code 1 if a drop-in refuses or breaks a
model that the other one does not.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy
import onnx
import onnx.numpy_helper
import onnxruntime

SECONDS = 60
PAIRS = {"simplify": "onnxsim", "slim": "onnxslim"}
"""Functions of `regraft`, and the packages that they stand for."""
TOLERANCE = 1e-3


def functions():
    """By name: what simplifies a model."""
    import onnxsim
    import onnxslim
    import regraft

    return {
        "simplify": lambda model: regraft.simplify(model)[0],
        "onnxsim": lambda model: onnxsim.simplify(model)[0],
        "slim": regraft.slim,
        "onnxslim": onnxslim.slim,
    }


def found(folders, only, limit):
    """Names and paths of models."""
    paths = [path for folder in folders for path in sorted([*folder.glob("*.onnx"), *folder.glob("*/model.onnx")])]
    named = [(path.parent.name if path.name == "model.onnx" else path.stem, path) for path in paths]
    return [(name, path) for name, path in named if only in name][:limit]


def apart(work):
    """What a function returns, in a process of its own: bytes, or None with the reason."""
    with tempfile.TemporaryDirectory() as folder:
        result, refusal = Path(folder, "result"), Path(folder, "refusal")
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            try:
                warnings.simplefilter("ignore")
                result.write_bytes(work())
            except BaseException as error:
                refusal.write_text(f"{type(error).__name__}: {error}"[:300])
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if result.exists():
            return result.read_bytes(), None
        return None, refusal.read_text() if refusal.exists() else f"ended with status {status}"


def session(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def feeds(opened):
    """Made-up inputs, or None if an input is no tensor of numbers."""
    random, values = numpy.random.default_rng(0), {}
    for one in opened.get_inputs():
        kind = {"float": numpy.float32, "double": numpy.float64, "float16": numpy.float16, "bool": numpy.bool_, "int64": numpy.int64, "int32": numpy.int32}
        dtype = kind.get(one.type.removeprefix("tensor(").removesuffix(")"))
        if dtype is None:
            return None
        shape = [size if isinstance(size, int) else 2 for size in one.shape]
        value = random.standard_normal(shape)
        values[one.name] = (value > 0 if dtype is numpy.bool_ else numpy.abs(value) if numpy.issubdtype(dtype, numpy.integer) else value).astype(dtype)
    return values


def given(path, opened):
    """The inputs that lie beside a model, as the node tests have them; made-up ones where there are
    none."""
    files = sorted(path.parent.glob("test_data_set_0/input_*.pb"), key=lambda file: int(file.stem.split("_")[1]))
    if path.name != "model.onnx" or not files:
        return feeds(opened)
    inputs = opened.get_inputs()
    if not all(one.type.startswith("tensor(") for one in inputs):
        return None
    tensors = [onnx.TensorProto.FromString(file.read_bytes()) for file in files]
    named = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in tensors}
    by_place = [onnx.numpy_helper.to_array(tensor) for tensor in tensors]
    return {one.name: named[one.name] if one.name in named else by_place[at] for at, one in enumerate(inputs)}


def computed(model, path):
    """Outputs of a model, as bytes that numpy reads; raises if it does not run."""
    import io

    opened = session(model)
    values = given(path, opened)
    if values is None:
        raise ValueError("an input is no tensor of numbers")
    held = io.BytesIO()
    numpy.savez(held, **{f"{at:03}": value for at, value in enumerate(opened.run(None, values))})
    return held.getvalue()


def same(a, b):
    """Whether two lists of outputs agree: equal, or close relative to the largest magnitude."""
    import io

    first, second = (numpy.load(io.BytesIO(held), allow_pickle=True) for held in (a, b))
    if first.files != second.files:
        return False
    for name in first.files:
        x, y = first[name], second[name]
        if x.shape != y.shape or x.dtype != y.dtype:
            return False
        if x.dtype.kind in "fc":
            x, y = x.astype(numpy.float64), y.astype(numpy.float64)
            finite = numpy.isfinite(x) & numpy.isfinite(y)
            scale = max(1.0, float(numpy.abs(x[finite]).max(initial=0.0)))
            if (numpy.isfinite(x) != numpy.isfinite(y)).any() or (numpy.abs(x - y)[finite] > TOLERANCE * scale).any():
                return False
        elif not (x == y).all():
            return False
    return True


def verdict(function, path, original):
    """`same`, `unknown` (the original does not run), `wrong`, `broken` (the result does not run),
    or `refused`; and why."""
    model = onnx.load(path)
    made, why = apart(lambda: function(model).SerializeToString())
    if made is None:
        return "refused", why
    if original is None:
        return "unknown", None
    after, why = apart(lambda: computed(made, path))
    if after is None:
        return "broken", why
    return ("same", None) if same(original, after) else ("wrong", None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    known, rows = functions(), []
    for name, path in found(options.folders, options.only, options.limit):
        original, _ = apart(lambda: computed(path.read_bytes(), path))
        rows.append({"model": name} | {tool: verdict(function, path, original) for tool, function in known.items()})
    words = ("same", "unknown", "wrong", "broken", "refused")
    print(f"{'':10} {'models':>7}", *(f"{word:>8}" for word in words))
    for tool in known:
        counts = Counter(row[tool][0] for row in rows)
        print(f"{tool:10} {len(rows):>7}", *(f"{counts[word]:>8}" for word in words))
    good, faults = ("same", "unknown"), []
    for ours, theirs in PAIRS.items():
        for row in rows:
            if row[ours][0] not in good and row[theirs][0] in good:
                faults.append(f"{ours}: {row['model']}: {row[ours][0]} ({row[ours][1]}), where {theirs} works")
    print("\n".join(faults))
    if options.json:
        counts = {tool: Counter(row[tool][0] for row in rows) for tool in known}
        failed = [row for row in rows if any(row[tool][0] not in good for tool in known)]
        found_out = {"schema": 1, "models": len(rows), "counts": counts, "failed": failed, "faults": faults}
        options.json.write_text(json.dumps(found_out, indent=1) + "\n")
    print(f"verdict: {len(faults)} models that a drop-in fails on where the other works, of {len(rows)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
