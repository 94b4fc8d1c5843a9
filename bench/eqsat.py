#!/usr/bin/env python3
"""Equality saturation on the 13 networks of the PACT 2024 paper on it: its Tables 1 and 2, its heat
maps, and searches of the networks.

    eqsat.py [--part PART]... [--pair PAIR]... [--budget 30s] [--seeds 5] [--only NAME]... [--prices FILE] [--json FILE] [--fresh]

Parts: `extraction` (Table 1: the e-graph of each network as it is, and after saturation with at
most 2,000 operators, by each method), `pairs` (Table 2: tree search with each pair of methods,
within simulations and at the end, several seeds, against saturation within the same limit),
`traces` (one run of each in steps, for the drawings), `searches` (with a descent at the end,
against greedy and exact). Rows that are there already are kept. Costs come from one price list (by
default bench/ocggs/prices.jsonl.gz) and are the same on every machine; times are not.

Writes bench/results/eqsat.json, docs/eqsat.md and docs/eqsat-*.svg.
"""

import argparse
import json
import resource
import statistics
import tempfile
import textwrap
import time
from pathlib import Path

import egraphs
import models
import run
from models import told

PRICES = models.ROOT / "bench" / "ocggs" / "prices.jsonl.gz"
RESULTS = models.ROOT / "bench" / "results" / "eqsat.json"
DOCS = models.ROOT / "docs"
NETWORKS = {
    "paper-bert": 44, "paper-inception-v3": 3, "paper-mobilenet-v2": 388, "paper-nasnet-a": 1114, "paper-nasrnn": 115, "paper-resnet-50": 10,
    "paper-resnext-50": 101, "paper-squeezenet": 337, "paper-vgg-19": 1, "paper-t-t": None, "paper-vit-base": None, "paper-vit-large": None,
    "paper-vit-huge": None,
}  # fmt: skip
"""The networks, and the time of the paper's search in s, where it is known."""
METHODS = ["tree", "shared", "greedy-dag", "ilp"]
PAIRS = ["sets/ilp", "shared/ilp", "shared/shared", "tree/tree", "tree/ilp", "ilp/ilp"]
"""Methods within simulations and at the end: ours, and those of the paper."""
NODES = 2000
SEARCHES = ["greedy", "exact", "saturate", "mcts"]
PARTS = ["extraction", "pairs", "traces", "searches"]
WIDTH = 100


def extracted(network, options):
    """What each method makes of two e-graphs."""
    found = []
    for graph, limits in [("as it is", ["--iterations", 0]), (f"at most {NODES}", ["--nodes", NODES])]:
        path = Path(options.folder) / "e.json"
        told("egraph", "dump", network, "-o", path, "--prices", options.plain, *limits)
        rows = {method: told("egraph", "extract", path, "--method", method, "--json", "--time", "60s") for method in METHODS}
        keys = ("nodes", "classes", "cost", "bound", "optimal", "seconds")
        found.append({"graph": graph, "methods": {method: {key: row[key] for key in keys} for method, row in rows.items()}})
        print(network, graph, *(f"{method} {row['cost'] / 1e6:.3f}" for method, row in rows.items()), flush=True)
    return found


def searched(network, options, *words):
    """One search of e-graphs on one thread, with the processor time that it took, prices read
    included."""
    spent = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    before = spent()
    limits = ["--nodes", NODES, "--time", options.budget, "--threads", 1]
    row = told("egraph", "search", network, "--prices", options.plain, *limits, "--json", *words)
    row["processor"] = spent() - before
    print(network, *words, f"{row['cost'] / 1e6:.3f} of {row['input'] / 1e6:.3f} in {row['processor']:.1f} s", flush=True)
    return row


def paired(network, pair, options):
    """Table 2: saturation once, since nothing in it is random; a pair with several seeds."""
    if pair == "saturation":
        rows = [searched(network, options, "--by", "saturation")]
    else:
        main, final = pair.split("/")
        rows = [searched(network, options, "--main", main, "--final", final, "--seed", seed) for seed in range(options.seeds)]
    return [{key: row[key] for key in ("input", "cost", "processor", "complete")} for row in rows]


def traced(network, options):
    """The steps of saturation and of tree search, for the drawings."""
    rows = {by: searched(network, options, "--by", by, "--trace") for by in ("saturation", "mcts")}
    return {by: {"steps": row["steps"], "rewrites": row["rewrites"]} for by, row in rows.items()}


def compared(network, options):
    """The network by searches of the engine, each to the end of its budget."""
    rows = {}
    for search in SEARCHES:
        said = told("compare", network, "--search", search, "--prices", options.plain, "--budget", options.budget, "--json")
        rows[search] = {"input": said["cost"], **said["searches"][0]}
        rows[search].pop("regions", None)
        print(network, search, f"{rows[search]['cost'] / 1e6:.3f} ms of {said['cost'] / 1e6:.3f} in {rows[search]['seconds']:.1f} s", flush=True)
    return rows


