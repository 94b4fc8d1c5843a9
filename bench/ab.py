#!/usr/bin/env python3
"""Times two models against each other under ONNX Runtime, every optimization of its own switched
on, or under another runtime.

    ab.py BASE.onnx OTHER.onnx [--shape input:1,3,224,224]... [--target RUNTIME] [--other-target RUNTIME] [--threads N] [--seconds S]
          [--sittings N] [--seed N] [--json]

An outside judge of what the program claims: it shares no code with it. Method: several sittings,
each with fresh sessions of both models and a second one of the base, opened in another order and at
other addresses; in a sitting they take turns, in a random order each round, so that drift hits all
alike. One thread: processor time of the calling thread, which other processes do not inflate; more
threads (by default, as many as the runtime uses by itself): wall time, of threads that spin within
a run, as deployed, and not after it. The result is the geometric mean over sittings of the median
ratio base/other, with a 95 % interval: sittings are what varies, so it rests on their spread, taken
together with a presumed one while there are few. The second session of the base says what the same
procedure makes of no difference at all. Outputs are compared first: the largest difference relative
to the largest magnitude of that output, beside the noise floor (the base model with the runtime's
optimizer against without).
"""

import argparse
import functools
import json
import math
import os
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

import runtimes

DEFAULT = runtimes.OnnxRuntime.name

WARM_UP = 3
"""Runs of each model before those that count."""
WARM_BELOW = 0.02
"""Where all runs are shorter than this, in seconds, each model runs once more before every run that
counts: on caches that it left itself, as it does where it is deployed. Longer runs turn the caches
over by themselves."""
FEWEST_PAIRS = 6
"""Rounds of a sitting, however long they take."""
RESAMPLES = 200
"""Draws of the bootstrap within a sitting."""
SITTINGS = 6
"""Fewest sittings; there are more while there is time."""
OPENING = 2.0
"""The rounds of a sitting take this multiple of the time to open its models."""
PRESUMED, WEIGHT = 0.01, 4
"""Presumed standard deviation of a ratio between sittings, and how many sittings it counts for."""
APART = 1 << 20
"""Sessions are opened up to so many bytes apart, differently in every sitting."""

@dataclass
class Verdict:
    """What came out of comparing `other` with `base`. Times in milliseconds; a speed-up above 1
    says that `other` is faster."""

    base_ms: float
    other_ms: float
    speedup: float
    low: float
    high: float
    pairs: int
    threads: int
    difference: float
    floor: float
    identity: float = 1.0
    identity_low: float = 1.0
    identity_high: float = 1.0
    per_sitting: list[float] = field(default_factory=list)

    def is_slower(self):
        """Whether `other` is slower by more than the base seems to be than itself."""
        return self.high < min(1.0, self.identity_low)


def default_threads():
    """How many threads the runtime uses by itself: those that a session starts, and the caller's.
    All processors where nobody says."""
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        return os.cpu_count() or 1
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "one operator", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    before = len(list(tasks.iterdir()))
    session = runtime(DEFAULT).library.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    threads = 1 + len(list(tasks.iterdir())) - before
    del session
    return threads


@functools.cache
def runtime(target):
    """The runtime of this name."""
    return runtimes.ALL[target]()


def make_feeds(session, shapes, seed=0):
    """Seeded values for all inputs; sizes that neither the model nor `shapes` gives are 1."""
    random = np.random.default_rng(seed)
    feeds = {}
    for value in session.inputs:
        shape = shapes.get(value.name)
        if shape is None:
            shape = [d if isinstance(d, int) and d > 0 else 1 for d in value.shape]
        if value.dtype.kind == "f":
            feeds[value.name] = random.standard_normal(shape).astype(value.dtype)
        else:
            # Small, because integers are mostly indices.
            feeds[value.name] = random.integers(0, 2, shape).astype(value.dtype)
    return feeds


def difference(wanted, found):
    """The largest difference relative to the largest magnitude of its output; infinite where no
    difference is allowed."""
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


def sitting(models, feeds, threads, longest, number, seed):
    """Times in seconds, a column per model, of fresh sessions of all (runtime, model), in the order
    given; the rounds take `longest` at most."""
    start = time.perf_counter()
    random = np.random.default_rng((seed, number))
    runs, apart = [None] * len(models), []
    for at in np.roll(np.arange(len(models)), number)[:: random.choice((1, -1))]:
        apart.append(bytearray(int(random.integers(1, APART))))
        runtime, path = models[at]
        runs[at] = runtime.open(path, threads).bound(feeds)
    seconds = min(longest, OPENING * (time.perf_counter() - start))
    clock = time.thread_time if threads == 1 else time.perf_counter
    longest_run = 0.0
    for run in runs:
        for turn in range(WARM_UP):
            begin = clock()
            run()
            longest_run = max(longest_run, clock() - begin) if turn == WARM_UP - 1 else longest_run
    warm = longest_run < WARM_BELOW
    rounds = []
    until = time.perf_counter() + seconds
    while len(rounds) < FEWEST_PAIRS or time.perf_counter() < until:
        taken = [0.0] * len(models)
        # At random: in a fixed scheme some model runs more often after one particular other.
        for at in random.permutation(len(models)):
            if warm:
                runs[at]()
            start = clock()
            runs[at]()
            taken[at] = clock() - start
        rounds.append(taken)
    return np.array(rounds)


