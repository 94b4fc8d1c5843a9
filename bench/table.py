#!/usr/bin/env python3
"""Renders the results section of README.md from bench/results/corpus.json: no number there is typed by hand.

    table.py [RESULTS.json] [--check]

With --check nothing is written; the exit code is 1 if the section is not what the results say.
"""

import json
import math
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
LISTED = 5
"""Rules that are named of one model; how many more there are is told."""
ZOO = "zoo-"
"""What names of the zoo's networks begin with."""
NOT_MEASURED = "Not measured yet: `make bench && make table` fills this in."


def row(model):
    if "independent" not in model:
        return f"| {model['model']} | | | failed: {model.get('error', 'no result')} | | | | |"
    found = model["independent"]
    rules = ", ".join(f"`{rule}` ×{count}" if count > 1 else f"`{rule}`" for rule, count in list(model["rules"].items())[:LISTED])
    rules += f" and {len(model['rules']) - LISTED} more" if len(model["rules"]) > LISTED else ""
    return (
        f"| {model['model']} | {found['base_ms']:.2f} | {found['other_ms']:.2f} | **{found['speedup']:.3f}** [{found['low']:.3f},"
        f" {found['high']:.3f}] | {found['difference']:.0e} ({found['floor']:.0e}) | {model['seconds']:.0f} | {proof(model)} | {rules or 'none'} |"
    )


def proof(model):
    """What the replayed certificate says."""
    said = model.get("proof")
    if not said:
        return "not replayed"
    certificate = said["certificate"]
    shown = certificate.get("proved", 0) + certificate.get("bounded", 0)
    steps = f" ({shown} of {certificate['steps']} steps)" if "steps" in certificate else ""
    return f"{said['word']}{steps}, {said['seconds']:.1f} s"


def mean(rows):
    """Geometric mean of the independent speed-ups; a model without one counts as 1."""
    return math.exp(sum(math.log(row.get("independent", {}).get("speedup", 1.0)) for row in rows) / len(rows))


def table(what, rows):
    """Rows of one kind of models, the fastest first; nothing if there are none."""
    if not rows:
        return []
    return [
        "",
        f"**{what}: {len(rows)}, geometric mean {mean(rows):.3f}.**",
        "",
        "| model | input, ms | ours, ms | speed-up, 95 % interval | error (floor) | optimized in, s | certificate, replayed in | rules |",
        "|---|---:|---:|---|---|---:|---|---|",
    ] + [row(model) for model in sorted(rows, key=lambda m: -m.get("independent", {}).get("speedup", 0.0))]


def criterion(results):
    """What may pass beyond the tolerance, and how often it did; results of older runs do not say."""
    confirmed = [model.get("check", {}).get("confirmed") for model in results["models"]]
    if None in confirmed:
        return ""
    return (
        "; beyond 1e-4 (1e-3 with a fast convolution) it passes only where double precision confirms that it is rounding,"
        f" as in {sum(confirmed)} comparisons"
    )


def section(results):
    replayed = f" (at revision {results['replayed']})" if "replayed" in results else ""
    head = [
        f"{results['runtime']} with all its optimizations on, {results['threads']} thread(s), {results['processor']};"
        f" revision {results['revision']}, {results['date']}, budget {results['budget']}, seed {results['seed']}."
        " Times and speed-ups are those of `bench/ab.py`, which shares no code with the program."
        " The error is the largest difference of an output relative to its largest magnitude, the runtime's own noise floor beside it"
        f"{criterion(results)}."
        f" The certificate is replayed by `regraft check`{replayed}, which proves every step again; a kept input has no steps.",
    ]
    zoo = [model["model"].startswith(ZOO) for model in results["models"]]
    made = [model for model, is_zoo in zip(results["models"], zoo) if is_zoo]
    found = [model for model, is_zoo in zip(results["models"], zoo) if not is_zoo]
    return "\n".join(head + table("Models as they are published", found) + table("Networks of `regraft zoo`, with random weights", made))


def main():
    words = [word for word in sys.argv[1:] if word != "--check"]
    path = Path(words[0]) if words else ROOT / "bench" / "results" / "corpus.json"
    text = section(json.loads(path.read_text())) if path.exists() else NOT_MEASURED
    readme = README.read_text()
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"table: {README.name} lacks {BEGIN} and {END}")
    rendered = f"{before}{BEGIN}\n{text}\n{END}{after}"
    if "--check" in sys.argv[1:]:
        sys.exit(0 if rendered == readme else f"table: the results section of {README.name} is not what {path.name} says")
    README.write_text(rendered)


if __name__ == "__main__":
    main()
