#!/usr/bin/env python3
"""Compares the results of several runs on one model: the same rewrites, and how far the slowest is from the fastest.

    spread.py NAME INPUT.onnx THREADS REPORT.json...      (each result lies beside its report, as .onnx)

Exit code 0 if all results are within TOLERATED of the fastest, else 1. Called by stability.sh.
"""

import json
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

import ab
import models

TOLERATED = 0.02
"""How much slower than the fastest result a result may be."""
SITTINGS = 5
SECONDS = 20.0
"""Of all sittings together."""


def medians(paths, feeds, threads):
    """Median time of each model, and its median ratio to the first one; all take turns, rotating who is first."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    rounds = []
    for _ in range(SITTINGS):
        sessions = [ab.open_session(path, threads) for path in paths]
        for session in sessions:
            for _ in range(ab.WARM_UP):
                session.run(None, feeds)
        until = time.perf_counter() + SECONDS / SITTINGS
        turn = 0
        while turn < ab.FEWEST_PAIRS or time.perf_counter() < until:
            order = [(turn + at) % len(sessions) for at in range(len(sessions))]
            taken = [0.0] * len(sessions)
            for at in order if ab.thue_morse(turn) else reversed(order):
                start = clock()
                sessions[at].run(None, feeds)
                taken[at] = clock() - start
            rounds.append(taken)
            turn += 1
    table = np.array(rounds)
    return np.median(table, axis=0) * 1e3, np.median(table[:, :1] / table, axis=0)


def main():
    name, original, threads, *reports = sys.argv[1:]
    found = [json.loads(Path(report).read_text()) for report in reports]
    rewrites = [Counter(applied["rule"] for applied in report["applied"]) for report in found]
    paths = [Path(original)] + [Path(report).with_suffix(".onnx") for report in reports]
    shapes = dict(ab.parse_shape(text) for text in models.SHAPES.get(name, []))
    feeds = ab.make_feeds(ab.open_session(original, int(threads)), shapes)
    times, ratios = medians(paths, feeds, int(threads))
    best = ratios[1:].max()
    print(f"{name}: input {times[0]:.3f} ms")
    for at, rules in enumerate(rewrites, start=1):
        other = "" if rules == rewrites[0] else f", against run 1: {describe(rewrites[0], rules)}"
        print(
            f"  run {at}: {times[at]:.3f} ms, speed-up {ratios[at]:.3f}, {1 - ratios[at] / best:.1%} behind the best,"
            f" {sum(rules.values())} rewrites{other}"
        )
    distance = 1 - ratios[1:].min() / best
    same = all(rules == rewrites[0] for rules in rewrites)
    stable = same or distance <= TOLERATED
    print(f"  {'stable' if stable else 'NOT STABLE'}: {'same rewrites' if same else 'different rewrites'}, the slowest {distance:.1%} behind the best")
    sys.exit(0 if stable else 1)


def describe(first, rules):
    added, missing = rules - first, first - rules
    words = [f"+{rule} x{count}" for rule, count in added.items()] + [f"-{rule} x{count}" for rule, count in missing.items()]
    return ", ".join(words)


if __name__ == "__main__":
    main()
