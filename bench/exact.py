#!/usr/bin/env python3
"""What each search makes of every network of the zoo under one price list, with at most 10 rewrites
and with any number: is `exact` or `auto` ever worse than another?

    exact.py [--budget 5s] [--only PATTERN]... [--search a,b] [--steps 10,any] [--prices FILE] [--minutes M] [--json FILE]

Every search runs alone in a process, on one core, from the network, and ends after the budget at
the latest. Searches that try all sequences run with at most 10 rewrites, on networks of few nodes.
The price list is that of bench/ocggs.py, unless --prices names another, or `roofline`: costs are
the same on every machine, unless a search ran out of time; times are not. Results that are there
already are kept; --minutes ends the program early, and another call goes on.

Writes bench/results/exact.json and docs/exact.md.
"""

import argparse
import fnmatch
import json
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import models
import run

PRICES = models.ROOT / "bench" / "ocggs" / "prices.jsonl.gz"
RESULTS = models.ROOT / "bench" / "results" / "exact.json"
DOCS = models.ROOT / "docs" / "exact.md"
STEPS = 10
"""The K of the paper on OCGGS."""
QUICK = ["greedy", "backtrack", "metaflow", "sample", "auto", "exact"]
"""Searches that give up something."""
ALL = ["enumerate", "sleep-sets", "table", "prune", "dpp"]
"""Searches that try all sequences."""
FEW = 60
"""Nodes, weights and inputs included, up to which those are tried."""
JUDGED = ["exact", "auto"]
"""Searches that should never be worse than another."""
LATE = 1.1
"""A search that took so many times as long as another, or less, has taken no longer: times are not
exact."""
WIDTH = 100
"""Columns of a paragraph."""


def networks():
    """Names of the zoo, its largest ones included: only the types of their weights matter."""
    listing = subprocess.run([models.program(), "zoo", "list", "--json"], check=True, capture_output=True, text=True).stdout
    return [entry["name"] for entry in json.loads(listing)]


def compare(network, search, steps, prices, budget):
    """One row: what a search makes of a network; without `steps`, with any number of rewrites."""
    command = [str(models.program()), "compare", network, "--search", search, "--budget", budget, "--json"]
    command += ["--steps", str(steps)] if steps else []
    command += ["--prices", str(prices)] if prices else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"exact: {' '.join(command)}: {done.stderr.strip()}")
    said = json.loads(done.stdout)
    (found,) = said["searches"]
    regions = found.pop("regions", [])
    row = {"revision": run.revision(), "network": network, "steps": steps, "nodes": said["nodes"], "input": said["cost"]} | found
    if regions:
        proved = [region for region in regions if region["proved"]]
        row |= {"regions": len(regions), "proved": len(proved)}
        row |= {"cost_of_regions": sum(r["cost"] for r in regions), "cost_proved": sum(r["cost"] for r in proved)}
    print(
        f"{network:24} K={steps or 'any':<4} {search:12} {row['cost'] / 1e6:10.3f} ms {row['speedup']:7.4f} {row['rewrites']:5} rewrites"
        f" {row['states']:9} states {row['seconds']:8.3f} s {(row['peak_bytes'] or 0) / 1e6:7.1f} MB"
        + (f" {row['proved']} of {row['regions']} regions" if regions else ""),
        flush=True,
    )
    return row


def is_late(row, budget):
    """Whether a search was ended by its budget."""
    return not row["complete"] and row["seconds"] >= run.seconds_of(budget)


def mark(row, rows):
    """`!`: a search that took no longer ends cheaper. `?`: one that took longer does."""
    cheaper = [other for other in rows if other["cost"] < row["cost"]]
    if not cheaper:
        return ""
    return "!" if any(other["seconds"] <= LATE * row["seconds"] for other in cheaper) else "?"


def cells(row, rows, budget):
    """Cost, time, states and memory of a search."""
    if row is None:
        return "", "", "", ""
    cost = f"{row['cost'] / 1e6:.3f}"
    if row["cost"] == min(other["cost"] for other in rows):
        cost = f"**{cost}**"
    cost += "*" if row["optimal"] else ""
    cost += mark(row, rows) if row["search"] in JUDGED else ""
    time = f">{row['seconds']:.0f}" if is_late(row, budget) else f"{row['seconds']:.2f}"
    return cost, time, str(row["states"]), f"{(row['peak_bytes'] or 0) / 1e6:.0f}"


def table(rows, steps, budget):
    """Four lines for each network."""
    found = {}
    for row in rows:
        if row["steps"] == steps:
            found.setdefault(row["network"], {})[row["search"]] = row
    searches = [search for search in QUICK + ALL if any(search in of for of in found.values())]
    lines = [f"| network | nodes | regions proved | | input | {' | '.join(searches)} |", f"|---|---:|---:|---|---:|{'---:|' * len(searches)}"]
    for network, of in found.items():
        all_of = list(of.values())
        shown = [cells(of.get(search), all_of, budget) for search in searches]
        exact = of.get("exact", {})
        proved = f"{exact['proved']} of {exact['regions']}" if "regions" in exact else ""
        head = f"| {network} | {all_of[0]['nodes']} | {proved} | cost, ms | {all_of[0]['input'] / 1e6:.3f}"
        lines.append(f"{head} | {' | '.join(cell[0] for cell in shown)} |")
        for at, what in enumerate(("time, s", "states", "memory, MB"), 1):
            lines.append(f"| | | | {what} | | {' | '.join(cell[at] for cell in shown)} |")
    return lines


