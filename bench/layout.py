#!/usr/bin/env python3
"""What choosing layouts together with rewrites gains, on every network of the zoo: beside rewrites
first and layouts then, layouts first and rewrites then, and each alone.

    layout.py [--only PATTERN]... [--skip PATTERN]... [--target NAME]... [--search NAME] [--budget 10s] [--minutes M] [--json FILE]
    layout.py --check

One search, `greedy` unless told otherwise, runs for each of the five orders; `regraft compare
--target` says what they are. Targets are `gpu-model`, a roofline of published figures which nobody
measured, and `onnxruntime-cpu` under the price list of bench/ocggs.py. Costs are the same on every
machine, unless a search ran out of time; times are not. Results that are there already are kept;
--minutes ends the program early, and another call goes on.

With --check, it only counts the reorders that the installed ONNX Runtime makes in some networks,
beside those that `onnxruntime-cpu` describes; the processor must have AVX-512, as the target says.

Writes bench/results/layout.json and docs/layout.md.
"""

import argparse
import fnmatch
import json
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import exact
import models
import run

RESULTS = models.ROOT / "bench" / "results" / "layout.json"
DOCS = models.ROOT / "docs" / "layout.md"
MODES = ["none", "only", "last", "first", "joint"]
TARGETS = {"gpu-model": "A model of a GPU", "onnxruntime-cpu": "ONNX Runtime on a processor"}
CHECKED = ["squeezenet-1.1", "resnet-18", "resnext-50", "mobilenet-v2", "mobilenet-v3-large", "inception-v3", "nasnet-a"]
"""Networks in which reorders are counted."""
SAME = 1e-3
"""Costs that differ by less, relative, are told as the same."""


def compare(network, target, search, prices, budget):
    """One row: what a search makes of a network in all orders."""
    command = [str(models.program()), "compare", network, "--search", search, "--target", target, "--budget", budget, "--json"]
    command += ["--prices", str(prices)] if target == "onnxruntime-cpu" else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"layout: {' '.join(command)}: {done.stderr.strip()}")
    said = json.loads(done.stdout)
    row = {"network": network, "target": target, "search": search, "nodes": said["nodes"], "input": said["cost"], "modes": {}}
    for found in said["searches"]:
        layouts = found["layouts"]
        keep = {key: found[key] for key in ("cost", "rewrites", "states", "complete", "seconds")}
        keep |= {key: layouts[key] for key in ("laid_out", "changes", "changes_cost", "bound")}
        row["modes"][layouts["mode"]] = keep
    shown = " ".join(f"{mode} {row['modes'][mode]['cost'] / 1e6:.4f}" for mode in MODES)
    seconds = sum(mode["seconds"] for mode in row["modes"].values())
    print(f"{network:22} {target:16} {row['input'] / 1e6:10.4f} ms: {shown}  {seconds:.1f} s", flush=True)
    return row


def reorders(network, prices, scratch):
    """How many reorders the runtime makes in a network, and how many are described."""
    import onnx
    import onnxruntime

    written, optimized = (Path(scratch) / f"{network}.{name}.onnx" for name in ("written", "optimized"))
    subprocess.run([models.program(), "zoo", "emit", network, "-o", written], check=True, capture_output=True)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(optimized)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(written, options, providers=["CPUExecutionProvider"])
    nodes = onnx.load(optimized, load_external_data=False).graph.node
    made = sum(node.op_type in ("ReorderInput", "ReorderOutput") for node in nodes)
    command = [str(models.program()), "compare", network, "--search", "greedy", "--target", "onnxruntime-cpu", "--layout", "only", "--json"]
    said = subprocess.run([*command, "--prices", str(prices)], check=True, capture_output=True, text=True).stdout
    described = json.loads(said)["searches"][0]["layouts"]["changes"]
    print(f"{network:22} {made} reorders made, {described} described", flush=True)
    return {"made": made, "described": described}


def checked(results):
    """How well reorders are described, in sentences."""
    counts = results["reorders"]
    same = [f"{network} {count['made']}" for network, count in counts.items() if count["made"] == count["described"]]
    other = [(network, count) for network, count in counts.items() if count["made"] != count["described"]]
    rest = "; ".join(f"{network}: {count['made']} made, {count['described']} described" for network, count in other)
    said = f"Reorders in the graphs that the runtime makes of {len(counts)} networks of the zoo, beside those described: the same number in"
    return f"{said} {len(same)} ({', '.join(same)})" + (f"; {rest}." if rest else ".")