def name(network):
    return network.removeprefix("paper-")


def extraction_table(found):
    text = [f"| network | e-graph | operators | {' | '.join(METHODS)} | time, ms |", "|---|---|---:|" + "---:|" * (len(METHODS) + 1)]
    for network, graphs in found.items():
        for row in graphs:
            methods, best = row["methods"], row["methods"]["ilp"]["cost"]
            cells = []
            for method in METHODS:
                cost = methods[method]["cost"]
                cells.append("=" if method != "ilp" and abs(cost - best) <= 1e-9 * best else f"{cost / 1e6:.4g}")
            cells[-1] += "*" if methods["ilp"]["optimal"] else ""
            time_of = methods["ilp"]["seconds"] * 1e3
            text.append(f"| {name(network)} | {row['graph']} | {methods['ilp']['nodes']} | {' | '.join(cells)} | {time_of:.0f} |")
    proved = [sum(graphs[at]["methods"]["ilp"]["optimal"] for graphs in found.values()) for at in (0, 1)]
    text += ["", f"`ilp` shows the least cost of {proved[0]} of {len(found)} e-graphs as they are, and of {proved[1]} after saturation."]
    return text


def spread(values, digits):
    """Mean and deviation."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if deviation < 0.5 * 10**-digits else f"{mean} ± {deviation:.{digits}f}"


def gain(row):
    """The paper's speed-up: what is saved, in percent of the input."""
    return 100 * (1 - row["cost"] / row["input"])


def pair_table(found):
    # Of a pair that was not run on all networks, nothing is shown.
    names = [each for each in ["saturation", *PAIRS] if all(each in rows for rows in found.values())]
    text = [f"| network | {' | '.join(f'{each} | s' for each in names)} | paper, s |", "|---|" + "---:|" * (2 * len(names) + 1)]
    for network, rows in found.items():
        means = {each: statistics.mean(map(gain, rows[each])) for each in names}
        cells = []
        for each in names:
            saved = spread(list(map(gain, rows[each])), 2)
            cells.append(f"**{saved}**" if means[each] >= max(means.values()) - 0.005 else saved)
            cells.append(spread([row["processor"] for row in rows[each]], 1))
        text.append(f"| {name(network)} | {' | '.join(cells)} | {NETWORKS[network] or '–'} |")
    return text


def verdict(found):
    """How tree search with our pair does against saturation."""
    own, better, worse, slow = PAIRS[0], [], [], []
    for network, rows in found.items():
        # What the one ends with above the other, in percent.
        mean = statistics.mean(100 * (row["cost"] / rows["saturation"][0]["cost"] - 1) for row in rows[own])
        if mean <= -3:
            better.append(f"{name(network)} ({-mean:.1f} %)")
        elif mean > 0.05:
            worse.append(f"{name(network)} ({mean:.1f} %)")
        time_of = statistics.mean(row["processor"] for row in rows[own])
        if NETWORKS[network] and time_of > NETWORKS[network] / 10:
            slow.append(f"{name(network)} ({time_of:.1f} s of {NETWORKS[network]} s)")
    said = f"`{own}` ends at least 3 % below saturation in {', '.join(better) or 'no network'}; above it in {', '.join(worse) or 'none'}."
    said += f" It takes more than a tenth of the paper's time in {', '.join(slow) or 'none'}."
    return textwrap.fill(said, WIDTH)


def search_table(found, budget):
    text = ["| network | input | " + " | ".join(f"{search} | s" for search in SEARCHES) + " |", "|---|---:|" + "---:|---:|" * len(SEARCHES)]
    for network, rows in found.items():
        least = min(row["cost"] for row in rows.values())
        cells = []
        for search in SEARCHES:
            cost, late = f"{rows[search]['cost'] / 1e6:.4g}", ">" if rows[search]["seconds"] >= run.seconds_of(budget) else ""
            cells += [f"**{cost}**" if rows[search]["cost"] == least else cost, f"{late}{rows[search]['seconds']:.1f}"]
        text.append(f"| {name(network)} | {rows['greedy']['input'] / 1e6:.4g} | {' | '.join(cells)} |")
    return text


def against_exact(found, traces):
    """Who finds what the other does not."""
    text = ["| network | `exact` | e-graphs | difference | rewrites that lead there in an e-graph |", "|---|---:|---:|---:|---|"]
    for network, rows in found.items():
        exact, ours = rows["exact"]["cost"], min(rows["saturate"]["cost"], rows["mcts"]["cost"])
        share = 100 * (ours / exact - 1)
        if abs(share) < 0.005:
            continue
        rewrites = (traces.get(network) or {}).get("mcts", {}).get("rewrites", {})
        top = sorted(rewrites.items(), key=lambda item: (-item[1], item[0]))[:3]
        shown = ", ".join(f"{count} × {rule}" for rule, count in top)
        text.append(f"| {name(network)} | {exact / 1e6:.4g} | {ours / 1e6:.4g} | {share:+.2f} % | {shown} |")
    return text


