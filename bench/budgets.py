#!/usr/bin/env python3
"""What a longer budget brings: every model is optimized with several, and each result judged
against the input and against that of the longest budget, interleaved.

    budgets.py [PATTERN]... [--budgets 10s,20s,60s,600s] [--threads N] [--seconds S] [--minutes M] [--json FILE]

Each run begins with an empty store of measurements. Results that are there already are kept;
--minutes ends the program early, and another call goes on. Writes bench/results/budgets.json,
docs/budgets.md and docs/budgets.svg.
"""

import argparse
import json
import math
import sys
import tempfile
import textwrap
import time
from dataclasses import asdict
from pathlib import Path

import ab
import curves
import models
import run

RESULTS = models.ROOT / "bench" / "results" / "budgets.json"
DOCS = models.ROOT / "docs" / "budgets.md"
PLOT = models.ROOT / "docs" / "budgets.svg"
IN_A_PLOT = 6
"""Models in one plot."""


def measured(name, budgets, options):
    """One model's row: what each budget gives, against the input and against the longest."""
    path = models.ensure(name)
    row = {"model": name, "budgets": {}}
    shapes = dict(ab.parse_shape(text) for text in models.SHAPES.get(name, []))
    with tempfile.TemporaryDirectory() as scratch:
        outs = {}
        for budget in sorted(budgets, key=run.seconds_of, reverse=True):
            options.budget = budget
            folder = Path(scratch) / budget
            folder.mkdir()
            found, out = run.optimize(name, path, folder, options)
            found = run.judge(found, path, out, options) if out else found
            if "independent" not in found:
                row["budgets"][budget] = {"error": found.get("error", "no result"), "seconds": found["seconds"]}
                continue
            outs[budget] = out
            longest = next(iter(outs.values()))
            beside = None if out == longest else asdict(ab.compare(longest, out, shapes, options.threads, options.seconds, seed=options.seed))
            row["budgets"][budget] = {
                "seconds": found["seconds"],
                "claimed": found["claimed"],
                "independent": found["independent"],
                # How many times as fast as the result of the longest budget.
                "of_longest": beside,
            }
    return row


def ratio(cell):
    return f"{cell['speedup']:.3f}" if cell else "–"


def document(results):
    """The page, as Markdown."""
    budgets, rows = results["budgets"], results["models"]
    known = [row for row in rows if all("independent" in row["budgets"].get(budget, {}) for budget in budgets)]

    def mean(values):
        return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")

    lines = [
        "<!-- Made by bench/budgets.py from bench/results/budgets.json. Do not edit. -->",
        "",
        "# What a longer budget brings",
        "",
        textwrap.fill(
            "Speed-up over the input by the budget of `regraft optimize`, judged independently (`bench/ab.py`), threads:"
            f" {results['threads']}, {results['runtime']}, {results['processor']}, {results['date']}. In brackets, how many times as fast"
            " the result is as that of the longest budget, the two run in turns. Every run begins with an empty store of measurements, and"
            " ends before its budget when nothing is left to try.",
            width=100,
        ),
        "",
        "![Speed-up by budget](budgets.svg)",
        "",
        "| model | " + " | ".join(budgets) + " |",
        "|---|" + "---:|" * len(budgets),
    ]
    for row in rows:
        cells = []
        for budget in budgets:
            cell = row["budgets"].get(budget, {})
            beside = cell.get("of_longest")
            shown = ratio(cell.get("independent"))
            cells.append(f"{shown} ({beside['speedup']:.3f} [{beside['low']:.3f}, {beside['high']:.3f}])" if beside else shown)
        lines.append(f"| {row['model']} | " + " | ".join(cells) + " |")
    means = [mean([row["budgets"][budget]["independent"]["speedup"] for row in known]) for budget in budgets]
    lines.append(f"| geometric mean of {len(known)} | " + " | ".join(f"{value:.3f}" for value in means) + " |")
    return "\n".join([*lines, ""])


def draw(results):
    """The plot."""
    budgets, rows = results["budgets"], results["models"]
    panels = []
    for start in range(0, len(rows), IN_A_PLOT):
        some = rows[start : start + IN_A_PLOT]
        points = {
            row["model"]: [row["budgets"].get(budget, {}).get("independent", {}).get("speedup") for budget in budgets] for row in some
        }
        panels.append(("speed-up by budget" if start == 0 else "", "x", False, budgets, points))
    return curves.render("What a longer budget brings", panels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--budgets", default="10s,20s,60s,600s")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each independent measurement")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no model after this time")
    parser.add_argument("--json", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.threads = options.threads or ab.default_threads()
    options.cost_store, options.target = None, ab.DEFAULT
    budgets = options.budgets.split(",")
    chosen = list(dict.fromkeys(name for pattern in options.patterns for name in models.names(pattern)))
    if not chosen:
        sys.exit(f"budgets: no model matches {' '.join(options.patterns)}")
    results = json.loads(options.json.read_text()) if options.json.exists() else {"models": []}
    if results["models"] and (results["budgets"], results["threads"]) != (budgets, options.threads):
        sys.exit(f"budgets: {options.json} holds other budgets or threads; name another file with --json")
    results |= {
        "schema": 1,
        "date": time.strftime("%Y-%m-%d"),
        "revision": run.revision(),
        "processor": run.processor(),
        "runtime": f"{ab.DEFAULT} {ab.runtime(ab.DEFAULT).version}",
        "threads": options.threads,
        "budgets": budgets,
    }
    known = {row["model"] for row in results["models"]}
    end = time.monotonic() + 60 * options.minutes
    for name in chosen:
        if name in known or time.monotonic() > end:
            continue
        row = measured(name, budgets, options)
        results["models"].append(row)
        partial = options.json.with_suffix(".tmp")
        partial.write_text(json.dumps(results, indent=1) + "\n")
        partial.rename(options.json)
        cells = [f"{budget} {ratio(row['budgets'][budget].get('independent'))}" for budget in budgets]
        print(f"{name:28} {'  '.join(cells)}", flush=True)
    if options.json == RESULTS:
        DOCS.write_text(document(results))
        PLOT.write_text(draw(results))


if __name__ == "__main__":
    main()