def summary(rows, steps, budget):
    """What the table shows, in sentences."""
    of = {}
    for row in rows:
        if row["steps"] == steps:
            of.setdefault(row["network"], []).append(row)
    said = []
    for search in JUDGED:
        own = [(network, next((row for row in all_of if row["search"] == search), None), all_of) for network, all_of in of.items()]
        own = [(network, row, all_of) for network, row, all_of in own if row]
        if not own:
            continue
        marks = {network: mark(row, all_of) for network, row, all_of in own}
        worse = [network for network, sign in marks.items() if sign]
        at_once = [network for network in worse if marks[network] == "!"]
        over = max((row["cost"] / min(other["cost"] for other in all_of) for _, row, all_of in own), default=1.0)
        late = sum(is_late(row, budget) for _, row, _ in own)
        said.append(
            f"`{search}` is worse than another search on {len(worse)} of {len(own)} networks, at most by {100 * (over - 1):.1f} %; on"
            f" {len(at_once)} of them than one that took no longer. It ran out of time on {late}."
        )
    exact = [row for all_of in of.values() for row in all_of if row["search"] == "exact" and "regions" in row]
    if exact:
        regions, proved = (sum(row[key] for row in exact) for key in ("regions", "proved"))
        cost, cost_proved = (sum(row[key] for row in exact) for key in ("cost_of_regions", "cost_proved"))
        whole = sum(row["optimal"] for row in exact)
        said.append(
            f"`exact` shows for {proved} of {regions} regions ({100 * proved / regions:.0f} %, {100 * cost_proved / max(cost, 1):.0f} % of"
            f" the cost) that nothing in them is cheaper, and for {whole} whole networks. The most memory that it took is"
            f" {max(row['peak_bytes'] or 0 for row in exact) / 1e6:.0f} MB."
        )
    return " ".join(said)


def write(results):
    """The page."""
    rows, budget = results["rows"], results["budget"]
    latest = sorted({row["search"] for row in rows if row.get("revision") == results["revision"]})
    which = f" ({', '.join(f'`{search}`' for search in latest)}; the others are of earlier revisions)" if len(latest) < len(QUICK) else ""
    about = (
        f"Revision {results['revision']}{which}, {results['date']}, {results['processor']}, one core. Prices: {results['prices']}. Each search"
        f" starts from the network and ends after {budget} at the latest (`>`). The cheapest are bold. `*`: nothing is cheaper with so many"
        " rewrites. `!`: `exact` or `auto` is worse than a search that took no longer, `?`: than one that took longer. A region is"
        " proved where all states were visited that rewrites inside of it lead to, and no rewrite crosses its border."
    )
    text = ["<!-- Made by bench/exact.py from bench/results/exact.json. Do not edit. -->", "# `exact` and `auto` beside the other searches", ""]
    text += [textwrap.fill(about, WIDTH), ""]
    for steps, title in ((STEPS, f"At most {STEPS} rewrites"), (None, "Any number of rewrites")):
        if any(row["steps"] == steps for row in rows):
            text += [f"## {title}", "", textwrap.fill(summary(rows, steps, budget), WIDTH), "", *table(rows, steps, budget), ""]
    DOCS.write_text("\n".join(text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="5s", help="of each search")
    parser.add_argument("--only", action="append", help="networks that match, as a pattern of names; all of them if not given")
    parser.add_argument("--search", default=",".join(QUICK + ALL), help="searches, separated by commas")
    parser.add_argument("--steps", default=f"{STEPS},any", help="most rewrites, separated by commas")
    parser.add_argument("--prices", default=str(PRICES), help="price list, plain or compressed, or `roofline`")
    parser.add_argument("--minutes", type=float, help="begin nothing after so many minutes")
    parser.add_argument("--json", type=Path, default=RESULTS, help="results; rows that are there already are kept")
    options = parser.parse_args()
    results = {"date": time.strftime("%Y-%m-%d"), "revision": run.revision(), "processor": run.processor()}
    prices = Path(options.prices)
    about = "the analytic roofline" if options.prices == "roofline" else f"`{prices.resolve().relative_to(models.ROOT)}`, of one machine"
    results |= {"budget": options.budget, "prices": about, "rows": []}
    if options.json.exists():
        known = json.loads(options.json.read_text())
        if (known["budget"], known["prices"]) != (results["budget"], results["prices"]):
            sys.exit(f"exact: {options.json} has another budget or price list; name another file with --json")
        results["rows"] = known["rows"]
    seen = {(row["network"], row["search"], row["steps"]) for row in results["rows"]}
    nodes = {row["network"]: row["nodes"] for row in results["rows"]}
    wanted = [name for name in networks() if not options.only or any(fnmatch.fnmatch(name, pattern) for pattern in options.only)]
    until = time.monotonic() + 60 * options.minutes if options.minutes else None
    with tempfile.TemporaryDirectory() as scratch:
        prices = None if options.prices == "roofline" else models.unpacked(prices, scratch)
        for steps in (None if one == "any" else int(one) for one in options.steps.split(",")):
            for network in wanted:
                for search in options.search.split(","):
                    is_small = steps and nodes.get(network, FEW + 1) <= FEW
                    if (network, search, steps) in seen or search in ALL and not is_small or until and time.monotonic() > until:
                        continue
                    row = compare(network, search, steps, prices, options.budget)
                    nodes[network] = row["nodes"]
                    results["rows"].append(row)
                    options.json.parent.mkdir(parents=True, exist_ok=True)
                    options.json.write_text(json.dumps(results, indent=1) + "\n")
    if options.json == RESULTS:
        write(results)


if __name__ == "__main__":
    main()