def cost(row, mode):
    return row["modes"][mode]["cost"]


def beside(row):
    """What the best of the other orders costs, relative to `joint`."""
    return min(cost(row, mode) for mode in MODES if mode != "joint") / cost(row, "joint")


def filled(text):
    return textwrap.fill(text, exact.WIDTH, break_on_hyphens=False)


def listed(rows):
    return ", ".join(f"{row['network']} ({beside(row):.3f})" for row in rows)


def summary(rows):
    """What a table shows, in sentences."""
    means = {mode: statistics.geometric_mean(row["input"] / cost(row, mode) for row in rows) for mode in MODES}
    said = "Geometric means of the speed-ups under these prices: " + ", ".join(f"`{mode}` {means[mode]:.3f}" for mode in MODES) + "."
    over_last = statistics.geometric_mean(cost(row, "last") / cost(row, "joint") for row in rows)
    better = [row for row in rows if beside(row) > 1 + SAME]
    worse = [row for row in rows if beside(row) < 1 - SAME]
    gains = [row for row in rows if cost(row, "last") / cost(row, "joint") > 1 + SAME]
    firsts = [row for row in rows if cost(row, "first") / cost(row, "joint") > 1 + SAME]
    said += f" `joint` beside `last`: {over_last:.3f} times as fast, cheaper on {len(gains)} of {len(rows)} networks; it is cheaper than"
    said += f" `first` on {len(firsts)}. It is cheaper than all other orders on {len(better)}" + (f": {listed(better)}." if better else ".")
    said += f" It is dearer than one of them on {len(worse)}" + (f": {listed(worse)}." if worse else ".")
    open_ = [row["network"] for row in rows if any(mode["bound"] < mode["cost"] for mode in row["modes"].values())]
    if rows[0]["target"] != "onnxruntime-cpu":
        said += " Layouts are shown to be the cheapest for their graph on all networks"
        said += f" but {', '.join(open_)}." if open_ else "."
    late = [row["network"] for row in rows if not all(mode["complete"] for name, mode in row["modes"].items() if name != "only")]
    if late:
        said += f" A search ran out of time on {', '.join(late)}."
    return said


def pace(rows):
    """How long a state takes, in sentences."""
    per = {mode: sum(row["modes"][mode]["seconds"] for row in rows) / sum(row["modes"][mode]["states"] for row in rows) for mode in MODES}
    slow = max(rows, key=lambda row: row["modes"]["joint"]["seconds"])
    return (
        f"A state takes {1e6 * per['joint']:.0f} us with `joint` and {1e6 * per['none']:.0f} us with `none`, on average over all states of"
        f" these runs; the longest search, of {slow['network']}, takes {slow['modes']['joint']['seconds']:.1f} s instead of"
        f" {slow['modes']['none']['seconds']:.1f} s. (On a machine with other work beside.)"
    )


def table(rows):
    heads = ["network", "nodes", "input, ms", *(f"`{mode}`" for mode in MODES), "best other / `joint`", "laid out", "changes"]
    lines = [f"| {' | '.join(heads)} |"]
    lines.append("|---|---:|---:|" + "---:|" * (len(MODES) + 3))
    for row in rows:
        least = min(cost(row, mode) for mode in MODES)
        shown = [f"{row['input'] / cost(row, mode):.3f}" for mode in MODES]
        shown = [f"**{one}**" if cost(row, mode) <= least * (1 + SAME) else one for one, mode in zip(shown, MODES)]
        joint = row["modes"]["joint"]
        cells = [row["network"], str(row["nodes"]), f"{row['input'] / 1e6:.3f}", *shown, f"{beside(row):.3f}", str(joint["laid_out"])]
        lines.append("| " + " | ".join([*cells, str(joint["changes"])]) + " |")
    return lines


