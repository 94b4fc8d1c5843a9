#!/usr/bin/env python3
"""Renders bench/results/corpus.json: docs/results.md, docs/results.svg, and the summary in
README.md.

    table.py [RESULTS.json] [--check]

No number in them is typed by hand, and equal results give equal bytes. With --check nothing is
written; the exit code is 1 if a file is not what the results say.
"""

import json
import math
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import plot

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
TABLES = ROOT / "docs" / "results.md"
PLOT = ROOT / "docs" / "results.svg"
BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
LISTED = 5
"""Rules named per model; the rest are counted."""
WIDTH = 100
"""Columns of a paragraph."""
NOT_MEASURED = "Not measured yet: `make bench && make table` fills this in."


class Group(NamedTuple):
    """Models whose speed-ups are averaged together."""

    title: str
    note: str
    published: bool
    holds: Callable[[str], bool]


GROUPS = [
    Group(
        "Published models with trained weights",
        "The PP-OCR models of the `rapidocr-onnxruntime` wheel, as shipped: the only rows with trained weights.",
        True,
        lambda name: name.startswith("ppocr-"),
    ),
    Group(
        "Published graphs with constant weights",
        "The `light_*` networks of the `onnx` wheel, as shipped. Their graphs are those of well-known networks, but their weights are not"
        " trained: apart from a few small vectors, `ConstantOfShape` fills them with one repeated number. Their outputs say nothing about"
        " accuracy, so the errors of these rows mean little.",
        True,
        lambda name: name.startswith("light-") and not name.endswith("-random"),
    ),
    Group(
        "Published graphs with random weights",
        "The same graphs with seeded random weights in place of the constants, so that an error would show.",
        True,
        lambda name: name.startswith("light-"),
    ),
    Group(
        "Networks of `regraft zoo`, with random weights",
        "Well-known architectures, and under `zoo-paper-` the variants published with papers on graph optimization.",
        False,
        lambda _: True,
    ),
]
"""A model belongs to the first group that holds its name."""


def paragraph(text):
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def interval(found):
    return f"**{found['speedup']:.3f}** [{found['low']:.3f}, {found['high']:.3f}]"


def row(model, both):
    """A line of a table; `both`: with a column for one thread."""
    if "independent" not in model:
        return f"| {model['model']} | | | failed: {model.get('error', 'no result')} |{' |' * both} | | | |"
    found = model["independent"]
    rules = ", ".join(f"`{rule}` ×{count}" if count > 1 else f"`{rule}`" for rule, count in list(model["rules"].items())[:LISTED])
    rules += f" and {len(model['rules']) - LISTED} more" if len(model["rules"]) > LISTED else ""
    alone = model.get("independent_single")
    single = f" {interval(alone) if alone else ''} |" if both else ""
    return (
        f"| {model['model']} | {found['base_ms']:.2f} | {found['other_ms']:.2f} | {interval(found)} |{single} {found['difference']:.0e} ({found['floor']:.0e}) | {model['seconds']:.0f} | {proof(model)} | {rules or 'none'} |"
    )


def proof(model):
    """The verdict of the replayed certificate."""
    said = model.get("proof")
    if not said:
        return "not replayed"
    certificate = said["certificate"]
    shown = certificate.get("proved", 0) + certificate.get("bounded", 0)
    steps = f" ({shown} of {certificate['steps']} steps)" if "steps" in certificate else ""
    return f"{said['word']}{steps}, {said['seconds']:.1f} s"


def mean(rows, timed="independent"):
    """Geometric mean of the independent speed-ups; a model without one counts as 1."""
    return math.exp(sum(math.log(row.get(timed, {}).get("speedup", 1.0)) for row in rows) / len(rows))


def is_both(results):
    """Whether models were timed with several threads and with one."""
    return any("independent_single" in model for model in results["models"])


def grouped(results):
    """The groups that have models, each with its models, the fastest first."""
    found = [(group, []) for group in GROUPS]
    for model in results["models"]:
        next(rows for group, rows in found if group.holds(model["model"])).append(model)
    return [(group, sorted(rows, key=lambda m: -m.get("independent", {}).get("speedup", 0.0))) for group, rows in found if rows]


def published(groups):
    return [model for group, rows in groups if group.published for model in rows]


def setting(results):
    """Where and how the results were measured."""
    threads = "1 thread" if results["threads"] == 1 else f"{results['threads']} threads"
    threads += " and 1 thread" if is_both(results) else ""
    return (
        f"{results['runtime']} with all its optimizations on, {threads}, {results['processor']}; revision"
        f" {results['revision']}, {results['date']}, budget {results['budget']}, seed {results['seed']}."
    )


def criterion(results):
    """What may pass beyond the tolerance, and how often it did; results of older runs do not
    say."""
    confirmed = [model.get("check", {}).get("confirmed") for model in results["models"]]
    if None in confirmed:
        return ""
    return (
        " An error beyond 1e-4 (1e-3 with a fast convolution) passes only where double precision confirms that it is rounding, as in"
        f" {sum(confirmed)} comparisons."
    )


def counts(results):
    """The columns of times: where a model's timing is, and a title."""
    if not is_both(results):
        return [("independent", "")]
    return [("independent", f" at {results['threads']} threads"), ("independent_single", " at 1 thread")]


