#!/usr/bin/env python3
"""Renders the results section of README.md from bench/results/corpus.json: no number there is typed by hand.

    table.py [RESULTS.json] [--check]

With --check nothing is written; the exit code is 1 if the section is not what the results say.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
NOT_MEASURED = "Not measured yet: `make bench && make table` fills this in."


def row(model):
    if "independent" not in model:
        return f"| {model['model']} | | | failed: {model.get('error', 'no result')} | | | | |"
    found = model["independent"]
    rules = ", ".join(f"`{rule}` ×{count}" if count > 1 else f"`{rule}`" for rule, count in model["rules"].items())
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
    steps = f" ({certificate['proved']} of {certificate['steps']} steps)" if "steps" in certificate else ""
    return f"{said['word']}{steps}, {said['seconds']:.1f} s"


def section(results):
    models = sorted(results["models"], key=lambda m: -m.get("independent", {}).get("speedup", 0.0))
    head = [
        f"{results['runtime']} with all its optimizations on, {results['threads']} thread(s), {results['processor']};"
        f" revision {results['revision']}, {results['date']}, budget {results['budget']}, seed {results['seed']}."
        " Times and speed-ups are those of `bench/ab.py`, which shares no code with the program."
        " The error is the largest difference of an output relative to its largest magnitude, the runtime's own noise floor beside it."
        " The certificate is replayed by `regraft check`, which proves every step again.",
        "",
        f"**Geometric mean over all {len(models)} models: {results['geometric_mean']:.3f}.**",
        "",
        "| model | input, ms | ours, ms | speed-up, 95 % interval | error (floor) | optimized in, s | certificate, replayed in | rules |",
        "|---|---:|---:|---|---|---:|---|---|",
    ]
    return "\n".join(head + [row(model) for model in models])


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