def write(results):
    """The page."""
    about = (
        f"Revision {results['revision']}, {results['date']}, {results['processor']}, one core; search: {results['search']}, at most"
        f" {results['budget']} for each order. Speed-ups are those of the price list: nothing here was timed. `none`: rewrites, with"
        " everything in the plain layout. `only`: layouts, and no rewrites. `last`: rewrites as with `none`, then layouts. `first`:"
        " layouts, then rewrites, where operators like those of the input keep their layouts. `joint`: every state of the search costs"
        " what it costs in its best layouts. Bold: within a thousandth of the cheapest. Laid out: operators of the result of `joint` in"
        " other layouts than the plain one; changes: values that are brought into another layout."
    )
    if results.get("left_out"):
        about += f" Left out, for the time that they take: {', '.join(results['left_out'])}."
    text = ["<!-- Made by bench/layout.py from bench/results/layout.json. Do not edit. -->"]
    text += ["# Layouts chosen with rewrites, before, or after", ""]
    text += [filled(about), ""]
    notes = {
        "gpu-model": "Prices are a model, and no GPU was there to measure on. `crates/cost/targets/gpu-model.json` has the figures and"
        " where they come from: those that NVIDIA publishes for the A100, and 2 us for launching a kernel, which is assumed.",
        "onnxruntime-cpu": "The runtime chooses its blocked layout by itself, so the columns differ only in what the search knows of that."
        " Operators cost what the recorded list says, without the changes that it charges for; these cost what was measured for reorders."
        " Since the runtime lays out every result, `none`, `last` and `first` are one, and `only` is the input.",
    }
    for target, title in TARGETS.items():
        rows = [row for row in results["rows"] if row["target"] == target]
        if rows:
            text += [f"## {title} (`{target}`)", "", filled(notes[target]), ""]
            text += [filled(summary(rows)), ""]
            if target == "onnxruntime-cpu" and results.get("reorders"):
                text += [filled(checked(results)), ""]
            text += [filled(pace(rows)), "", *table(rows), ""]
    DOCS.write_text("\n".join(text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="networks that match, as a pattern of names; all of them if not given")
    parser.add_argument("--skip", action="append", default=[], help="networks that match are left out")
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="targets; all of them if not given")
    parser.add_argument("--search", default="greedy", help="the search")
    parser.add_argument("--budget", default="10s", help="of each search")
    parser.add_argument("--minutes", type=float, help="begin nothing after so many minutes")
    parser.add_argument("--json", type=Path, default=RESULTS, help="results; rows that are there already are kept")
    parser.add_argument("--page", action="store_true", help="only write the page from the results")
    parser.add_argument("--check", action="store_true", help="only count reorders")
    options = parser.parse_args()
    results = {"date": time.strftime("%Y-%m-%d"), "revision": run.revision(), "processor": run.processor()}
    results |= {"search": options.search, "budget": options.budget, "rows": []}
    if options.json.exists():
        known = json.loads(options.json.read_text())
        if (known["search"], known["budget"]) != (results["search"], results["budget"]):
            sys.exit(f"layout: {options.json} has another search or budget; name another file with --json")
        results = known if options.page or options.check else results | {key: known[key] for key in ("rows", "reorders") if key in known}
    seen = {(row["network"], row["target"]) for row in results["rows"]}
    wanted = [name for name in exact.networks() if not options.only or any(fnmatch.fnmatch(name, pattern) for pattern in options.only)]
    wanted = [name for name in wanted if not any(fnmatch.fnmatch(name, pattern) for pattern in options.skip)]
    until = time.monotonic() + 60 * options.minutes if options.minutes else None
    with tempfile.TemporaryDirectory() as scratch:
        prices = models.unpacked(exact.PRICES, scratch)
        if options.check:
            results["reorders"] = {network: reorders(network, prices, scratch) for network in CHECKED}
            options.json.write_text(json.dumps(results, indent=1) + "\n")
        for target in [] if options.page or options.check else options.target or list(TARGETS):
            for network in wanted:
                if (network, target) in seen or until and time.monotonic() > until:
                    continue
                results["rows"].append(compare(network, target, options.search, prices, options.budget))
                options.json.parent.mkdir(parents=True, exist_ok=True)
                options.json.write_text(json.dumps(results, indent=1) + "\n")
    kept = {row["network"] for row in results["rows"]}
    results["left_out"] = [network for network in exact.networks() if network not in kept]
    options.json.write_text(json.dumps(results, indent=1) + "\n")
    if options.json == RESULTS:
        write(results)


if __name__ == "__main__":
    main()
