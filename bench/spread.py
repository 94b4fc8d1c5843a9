#!/usr/bin/env python3
"""Compares the results of several runs on one model: the same rewrites, and how far the slowest is
from the fastest.

    spread.py NAME INPUT.onnx THREADS REPORT.json...      (each result lies beside its report, as .onnx)

Exit code 0 if all results are within TOLERATED of the fastest, else 1. Results that are the same
file, byte for byte, are timed as one. Called by stability.sh.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np

import ab
import models

TOLERATED = 0.02
"""How much slower than the fastest result a result may be."""
SECONDS = 20.0
"""Of all sittings together."""


def timed(paths, feeds, threads):
    """Median time of each model in ms, and its speed-up over the first one."""
    sittings = ab.sit([(ab.runtime(ab.DEFAULT), path) for path in paths], feeds, threads, SECONDS)
    times = np.median(np.concatenate(sittings), axis=0) * 1e3
    return times, np.array([ab.estimate([t[:, 0] / t[:, at] for t in sittings], 0)[0] for at in range(len(paths))])


def distinct(paths):
    """The paths without those whose file is that of an earlier one, and for each path the place of
    its file among them."""
    files = [path.read_bytes() for path in paths]
    first = [files.index(file) for file in files]
    kept = sorted(set(first))
    return [paths[at] for at in kept], [kept.index(at) for at in first]


def main():
    name, original, threads, *reports = sys.argv[1:]
    found = [json.loads(Path(report).read_text()) for report in reports]
    rewrites = [Counter(applied["rule"] for applied in report["applied"]) for report in found]
    paths, place = distinct([Path(report).with_suffix(".onnx") for report in reports])
    shapes = dict(ab.parse_shape(text) for text in models.SHAPES.get(name, []))
    feeds = ab.make_feeds(ab.runtime(ab.DEFAULT).open(original, int(threads)), shapes)
    times, ratios = timed([Path(original), *paths], feeds, int(threads))
    best = ratios[1:].max()
    print(f"{name}: input {times[0]:.3f} ms")
    for run, rules in enumerate(rewrites, start=1):
        at = 1 + place[run - 1]
        other = "" if rules == rewrites[0] else f", against run 1: {describe(rewrites[0], rules)}"
        print(
            f"  run {run}: {times[at]:.3f} ms, speed-up {ratios[at]:.3f}, {1 - ratios[at] / best:.1%} behind the best,"
            f" {sum(rules.values())} rewrites{other}"
        )
    distance = 1 - ratios[1:].min() / best
    same = all(rules == rewrites[0] for rules in rewrites)
    stable = distance <= TOLERATED
    print(f"  {'stable' if stable else 'NOT STABLE'}: {'same rewrites' if same else 'different rewrites'}, the slowest {distance:.1%} behind the best")
    sys.exit(0 if stable else 1)


def describe(first, rules):
    added, missing = rules - first, first - rules
    words = [f"+{rule} x{count}" for rule, count in added.items()] + [f"-{rule} x{count}" for rule, count in missing.items()]
    return ", ".join(words)


if __name__ == "__main__":
    main()