def sit(models, feeds, threads, seconds, fewest=SITTINGS, seed=0):
    """Sittings that take `seconds` together, or as long as the fewest take."""
    until, taken = time.perf_counter() + seconds, []
    while len(taken) < fewest or time.perf_counter() < until:
        taken.append(sitting(models, feeds, threads, seconds / fewest, len(taken), seed))
    return taken


def student(freedom):
    """The 97.5 % quantile of Student's distribution (Abramowitz and Stegun 26.7.5), right to 1 %
    from 4 degrees of freedom on."""
    z = 1.959964
    terms = ((z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    return z + sum(term / freedom**power for power, term in enumerate(terms, start=1))


def estimate(sittings, seed):
    """The geometric mean of the median ratios of sittings, and its 95 % interval."""
    random = np.random.default_rng(seed)
    logs = np.array([np.log(np.median(ratios)) for ratios in sittings])
    draws = [np.median(random.choice(ratios, (RESAMPLES, len(ratios))), axis=1) for ratios in sittings]
    within = np.mean([np.log(medians).var() for medians in draws])
    freedom = WEIGHT + len(logs) - 1
    between = logs.var(ddof=1) if len(logs) > 1 else 0.0
    spread = (WEIGHT * (PRESUMED**2 + within) + (len(logs) - 1) * between) / freedom
    half = student(freedom) * math.sqrt(spread / len(logs))
    return tuple(math.exp(logs.mean() + step) for step in (0.0, -half, half))


def compare(base, other, shapes=None, threads=1, seconds=8.0, sittings=SITTINGS, seed=0, targets=(DEFAULT, DEFAULT)):
    """Compares outputs and times, in as many sittings as `seconds` allow, and `sittings` at least;
    each model on its own target."""
    shapes = shapes or {}
    on_base, on_other = (runtime(target) for target in targets)
    session = on_base.open(base, threads)
    feeds = make_feeds(session, shapes, seed)
    wanted = session.run(feeds)
    floor = difference(on_base.open(base, threads, optimize=False).run(feeds), wanted)
    gap = difference(wanted, on_other.open(other, threads).run(feeds))
    del session
    taken = sit(((on_base, base), (on_other, other), (on_base, base)), feeds, threads, seconds, sittings, seed)
    speedup, low, high = estimate([t[:, 0] / t[:, 1] for t in taken], seed)
    identity, identity_low, identity_high = estimate([t[:, 0] / t[:, 2] for t in taken], seed)
    everything = np.concatenate(taken)
    base_ms, other_ms = np.median(everything[:, :2], axis=0) * 1e3
    return Verdict(
        base_ms=float(base_ms),
        other_ms=float(other_ms),
        speedup=speedup,
        low=low,
        high=high,
        pairs=len(everything),
        threads=threads,
        difference=gap,
        floor=floor,
        identity=identity,
        identity_low=identity_low,
        identity_high=identity_high,
        per_sitting=[float(np.median(t[:, 0] / t[:, 1])) for t in taken],
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
    parser.add_argument("--target", choices=runtimes.ALL, default=DEFAULT, help="what runs the models")
    parser.add_argument("--other-target", choices=runtimes.ALL, help="what runs OTHER, if not the same")
    parser.add_argument("--threads", type=int, help="within an operator; by default, as many as the runtime uses by itself")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--sittings", type=int, default=SITTINGS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    verdict = compare(
        options.base,
        options.other,
        dict(options.shape),
        options.threads or default_threads(),
        options.seconds,
        options.sittings,
        options.seed,
        (options.target, options.other_target or options.target),
    )
    if options.json:
        json.dump(asdict(verdict), sys.stdout, indent=1)
        print()
        return
    print(
        f"base {verdict.base_ms:.3f} ms, other {verdict.other_ms:.3f} ms, speed-up {verdict.speedup:.3f}"
        f" [{verdict.low:.3f}, {verdict.high:.3f}], base against itself {verdict.identity:.3f} [{verdict.identity_low:.3f},"
        f" {verdict.identity_high:.3f}], difference {verdict.difference:.1e} (noise floor {verdict.floor:.1e}),"
        f" {verdict.threads} thread(s), {verdict.pairs} pairs"
    )


if __name__ == "__main__":
    main()
