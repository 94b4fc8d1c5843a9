#!/usr/bin/env python3
"""X-RLflow on its seven graphs and on real networks like them, against other searches in equal time
under one price list.

    xrlflow.py [--part PART]... [--budget 30s] [--seeds 5] [--only NAME]... [--prices FILE] [--json FILE] [--fresh]

Parts: `searches` (all searches of a network, and an agent trained on it from nothing within the
same time, with several seeds; as published, and with its defects mended), `shapes` (an agent
trained at one size, at others, against searches that begin anew at each). Rows that are there
already are kept. Costs come from one price list (by default bench/ocggs/prices.jsonl.gz); what is
found within a time depends on the machine.

Writes bench/results/xrlflow.json, docs/xrlflow.md and docs/xrlflow-shapes.svg.
"""

import argparse
import json
import statistics
import tempfile
import textwrap
import time
from pathlib import Path

import models
import plot
import run
from models import told

PRICES = models.ROOT / "bench" / "ocggs" / "prices.jsonl.gz"
RESULTS = models.ROOT / "bench" / "results" / "xrlflow.json"
DOCUMENT = models.ROOT / "docs" / "xrlflow.md"
DRAWING = models.ROOT / "docs" / "xrlflow-shapes.svg"
PAPER = [
    "paper-inception-v3", "paper-squeezenet", "paper-resnext-50", "paper-bert", "paper-dall-e", "paper-t-t", "paper-vit-base",
]  # fmt: skip
REAL = ["inception-v3", "squeezenet-1.1", "resnext-50-branches", "bert-base", "vit-base"]
"""Real networks like five of them; of DALL-E's encoder and of the transducer the zoo has none."""
SEARCHES = ["greedy", "backtrack", "sample", "exact", "mcts", "random", "prior"]
WAYS = {"mended": [], "as published": ["--as-published"]}
SHAPES = {
    "paper-dall-e": {"emit": ["--dynamic"], "train": ["N=16"], "others": [["N=8"], ["N=24"], ["N=32"], ["N=64"]]},
    "inception-v3": {
        "emit": ["--dynamic-field"],
        "train": ["H=299", "W=299"],
        "others": [[f"H={size}", f"W={size}"] for size in (225, 250, 275, 325)],
    },
}
"""Sizes that an agent is trained at, and others (X-RLflow, section 4.5)."""
PARTS = ["searches", "shapes"]
WIDTH = 100


def compared(model, words, options):
    """What each search finds within the budget: speed-ups under the price list."""
    found = told("compare", model, "--search", ",".join(SEARCHES), "--budget", options.budget, "--prices", options.plain, "--json", *words)
    keys = ("speedup", "states", "seconds", "rewrites")
    return {row["search"]: {key: row[key] for key in keys} for row in found["searches"]}


def trained(model, seed, words, options, agent=None):
    """An agent trained from nothing within the budget: the best state that it saw, and what it
    finds then."""
    words = [*words, "--budget", options.budget]
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        agent = agent or Path(folder) / "agent.bin"
        told("policy", "xrlflow", model, "-o", agent, "--seed", seed, "--json", figures, *words)
        found = json.loads(figures.read_text())
    last = found["rounds"][-1] if found["rounds"] else {"episodes": 0, "states": 0, "seconds": 0.0, "last": 1.0}
    return {key: found[key] for key in ("best", "rollouts", "rewrites")} | {key: last[key] for key in ("episodes", "states", "last")}


def searched(network, options):
    row = {"searches": compared(network, [], options)}
    for way, words in WAYS.items():
        words = [*words, "--prices", options.plain]
        row[way] = [trained(network, seed, words, options) for seed in range(options.seeds)]
    print(network, *(f"{name} {one['speedup']:.3f}" for name, one in row["searches"].items()), end="", flush=True)
    print("", *(f"{way} {statistics.fmean(one['best'] for one in row[way]):.3f}" for way in WAYS), flush=True)
    return row


def shaped(network, options):
    """An agent at other sizes than those that it was trained at, under the roofline: a price list
    knows few sizes."""
    plan, folder = SHAPES[network], Path(options.folder)
    model, agent = folder / f"{network}.onnx", folder / f"{network}.bin"
    told("zoo", "emit", network, "-o", model, *plan["emit"])
    bound = lambda sizes: [word for size in sizes for word in ("--bind", size)]
    row = {"budget": options.budget, "trained": trained(model, 0, bound(plan["train"]), options, agent), "sizes": {}}
    for sizes in [plan["train"], *plan["others"]]:
        words = ["--search", "xrlflow,backtrack,exact", "--agent", agent, *bound(sizes), "--budget", options.budget]
        found = told("compare", model, "--json", *words)
        row["sizes"][" ".join(sizes)] = {one["search"]: one["speedup"] for one in found["searches"]}
        print(network, sizes, row["sizes"][" ".join(sizes)], flush=True)
    return row


