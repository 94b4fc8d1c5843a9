#!/usr/bin/env python3
"""Compares searches as the paper on OCGGS does: its Table 3, and its Figures 4 and 5, under one
price list.

    ocggs.py [--budget 20s] [--only PART]... [--prices FILE] [--json FILE] [--measure]

Table 3: what each search makes of seven networks with at most 10 rewrites, its time and its memory;
of the networks as the paper has them, and of those that they stand for. Figure 4: the same for 2 to
8 blocks of ResNet-n and 1 to 4 of Inception-E-n. Figure 5: for 5 to 25 rewrites. Every search runs
alone in a process, on one core, and ends after the budget at the latest; one that tries all
sequences and does not end has no time in the table, since the published program would still be
running.

The price list is in the repository (bench/ocggs/prices.jsonl.gz), so costs are the same on every
machine; times are not. With --measure a new list is made on this machine: each network is optimized
with a store for all, which is then exported.

Writes bench/results/ocggs.json, docs/ocggs.md and docs/ocggs-*.svg.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import curves
import models
import run

PRICES = models.ROOT / "bench" / "ocggs" / "prices.jsonl.gz"
RESULTS = models.ROOT / "bench" / "results" / "ocggs.json"
DOCS = models.ROOT / "docs"
STEPS = 10
"""The paper's K."""
PUBLISHED = {
    "paper-inception-v3": "inception-v3",
    "paper-resnet-n8": "resnet-50",
    "paper-resnext-50": "resnext-50",
    "paper-nasnet-a": "nasnet-a",
    "paper-bert": "bert-base",
    "paper-sru": "sru",
    "paper-nasrnn": "nasrnn",
}
"""The networks of Table 3, and real ones of their kind."""
QUICK = ["greedy", "backtrack", "metaflow", "sample", "exact"]
"""Searches that give up something."""
ALL = ["enumerate", "prune", "dpp", "sleep-sets", "table"]
"""Searches that try all sequences."""
SMALL = ["paper-resnet-n8", "paper-sru", "sru"]
"""The networks of Table 3 on which those are tried, as in the paper."""
BLOCKS = {"ResNet-n": [f"paper-resnet-n{n}" for n in (2, 4, 6, 8)], "Inception-E-n": [f"paper-inception-e-n{n}" for n in (1, 2, 3, 4)]}
SEQUENCES = {"ResNet-6": "paper-resnet-n6", "Inception-E-3": "paper-inception-e-n3"}
LENGTHS = [5, 10, 15, 20, 25]
PARTS = ["table", "blocks", "lengths"]
WIDTH = 100
"""Columns of a paragraph."""
MEASURED = "20s"
"""Budget of each network while prices are measured."""


