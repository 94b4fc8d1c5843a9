#!/usr/bin/env python3
"""Compares what the program gains on the zoo's networks with open sizes with what it gains on the
same networks with fixed ones.

    open.py [PATTERN] [--field] [--budget 60s] [--seconds S] [--threads N] [--json FILE] [--resume] [--keep FOLDER]

Both forms are optimized at batch 1, each with a fresh store, and judged independently (ab.py). The
outputs of the open result are compared with those of its input at other sizes, too: batches 2, 3
and 5, and with --field, which opens height and width (or length) as well, other fields, odd ones
among them. The geometric mean is that of the ratio between the two gains. Exit code 0 if no row is
at fault.
"""

import argparse
import fnmatch
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import onnxruntime

import ab
import models
import run

DEFAULT_JSON = models.ROOT / "bench" / "results" / "open.json"
SCHEMA = 1
"""Version of the layout of the results."""
BATCHES = (1, 2, 3, 5)
"""Batches at which the outputs of the open result are compared."""
FIELDS = ((0, 0), (1, -3), (17, 32), (-7, 5), (40, 11), (96, 63))
"""Changes of height and width (or of length, by the first) at which they are compared as well, at
batch 1."""
FORMS = ("closed", "open")


def zoo(pattern, field):
    """Entries of the zoo that match and can be open."""
    listing = subprocess.run([models.program(), "zoo", "list", "--json"], check=True, capture_output=True, text=True).stdout
    needed = "dynamic_field" if field else "dynamic"
    return [entry for entry in json.loads(listing) if entry[needed] and fnmatch.fnmatch(entry["name"], pattern)]


def emit(entry, form, folder, field):
    """The path of a network in this form."""
    path = folder / f"{entry['name']}.{form}.input.onnx"
    command = [models.program(), "zoo", "emit", entry["name"], "-o", path, "--quiet"]
    if form == "open":
        command += ["--dynamic", "--dynamic-field"] if field else ["--dynamic"]
    subprocess.run(command, check=True)
    return path


def sized(entry, batch, change=(0, 0)):
    """Sizes of all inputs, by name. Only images and recordings have a field to change."""
    sizes = {}
    for value in entry["inputs"]:
        first, channels, *rest = value["dims"]
        rest = [size + by for size, by in zip(rest, change)] if any(change) else rest
        sizes[value["name"]] = [batch * first, channels, *rest]
    return sizes


def difference(base, other, shapes, options):
    """How far the outputs are apart at these sizes, and what the runtime's own optimizer does to
    those of the base."""
    runtime = ab.runtime(ab.DEFAULT)
    plain = runtime.open(base, options.threads, optimize=False)
    feeds = ab.make_feeds(plain, shapes, options.seed)
    wanted = plain.run(feeds)
    return [ab.difference(wanted, runtime.open(path, options.threads).run(feeds)) for path in (other, base)]


def elsewhere(entry, base, other, options):
    """The outputs at other sizes: the sizes, the difference, the noise floor."""
    cases = [sized(entry, batch) for batch in BATCHES]
    if options.field:
        cases += [sized(entry, 1, change) for change in FIELDS[1:]]
    rows = []
    for shapes in cases:
        label = " ".join(f"{name}:{'x'.join(map(str, sizes))}" for name, sizes in shapes.items())
        try:
            gap, floor = difference(base, other, shapes, options)
        except Exception as error:  # The runtime's own errors share no class; any of them is a result that does not run.
            gap, floor, label = math.inf, 0.0, f"{label}: {' '.join(str(error).split())[:120]}"
        rows.append({"sizes": label, "difference": gap if math.isfinite(gap) else None, "floor": floor})
    return rows