def document(found):
    head = f"""Revision {found['revision']}, {found['date']}, prices of `{found['prices']}`, on a shared machine of two cores: times are rough. Costs in ms.
        A search is told to end after {found['budget']} (`>`)."""
    table2 = f"""At most {NODES:,} operators, without a descent at the end. What is saved of a run, in percent of the input, priced in context; mean and
        deviation of {found['seeds']} seeds. Pairs are the methods of extraction within simulations and at the end: `tree` is the paper's DCF,
        `shared` its OCF, `sets` is `greedy-dag` without local search. `saturation` is TENSAT's search within the same limit; tree search
        tries that, too, and so is never above it. Times are processor time on one thread, reading prices included. Last column: time of the paper's search with OCF/ILP."""
    exact = """What `exact` and the better of `saturate` and `mcts` end with, where the two differ. E-graphs win where products must be taken
        apart and put together in another order before anything is gained: each step alone costs more, and `exact` would have to visit all
        of the states between. `exact` wins where one choice needs many operators at once: with a limit on operators, they are made for
        some places only."""
    fill = lambda words: textwrap.fill(" ".join(words.split()), WIDTH)
    text = ["<!-- Made by bench/eqsat.py from bench/results/eqsat.json. Do not edit. -->", "# Equality saturation, compared", "", fill(head), ""]
    if found["extraction"]:
        priced = "Each operator priced alone, weights free. `=`: as cheap as `ilp`, which is shown to be the least wherever it has a `*`. Time is that of `ilp`, without reading the file."
        text += ["## Table 1: extraction", "", fill(priced), "", *extraction_table(found["extraction"]), ""]
    if found["pairs"]:
        text += ["## Table 2: tree search", "", fill(table2), "", *pair_table(found["pairs"]), "", verdict(found["pairs"]), ""]
    if found["traces"]:
        drawn = "How often each rule was applied to the e-graph of each network, by saturation and by tree search with one seed; the rules applied most."
        grown = "The cheapest graph over the number of e-nodes, each e-node priced alone, as a share of the input. Tree search chooses what to fill the e-graph with."
        text += ["## Rules and growth", "", fill(drawn), "", "![applications of rules](eqsat-rules.svg)", "", fill(grown), "", "![cost over e-nodes](eqsat-growth.svg)", ""]
    if found["searches"]:
        also = "With a descent at the end, `saturate` with at most 10,000 operators; see [searching.md](guide/searching.md)."
        text += ["## Against other searches", "", fill(also), "", *search_table(found["searches"], found["budget"]), ""]
        text += ["## Against `exact`", "", fill(exact), "", *against_exact(found["searches"], found["traces"]), ""]
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=PARTS, help="all of them if not given")
    parser.add_argument("--budget", default="30s", help="of each search")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--pair", action="append", choices=PAIRS, help="of methods; all of them if not given")
    parser.add_argument("--only", action="append", choices=NETWORKS)
    parser.add_argument("--prices", type=Path, default=PRICES)
    parser.add_argument("--json", type=Path, default=RESULTS)
    parser.add_argument("--fresh", action="store_true", help="keep nothing of the parts that are made")
    options = parser.parse_args()
    found = {"revision": run.revision(), "date": time.strftime("%Y-%m-%d"), "prices": options.prices.name, "budget": options.budget}
    before = json.loads(options.json.read_text()) if options.json.exists() else {}
    found |= {"seeds": options.seeds} | {part: before.get(part, {}) for part in PARTS}
    make = {"extraction": extracted, "traces": traced, "searches": compared}
    with tempfile.TemporaryDirectory() as folder:
        options.folder, options.plain = folder, models.unpacked(options.prices, folder)
        for part in options.part or PARTS:
            found[part] = {} if options.fresh else found[part]
            networks = options.only or NETWORKS
            keep = lambda: options.json.write_text(json.dumps(found, indent=1) + "\n")
            if part == "pairs":
                for pair in ["saturation", *(options.pair or PAIRS)]:
                    for network in networks:
                        rows = found[part].setdefault(network, {})
                        if pair not in rows:
                            rows[pair] = paired(network, pair, options)
                            keep()
                continue
            for network in networks:
                if network not in found[part]:
                    found[part][network] = make[part](network, options)
                    keep()
    for part in PARTS:
        found[part] = {network: found[part][network] for network in NETWORKS if network in found[part]}
    options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.json == RESULTS:
        (DOCS / "eqsat.md").write_text(document(found))
        if found["traces"]:
            (DOCS / "eqsat-rules.svg").write_text(egraphs.heat_map(found["traces"]))
            (DOCS / "eqsat-growth.svg").write_text(egraphs.growth(found["traces"]))


if __name__ == "__main__":
    main()