def compare(network, search, steps, prices, budget):
    """One row: what a search makes of a network."""
    command = [str(models.program()), "compare", network, "--search", search, "--steps", str(steps), "--prices", str(prices)]
    done = subprocess.run([*command, "--budget", budget, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"ocggs: {' '.join(command)}: {done.stderr.strip()}")
    said = json.loads(done.stdout)
    found = said["searches"][0]
    row = {"network": network, "steps": steps, "input": said["cost"], "nodes": said["nodes"]} | found
    ended = ", out of time" if is_late(row, budget) else ""
    print(
        f"{network:24} K={steps:<3} {search:12} {row['cost'] / 1e6:10.3f} ms {row['speedup']:7.4f} {row['rewrites']:4} rewrites"
        f" {row['states']:9} states {row['seconds']:8.3f} s {(row['peak_bytes'] or 0) / 1e6:7.1f} MB{ended}",
        flush=True,
    )
    return row


def is_late(row, budget):
    """Whether a search was ended by its budget."""
    return not row["complete"] and row["seconds"] >= run.seconds_of(budget)


def settings(part):
    """Networks, searches and lengths of a part of the paper."""
    searches = QUICK + ALL
    if part == "table":
        networks = [network for pair in PUBLISHED.items() for network in pair]
        return [(network, search, STEPS) for network in networks for search in (searches if network in SMALL else QUICK)]
    if part == "blocks":
        return [(network, search, STEPS) for group in BLOCKS.values() for network in group for search in searches]
    return [(network, search, steps) for network in SEQUENCES.values() for steps in LENGTHS for search in searches]


def measure(budget):
    """Makes the price list."""
    networks = dict.fromkeys([*PUBLISHED, *PUBLISHED.values(), *(n for group in BLOCKS.values() for n in group)])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        environment = dict(os.environ, REGRAFT_COST_STORE=str(folder / "store.sqlite"))
        for network in networks:
            path = models.ensure(f"zoo-{network}")
            command = [str(models.program()), "optimize", str(path), "-o", str(folder / "out.onnx"), "--force-overwrite"]
            done = subprocess.run(
                [*command, "--threads", "1", "--budget", budget, "--no-certificate"], env=environment, capture_output=True, text=True
            )
            print(f"{network:24} {done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr.strip()}", flush=True)
        plain = folder / "prices.jsonl"
        subprocess.run([str(models.program()), "cost", "export", str(plain), "--quiet"], env=environment, check=True)
        PRICES.parent.mkdir(exist_ok=True)
        # Prices of operators are all that is needed, and they do not depend on when they were
        # measured.
        rows = [json.loads(line) for line in plain.read_text().splitlines()]
        rows = [row | {"updated_at": 0} for row in rows if row["context"].startswith("profile")]
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
        PRICES.write_bytes(gzip.compress(text.encode(), mtime=0))
        print(f"{len(rows)} prices, {PRICES.stat().st_size} bytes")


def shown(row, budget):
    """A cell: cost, and time unless a search of all sequences did not end."""
    if row is None:
        return "", "", ""
    mark = "*" if row["optimal"] else ""
    late = "–" if row["search"] in ALL else f">{row['seconds']:.0f}"
    seconds = late if is_late(row, budget) else f"{row['seconds']:.2f}"
    return f"{row['cost'] / 1e6:.3f}{mark}", seconds, f"{(row['peak_bytes'] or 0) / 1e6:.0f}"


def table(rows, networks, budget):
    """Three lines for each network: cost, time and memory of every search."""
    searches = [search for search in QUICK + ALL if any(row["search"] == search for row in rows)]
    lines = [f"| network | | input | {' | '.join(searches)} |", f"|---|---|---:|{'---:|' * len(searches)}"]
    for network in networks:
        found = {row["search"]: row for row in rows if row["network"] == network and row["steps"] == STEPS}
        if not found:
            continue
        cells = [shown(found.get(search), budget) for search in searches]
        cost = next(iter(found.values()))["input"] / 1e6
        lines.append(f"| {network} | cost, ms | {cost:.3f} | {' | '.join(cell[0] for cell in cells)} |")
        lines.append(f"| | time, s | | {' | '.join(cell[1] for cell in cells)} |")
        lines.append(f"| | memory, MB | | {' | '.join(cell[2] for cell in cells)} |")
    return lines


def panels(rows, groups, budget):
    """Plots of time and of cost for `{title: [(setting, network, steps)]}`."""
    for title, points in groups.items():
        names = [str(setting) for setting, _, _ in points]
        for unit, logarithmic, key in (("s", True, "seconds"), ("ms", False, "cost")):
            found = {}
            for search in QUICK + ALL:
                values = []
                for _, network, steps in points:
                    row = next((r for r in rows if (r["network"], r["search"], r["steps"]) == (network, search, steps)), None)
                    # A search of all sequences that did not end has no time; what it found so far
                    # is no result of the method.
                    known = row and (search in QUICK or not is_late(row, budget))
                    values.append((row[key] / 1e6 if key == "cost" else max(row[key], 1e-3)) if known else None)
                if any(values):
                    found[search] = values
            yield (f"{title}: {'time' if key == 'seconds' else 'cost'}", unit, logarithmic, names, found)


def write(results):
    """The page and the drawings."""
    rows = results["rows"]
    blocks = {title: [(network.rsplit("n", 1)[1], network, STEPS) for network in group] for title, group in BLOCKS.items()}
    lengths = {title: [(steps, network, steps) for steps in LENGTHS] for title, network in SEQUENCES.items()}
    drawings = {"blocks": (blocks, "Searches over the number of blocks"), "lengths": (lengths, "Searches over the number of rewrites")}
    for name, (groups, title) in drawings.items():
        (DOCS / f"ocggs-{name}.svg").write_text(curves.render(title, list(panels(rows, groups, results["budget"]))))
    about = (
        f"Revision {results['revision']}, {results['date']}, {results['processor']}, one core. Prices are those of"
        " `bench/ocggs/prices.jsonl.gz`, of one machine; rules are the shipped ones, which offer many more choices than the 157 of the"
        " paper. `backtrack` is the search of TASO, `sample` that of OCGGS; `prune` and `dpp` are its Algorithms 1 and 2, which order"
        f" rewrites only among monotone rules. A search ends after {results['budget']} at the latest (`>`). Where one that tries all"
        " sequences did not end, its cost is that of the best graph it came upon, and no time is given (`–`). `*`: nothing is cheaper"
        " with so many rewrites."
    )
    text = [
        "<!-- Made by bench/ocggs.py from bench/results/ocggs.json. Do not edit. -->",
        "# The searches of the literature, compared",
        "",
        textwrap.fill(about, WIDTH),
        "",
        f"## Table 3: at most {STEPS} rewrites, networks as published",
        "",
        *table(rows, PUBLISHED, results["budget"]),
        "",
        "The same, real networks of their kind:",
        "",
        *table(rows, PUBLISHED.values(), results["budget"]),
        "",
        f"## Figure 4: number of blocks, at most {STEPS} rewrites",
        "",
        "![time and cost over the number of blocks](ocggs-blocks.svg)",
        "",
        "## Figure 5: number of rewrites",
        "",
        "![time and cost over the number of rewrites](ocggs-lengths.svg)",
        "",
    ]
    (DOCS / "ocggs.md").write_text("\n".join(text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="20s", help="of each search")
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; all of them if not given")
    parser.add_argument("--prices", type=Path, default=PRICES, help="price list, plain or compressed")
    parser.add_argument("--json", type=Path, default=RESULTS, help="results; rows that are there already are kept")
    parser.add_argument("--measure", action="store_true", help="only make a new price list")
    options = parser.parse_args()
    if options.measure:
        return measure(MEASURED)
    known = json.loads(options.json.read_text())["rows"] if options.json.exists() else []
    results = {"date": time.strftime("%Y-%m-%d"), "revision": run.revision(), "processor": run.processor(), "budget": options.budget}
    results["rows"] = known
    seen = {(row["network"], row["search"], row["steps"]) for row in known}
    with tempfile.TemporaryDirectory() as scratch:
        plain = models.unpacked(options.prices, scratch)
        for part in options.only or PARTS:
            for network, search, steps in settings(part):
                if (network, search, steps) not in seen:
                    seen.add((network, search, steps))
                    known.append(compare(network, search, steps, plain, options.budget))
                    options.json.parent.mkdir(parents=True, exist_ok=True)
                    options.json.write_text(json.dumps(results, indent=1) + "\n")
    if options.json == RESULTS:
        write(results)


if __name__ == "__main__":
    main()
