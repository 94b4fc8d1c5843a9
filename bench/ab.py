#!/usr/bin/env python3
"""Times two models against each other under ONNX Runtime, every optimization of its own switched on.

    ab.py BASE.onnx OTHER.onnx [--shape input:1,3,224,224]... [--threads N] [--seconds S] [--sittings N] [--seed N] [--json]

An outside judge of what the program claims: it shares no code with it. Method: several sittings, each with fresh sessions of both models;
in a sitting the models take turns, in the order A B B A B A A B ..., so that drift hits both alike. One thread: processor time of the
calling thread, which other processes do not inflate; more threads: wall time. The result is the median over pairs of neighbouring runs of
base/other, with a 95 % bootstrap interval. Outputs are compared first: the largest difference relative to the largest magnitude of that
output, beside the noise floor (the base model with the runtime's optimizer against without).
"""

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import onnxruntime as ort

WARM_UP = 3
"""Runs of each model before those that count."""
FEWEST_PAIRS = 12
"""Pairs of a sitting, however long they take."""
RESAMPLES = 2000
"""Draws of the bootstrap."""

NUMPY_TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}


@dataclass
class Verdict:
    """What came out of comparing `other` with `base`. Times in milliseconds; a speed-up above 1 says that `other` is faster."""

    base_ms: float
    other_ms: float
    speedup: float
    low: float
    high: float
    pairs: int
    threads: int
    difference: float
    floor: float
    per_sitting: list[float] = field(default_factory=list)


def open_session(path, threads=1, optimize=True):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimize else level.ORT_DISABLE_ALL
    # A waiting worker that spins takes processor time from the next operator.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def make_feeds(session, shapes, seed=0):
    """Seeded values for all inputs; sizes that neither the model nor `shapes` gives are 1."""
    random = np.random.default_rng(seed)
    feeds = {}
    for value in session.get_inputs():
        shape = shapes.get(value.name)
        if shape is None:
            shape = [d if isinstance(d, int) and d > 0 else 1 for d in value.shape]
        kind = np.dtype(NUMPY_TYPES[value.type])
        if kind.kind == "f":
            feeds[value.name] = random.standard_normal(shape).astype(kind)
        else:
            # Small, because integers are mostly indices.
            feeds[value.name] = random.integers(0, 2, shape).astype(kind)
    return feeds


def difference(wanted, found):
    """The largest difference relative to the largest magnitude of its output; infinite where no difference is allowed."""
    worst = 0.0
    for want, have in zip(wanted, found, strict=True):
        if want.shape != have.shape or want.dtype != have.dtype:
            return float("inf")
        if want.dtype.kind != "f":
            if not np.array_equal(want, have):
                return float("inf")
            continue
        want, have = want.astype(np.float64), have.astype(np.float64)
        if not np.array_equal(np.isfinite(want), np.isfinite(have)):
            return float("inf")
        finite = np.isfinite(want)
        if finite.any():
            scale = np.abs(want[finite]).max()
            gap = np.abs(want[finite] - have[finite]).max()
            worst = max(worst, float(gap / scale) if scale > 0 else float(gap))
    return worst


def thue_morse(index):
    """Which of two models goes first in turn `index`: cancels linear and slower drifts."""
    return index.bit_count() % 2


def sitting(base, other, feeds, threads, seconds):
    """Paired times in seconds of fresh sessions of both models."""
    sessions = (open_session(base, threads), open_session(other, threads))
    clock = time.thread_time if threads == 1 else time.perf_counter
    for session in sessions:
        for _ in range(WARM_UP):
            session.run(None, feeds)
    pairs = []
    until = time.perf_counter() + seconds
    while len(pairs) < FEWEST_PAIRS or time.perf_counter() < until:
        taken = [0.0, 0.0]
        first = thue_morse(len(pairs))
        for which in (first, 1 - first):
            start = clock()
            sessions[which].run(None, feeds)
            taken[which] = clock() - start
        pairs.append(taken)
    return np.array(pairs)


def interval(sittings, seed):
    """95 % bootstrap interval of the median, drawn over sittings and over the ratios of each: sessions differ more than runs do."""
    random = np.random.default_rng(seed)
    medians = np.empty(RESAMPLES)
    for draw in range(RESAMPLES):
        chosen = random.integers(0, len(sittings), len(sittings))
        medians[draw] = np.median(np.concatenate([random.choice(sittings[at], len(sittings[at])) for at in chosen]))
    return np.percentile(medians, [2.5, 97.5])


def compare(base, other, shapes=None, threads=1, seconds=6.0, sittings=5, seed=0):
    """Compares outputs and times; `seconds` is shared by the sittings."""
    shapes = shapes or {}
    session = open_session(base, threads)
    feeds = make_feeds(session, shapes, seed)
    wanted = session.run(None, feeds)
    floor = difference(open_session(base, threads, optimize=False).run(None, feeds), wanted)
    gap = difference(wanted, open_session(other, threads).run(None, feeds))
    del session
    taken = [sitting(base, other, feeds, threads, seconds / sittings) for _ in range(sittings)]
    pairs = np.concatenate(taken)
    ratios = [t[:, 0] / t[:, 1] for t in taken]
    low, high = interval(ratios, seed)
    base_ms, other_ms = np.median(pairs, axis=0) * 1e3
    return Verdict(
        base_ms=float(base_ms),
        other_ms=float(other_ms),
        speedup=float(np.median(np.concatenate(ratios))),
        low=float(low),
        high=float(high),
        pairs=len(pairs),
        threads=threads,
        difference=gap,
        floor=floor,
        per_sitting=[float(np.median(r)) for r in ratios],
    )


def parse_shape(text):
    """`input:1,3,224,224` or `input:1x3x224x224`."""
    name, _, sizes = text.rpartition(":")
    return name, [int(size) for size in sizes.replace("x", ",").split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--shape", action="append", default=[], type=parse_shape, metavar="INPUT:SIZES")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--sittings", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    verdict = compare(
        options.base, options.other, dict(options.shape), options.threads, options.seconds, options.sittings, options.seed
    )
    if options.json:
        json.dump(asdict(verdict), sys.stdout, indent=1)
        print()
        return
    print(
        f"base {verdict.base_ms:.3f} ms, other {verdict.other_ms:.3f} ms, speed-up {verdict.speedup:.3f}"
        f" [{verdict.low:.3f}, {verdict.high:.3f}], difference {verdict.difference:.1e} (noise floor {verdict.floor:.1e}),"
        f" {verdict.threads} thread(s), {verdict.pairs} pairs"
    )


if __name__ == "__main__":
    main()