def spread(values):
    """Mean and standard deviation."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.3f} ± {deviation:.3f}"


def table(found, networks):
    columns = ["network", *SEARCHES, *(f"agent, {way}" for way in WAYS), "episodes"]
    yield "| " + " | ".join(columns) + " |"
    yield "|---" * len(columns) + "|"
    for network in networks:
        if row := found.get(network):
            cells = [f"{row['searches'][search]['speedup']:.3f}" for search in SEARCHES]
            cells += [spread([one["best"] for one in row[way]]) for way in WAYS]
            yield "| " + " | ".join([f"`{network}`", *cells, str(round(statistics.fmean(one["episodes"] for one in row["mended"])))]) + " |"


def alone(found, networks):
    yield "| network | best state seen | last states of episodes | rollouts afterwards |"
    yield "|---|---|---|---|"
    for network in networks:
        if row := found.get(network):
            for way in WAYS:
                cells = [spread([one[key] for one in row[way]]) for key in ("best", "last", "rollouts")]
                if not any(one["episodes"] for one in row[way]):
                    cells[1] = "–"
                yield f"| `{network}`, {way} | " + " | ".join(cells) + " |"


def shape_table(found):
    yield "| network | sizes | agent | `backtrack` | `exact` |"
    yield "|---|---|---|---|---|"
    for network, row in found.items():
        for at, (sizes, one) in enumerate(row["sizes"].items()):
            star = " (trained)" if at == 0 else ""
            yield f"| `{network}` | {sizes}{star} | {one['xrlflow']:.3f} | {one['backtrack']:.3f} | {one['exact']:.3f} |"


def shape_drawing(found):
    """The same as a drawing: a panel for each network, a group for each size."""
    at = lambda speedup: {"speedup": speedup, "low": speedup, "high": speedup}
    searches = {"xrlflow": "agent", "backtrack": "backtrack", "exact": "exact"}
    group = lambda one: [(name, at(one[search])) for search, name in searches.items()]
    panels = [[(f"{network}, {sizes}", group(one)) for sizes, one in row["sizes"].items()] for network, row in found.items()]
    return plot.render(panels, "Speed-ups of one agent and of two searches at several sizes", 0.025)


def document(found):
    fill = lambda text: textwrap.fill(" ".join(text.split()), WIDTH)
    searches, budget = found["searches"], found["budget"]
    vit = [searches[name]["searches"]["greedy"]["speedup"] if name in searches else None for name in ("paper-vit-base", "vit-base")]
    text = ["# X-RLflow", ""]
    text += [fill(f"""Speed-ups under one price list (`{found["prices"]}`; nothing is measured), each search within {budget} on one core of
        {found["processor"]}. An agent is trained from nothing within the same time, with {found["seeds"]} seeds,
        mean and standard deviation; what counts is the best state that it ever saw, which favours it.
        `bench/xrlflow.py` writes this page; the agent is that of [xrlflow.md](guide/xrlflow.md)."""), ""]
    text += ["## The seven graphs of the paper", "", *table(searches, PAPER), ""]
    text += ["## Real networks like them", "", *table(searches, REAL), ""]
    if fewer := [f"`{name}` {len(row['mended'])}" for name, row in searches.items() if len(row["mended"]) < found["seeds"]]:
        text += [fill(f"With fewer seeds: {', '.join(fewer)}."), ""]
    if missing := [f"`{name}`" for name in [*PAPER, *REAL] if name not in searches]:
        text += [fill(f"Not measured yet: {', '.join(missing)}."), ""]
    if None not in vit:
        text += [fill(f"""The gain on the vision transformer, over 40 % in the paper, is one of folding. The published graph has nothing between its
            products, and two products with weights become one with a product of weights: `greedy`, which learns nothing, finds {vit[0]:.2f}x there.
            The real network has a softmax, norms and a GELU between them, and gains {vit[1]:.2f}x."""), ""]
    text += ["## What an agent learns", "", fill("""The best state is one that some episode came by. The last states of the last ten episodes, and
        rollouts after training, tell what was learned: an episode of random rewrites makes a graph slower. A dash stands where there was no time
        for ten episodes, after which an agent learns for the first time: what walks then is as it began."""), ""]
    text += [*alone(searches, [*PAPER, *REAL]), ""]
    if found["shapes"]:
        times = [f"{row['budget']} (`{network}`, {row['trained']['episodes']} episodes)" for network, row in found["shapes"].items()]
        text += ["## Other sizes", "", fill("""An agent trained at one size walks at others, without further training, for the graph is the same (X-RLflow,
            section 4.5). The other searches begin anew at each size. Costs are those of the roofline; searches and training had
            """ + ", ".join(times) + "."), "", *shape_table(found["shapes"]), "", f"![an agent at other sizes]({DRAWING.name})", ""]
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=PARTS, help="all of them if not given")
    parser.add_argument("--budget", default="30s", help="of each search, and of each training")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", action="append", choices=[*PAPER, *REAL])
    parser.add_argument("--prices", type=Path, default=PRICES)
    parser.add_argument("--json", type=Path, default=RESULTS)
    parser.add_argument("--fresh", action="store_true", help="keep nothing of the parts that are made")
    options = parser.parse_args()
    before = json.loads(options.json.read_text()) if options.json.exists() else {}
    found = {"revision": run.revision(), "date": time.strftime("%Y-%m-%d"), "prices": options.prices.name, "budget": options.budget}
    if "searches" not in (options.part or PARTS):
        found["budget"] = before.get("budget", options.budget)
    found |= {"processor": run.processor(), "seeds": options.seeds} | {part: before.get(part, {}) for part in PARTS}
    make = {"searches": (searched, [*PAPER, *REAL]), "shapes": (shaped, list(SHAPES))}
    with tempfile.TemporaryDirectory() as folder:
        options.folder, options.plain = folder, models.unpacked(options.prices, folder)
        for part in options.part or PARTS:
            found[part] = {} if options.fresh else found[part]
            measure, networks = make[part]
            for network in networks:
                if network not in found[part] and (options.only is None or network in options.only):
                    found[part][network] = measure(network, options)
                    options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.json == RESULTS:
        DOCUMENT.write_text(document(found))
        DRAWING.write_text(shape_drawing(found["shapes"]))


if __name__ == "__main__":
    main()