def summary_table(results, groups):
    """One line per group, and one for all published models."""
    columns = counts(results)

    def cells(rows, timed):
        found = [model[timed] for model in rows if timed in model]
        ahead = sum(model["low"] > 1.0 for model in found)
        behind = sum(model["high"] < 1.0 for model in found)
        return f" {mean(rows, timed):.3f} | {ahead} | {behind} |"

    def line(title, rows):
        return f"| {title} | {len(rows)} |" + "".join(cells(rows, timed) for timed, _ in columns)

    titles = "".join(f" speed-up, geometric mean{where} | faster | slower |" for _, where in columns)
    lines = [f"| models | count |{titles}", "|---|---:|" + "---:|---:|---:|" * len(columns)]
    lines += [line(group.title, rows) for group, rows in groups if group.published]
    if all_published := published(groups):
        lines.append(line("**All published models**", all_published))
    lines += [line(group.title, rows) for group, rows in groups if not group.published]
    return "\n".join(lines)


FASTER = "*Faster* and *slower* count the models whose whole 95 % interval lies above or below 1."
WEIGHTS = (
    "Only the PP-OCR models have trained weights. The `light_*` networks of the `onnx` wheel are published with generated constants for"
    " weights; they are measured with those and, a second time, with random ones."
)


def summary(results):
    """The results section of the README."""
    groups = grouped(results)
    return "\n\n".join(
        [
            paragraph(f"Measured with {setting(results)} {FASTER} [docs/results.md](docs/results.md) has every model."),
            summary_table(results, groups),
            paragraph(WEIGHTS),
            "![Speed-up of every model, with its 95 % interval](docs/results.svg)",
        ]
    )


def tables(results):
    """The document with every model."""
    groups = grouped(results)
    replayed = f", at revision {results['replayed']}" if "replayed" in results else ""
    both = is_both(results)
    alone = " The times are those with several threads; the speed-up at one thread has a column of its own." if both else ""
    parts = [
        "<!-- Made by `make table` from bench/results/corpus.json. Do not edit. -->",
        "# Results",
        paragraph(f"Measured with {setting(results)} [Measuring](guide/measuring.md) describes the method and how to repeat it."),
        summary_table(results, groups),
        paragraph(FASTER),
        "![Speed-up of every model, with its 95 % interval](results.svg)",
        "## Columns",
        "\n".join(
            textwrap.fill(f"* {text}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
            for text in [
                "*input*, *ours*, *speed-up*: times and speed-up as measured by `bench/ab.py`, which shares no code with the program. The"
                " speed-up is the median of paired ratios, with its 95 % interval, not the ratio of the two times."
                f"{alone}",
                "*error (floor)*: the largest difference of an output, relative to that output's largest magnitude; in parentheses, how far"
                f" the runtime's own optimizer moves the input model.{criterion(results)}",
                "*optimized in*: wall time of `regraft optimize`.",
                f"*certificate*: the verdict of `regraft check`{replayed}, which proves every step again, and the time it took. Where the"
                " input was kept, there are no steps. [Certificates](guide/certificates.md#replays) says what has changed since.",
                "*rules*: the rules applied, and at how many places.",
            ]
        ),
    ]
    for group, rows in groups:
        parts += [
            f"## {group.title}",
            paragraph(group.note),
            f"**{len(rows)} models, geometric mean {' and '.join(f'{mean(rows, timed):.3f}{where}' for timed, where in counts(results))}.**",
            "\n".join(
                [
                    f"| model | input, ms | ours, ms | speed-up, 95 % interval |{' at 1 thread |' * both} error (floor) | optimized in, s | certificate, replayed in | rules |",
                    f"|---|---:|---:|---|{'---|' * both}---|---:|---|---|",
                ]
                + [row(model, both) for model in rows]
            ),
        ]
    return "\n\n".join(parts) + "\n"


def drawing(results):
    """The plot: published models on the left, the zoo's on the right."""
    panels = [[], []]
    for group, rows in grouped(results):
        title = f"{group.title.replace('`', '')}: {mean(rows):.3f}"
        panels[0 if group.published else 1].append((title, [(model["model"], model.get("independent")) for model in rows]))
    return plot.render([panel for panel in panels if panel])


def rendered(path):
    """Every file that the results make, with its text."""
    results = json.loads(path.read_text()) if path.exists() else None
    readme = README.read_text()
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"table: {README.name} lacks {BEGIN} and {END}")
    files = {README: f"{before}{BEGIN}\n{summary(results) if results else NOT_MEASURED}\n{END}{after}"}
    if results:
        files |= {TABLES: tables(results), PLOT: drawing(results)}
    return files


def main():
    words = [word for word in sys.argv[1:] if word != "--check"]
    path = Path(words[0]) if words else ROOT / "bench" / "results" / "corpus.json"
    files = rendered(path)
    if "--check" in sys.argv[1:]:
        stale = [str(file.relative_to(ROOT)) for file, text in files.items() if not file.exists() or file.read_text() != text]
        sys.exit(f"table: not what {path.name} says, run `make table`: {', '.join(stale)}" if stale else 0)
    for file, text in files.items():
        file.write_text(text)


if __name__ == "__main__":
    main()
