#!/usr/bin/env python3
"""Equality saturation on the networks of the PACT 2024 paper on it: what extractors make of their e-graphs, and searches of the networks.

    eqsat.py [--budget 60s] [--nodes N]... [--only NAME]... [--prices FILE] [--json FILE]

With --only, other networks keep the results that they have. First table: the e-graph of each network as it is, and after saturation with so many operators at most, by each method of extraction; each
operator is priced alone. Second table: the network by each search, priced in context. Costs come from one price list (by default
bench/ocggs/prices.jsonl.gz) and are the same on every machine; times are not.

Writes bench/results/eqsat.json and docs/eqsat.md.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import models
import run

PRICES = models.ROOT / "bench" / "ocggs" / "prices.jsonl.gz"
RESULTS = models.ROOT / "bench" / "results" / "eqsat.json"
DOCS = models.ROOT / "docs" / "eqsat.md"
NETWORKS = [
    "paper-bert", "paper-inception-v3", "paper-mobilenet-v2", "paper-nasnet-a", "paper-nasrnn", "paper-resnet-50", "paper-resnext-50",
    "paper-squeezenet", "paper-vgg-19", "paper-t-t", "paper-vit-base",
]  # fmt: skip
"""The paper has ViT-Large and ViT-Huge besides, which the zoo has not."""
METHODS = ["tree", "shared", "greedy-dag", "ilp"]
SEARCHES = ["greedy", "exact", "saturate", "mcts"]


def told(*words):
    """What the program says, as JSON."""
    command = [str(models.program()), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"eqsat: {' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout) if done.stdout.startswith("{") else {"said": done.stdout}


def extracted(network, limits, prices, folder):
    """What each method makes of an e-graph."""
    path = Path(folder) / "e.json"
    start = time.perf_counter()
    told("egraph", "dump", network, "-o", path, "--prices", prices, *limits)
    seconds = time.perf_counter() - start
    rows = {method: told("egraph", "extract", path, "--method", method, "--json", "--time", "60s") for method in METHODS}
    rows = {method: {key: row[key] for key in ("nodes", "classes", "cost", "optimal", "seconds")} for method, row in rows.items()}
    print(network, *limits, *(f"{method} {row['cost'] / 1e6:.3f}" for method, row in rows.items()), f"{seconds:.1f} s", flush=True)
    return {"seconds": seconds, "methods": rows}


def searched(network, prices, budget):
    """What each search makes of a network."""
    rows = {}
    for search in SEARCHES:
        said = told("compare", network, "--search", search, "--prices", prices, "--budget", budget, "--json")
        rows[search] = {"input": said["cost"], **said["searches"][0]}
        print(network, search, f"{rows[search]['cost'] / 1e6:.3f} ms of {said['cost'] / 1e6:.3f} in {rows[search]['seconds']:.1f} s", flush=True)
    return rows


def document(found):
    """The tables."""
    name = lambda network: network.removeprefix("paper-")
    text = ["<!-- Made by bench/eqsat.py from bench/results/eqsat.json. Do not edit. -->", "# Equality saturation, compared", ""]
    text += [
        f"Revision {found['revision']}, {found['date']}, prices of `{found['prices']}`, one core of a shared",
        "machine: times are rough. `saturate` and `mcts` end with a descent; see",
        "[searching.md](guide/searching.md). A search is told to end after " + found["budget"] + " (`>`).",
        "", "## Extraction", "", "Costs in ms, each operator priced alone, weights free. `=`: as cheap as `ilp`, which is shown to be the least",
        "wherever it has a `*`. Time of `ilp` in ms, without reading the file.", "",
        "| network | e-graph | operators | " + " | ".join(METHODS) + " | time |", "|---|---|---:|" + "---:|" * (len(METHODS) + 1),
    ]  # fmt: skip
    for row in found["extraction"]:
        methods, best = row["methods"], row["methods"]["ilp"]["cost"]
        same = lambda cost: abs(cost - best) <= 1e-9 * best
        cells = ["=" if method != "ilp" and same(methods[method]["cost"]) else f"{methods[method]['cost'] / 1e6:.4g}" for method in METHODS]
        cells[-1] += "*" if methods["ilp"]["optimal"] else ""
        text.append(f"| {name(row['network'])} | {row['graph']} | {methods['ilp']['nodes']} | " + " | ".join(cells) + f" | {methods['ilp']['seconds'] * 1e3:.0f} |")
    text += ["", "## Searches", "", "Cost of a run in ms, priced in context, and time of the search in s.", ""]
    text += ["| network | input | " + " | ".join(f"{search} | s" for search in SEARCHES) + " |", "|---|---:|" + "---:|---:|" * len(SEARCHES)]
    for network, rows in found["searches"].items():
        least = min(row["cost"] for row in rows.values())
        cells = []
        for search in SEARCHES:
            row = rows[search]
            cost = f"{row['cost'] / 1e6:.4g}"
            late = ">" if row["seconds"] >= run.seconds_of(found["budget"]) else ""
            cells += [f"**{cost}**" if row["cost"] == least else cost, f"{late}{row['seconds']:.1f}"]
        text.append(f"| {name(network)} | {rows['greedy']['input'] / 1e6:.4g} | " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--nodes", type=int, action="append", help="limits of saturation [2000]")
    parser.add_argument("--only", action="append", choices=NETWORKS)
    parser.add_argument("--prices", type=Path, default=PRICES)
    parser.add_argument("--json", type=Path, default=RESULTS)
    args = parser.parse_args()
    found = {"revision": run.revision(), "date": time.strftime("%Y-%m-%d"), "prices": args.prices.name, "budget": args.budget}
    found |= {"extraction": [], "searches": {}}
    if args.only and args.json.exists():
        before = json.loads(args.json.read_text())
        found["extraction"] = [row for row in before["extraction"] if row["network"] not in args.only]
        found["searches"] = {network: rows for network, rows in before["searches"].items() if network not in args.only}
    with tempfile.TemporaryDirectory() as folder:
        prices = models.unpacked(args.prices, folder)
        for network in args.only or NETWORKS:
            graphs = [("as it is", ["--iterations", 0])] + [(f"at most {n}", ["--nodes", n]) for n in args.nodes or [2000]]
            for graph, limits in graphs:
                found["extraction"].append({"network": network, "graph": graph, **extracted(network, limits, prices, folder)})
            found["searches"][network] = searched(network, prices, args.budget)
            args.json.write_text(json.dumps(found, indent=1) + "\n")
    found["extraction"].sort(key=lambda row: (NETWORKS.index(row["network"]), row["graph"] != "as it is"))
    found["searches"] = {network: found["searches"][network] for network in NETWORKS if network in found["searches"]}
    args.json.write_text(json.dumps(found, indent=1) + "\n")
    if args.json == RESULTS:
        DOCS.write_text(document(found))


if __name__ == "__main__":
    main()