def measure(entry, options, folder):
    """The row of a network."""
    row = {"model": entry["name"]}
    for form in FORMS:
        label = f"{entry['name']}.{form}"
        path = emit(entry, form, folder, options.field)
        models.SHAPES[label] = [f"{name}:{','.join(map(str, sizes))}" for name, sizes in sized(entry, 1).items()]
        one, out = run.optimize(label, path, options.keep or folder, options)
        if out:
            one = run.prove(run.judge(one, path, out, options), path, out)
            if form == "open":
                row["elsewhere"] = elsewhere(entry, path, out, options)
        row[form] = one
        path.unlink()
    return row


def gain(row, form):
    return row[form]["independent"]["speedup"] if "independent" in row[form] else 1.0


def faults(row):
    """What is wrong with a row, in words."""
    found = [f"{form} {fault}" for form in FORMS for fault in run.faults(row[form])]
    for case in row.get("elsewhere", []):
        allowed = max(row["open"]["check"]["tolerance"], run.ROUNDING * case["floor"])
        if case["difference"] is None or case["difference"] > allowed:
            found.append(f"differs at {case['sizes']}")
    return found


HEAD = f"{'model':24} {'closed':>7} {'95 % interval':^16} {'open':>7} {'95 % interval':^16} {'ratio':>6} {'error':>8} rules of the open one"


def line(row):
    def shown(form):
        verdict = row[form].get("independent")
        return f"{verdict['speedup']:7.3f} [{verdict['low']:.3f}, {verdict['high']:.3f}]" if verdict else f"{'-':>7} {'':16}"

    worst = max((math.inf if case["difference"] is None else case["difference"] for case in row.get("elsewhere", [])), default=0.0)
    rules = ", ".join(f"{name} x{count}" if count > 1 else name for name, count in list(row["open"].get("rules", {}).items())[:4])
    remark = "".join(f" {fault.upper()}" for fault in faults(row))
    remark += "".join(f" {row[form]['error']}" for form in FORMS if "error" in row[form])
    return f"{row['model']:24} {shown('closed')} {shown('open')} {gain(row, 'open') / gain(row, 'closed'):6.3f} {worst:8.1e} {rules}{remark}"


def mean(rows):
    """Geometric mean of the ratios between the gains."""
    ratios = [gain(row, "open") / gain(row, "closed") for row in rows]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1.0


def save(rows, options):
    results = {
        "schema": SCHEMA,
        "date": time.strftime("%Y-%m-%d"),
        "revision": run.revision(),
        "processor": run.processor(),
        "runtime": f"onnxruntime {onnxruntime.__version__}",
        "threads": options.threads,
        "budget": options.budget or "default",
        "seed": options.seed,
        "opened": "batch, height, width and length" if options.field else "batch",
        "geometric_mean": mean(rows),
        "models": rows,
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    partial = options.json.with_suffix(".tmp")
    partial.write_text(json.dumps(results, indent=1) + "\n")
    partial.rename(options.json)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="*")
    parser.add_argument("--field", action="store_true", help="open height and width, or length, as well")
    parser.add_argument("--budget", help="of each optimization; the command's default if not given")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each independent measurement")
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON, help="results")
    parser.add_argument("--resume", action="store_true", help="keep the rows that the results have already")
    parser.add_argument("--keep", type=Path, help="folder for the optimized models and reports; they are removed if not given")
    options = parser.parse_args()
    options.cost_store = None
    chosen = zoo(options.pattern, options.field)
    if not chosen:
        sys.exit(f"open: no network that can be open matches {options.pattern}")
    rows = json.loads(options.json.read_text())["models"] if options.resume and options.json.exists() else []
    known = {row["model"] for row in rows}
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    print(HEAD)
    for row in rows:
        print(line(row))
    for entry in chosen:
        if entry["name"] in known:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            rows.append(measure(entry, options, Path(scratch)))
        save(rows, options)
        print(line(rows[-1]), flush=True)
    at_fault = [f"{row['model']} ({', '.join(faults(row))})" for row in rows if faults(row)]
    print(f"{len(rows)} networks, geometric mean of open/closed {mean(rows):.3f}, at fault: {', '.join(at_fault) or 'none'}")
    sys.exit(1 if at_fault else 0)


if __name__ == "__main__":
    main()
