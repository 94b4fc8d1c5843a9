#!/usr/bin/env python3
"""Optimizes every model of the corpus, judges each result independently (ab.py), prints a table and
writes JSON.

    run.py [PATTERN] [--target RUNTIME] [--budget 60s] [--threads N] [--seconds S] [--cost-store FILE] [--json FILE] [--resume] [--keep FOLDER] [--replay] [--discard]

The command is run as a user runs it, with as many threads as the runtime uses by itself unless told
otherwise. Each result is then timed with so many threads and with one, under the runtime that it
was made for; with `--target fastest`, against the input on either runtime. The command's exit code
and its own claim are kept beside the independent measurement, and a model that fails is a row of
the table like any other. Exit code 0 if no row is at fault: none failed, and no result is slower
than its input (at either number of threads) by more than the input seems to be than itself, differs
from it, is not proved to be the same, or is too large.
"""

import argparse
import functools
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import ab
import models
import runtimes

DEFAULT_JSON = models.ROOT / "bench" / "results" / "corpus.json"
SCHEMA = 1
"""Version of the layout of the results."""
ROUNDING = 10.0
"""Outputs may differ by this many times as much as the runtime's own optimizer moves those of the
input."""
PATIENCE = 300.0
"""Seconds that replaying one certificate may take."""
GRACE = 3.0
"""The command is stopped after this many times its budget."""


FIRST, FASTEST = ab.DEFAULT, "fastest"
"""The runtime that all are compared on, and the target that stands for all of them."""

PROVED = ("identical graph", "proved", "bounded")
"""What `regraft check` says of a result that is proved to be the input, up to the rounding of
constants."""


def seconds_of(text):
    """`60s`, `5m`, `90`."""
    units = {"s": 1, "m": 60, "h": 3600}
    return float(text[:-1]) * units[text[-1]] if text[-1:] in units else float(text)


def processor():
    """Name of the processor, as the system gives it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def optimize(name, path, folder, options):
    """Runs the command on one model: its row, without the independent measurement, and the path of
    the result."""
    out, report = folder / f"{name}.onnx", folder / f"{name}.json"
    command = [str(models.program()), "optimize", str(path), "-o", str(out), "--report", str(report)]
    command += ["--target", options.target, "--threads", str(options.threads), "--seed", str(options.seed)]
    for shape in models.SHAPES.get(name, []):
        command += ["--shape", shape]
    if options.budget:
        command += ["--budget", options.budget]
    environment = dict(os.environ, REGRAFT_COST_STORE=str(options.cost_store or folder / f"{name}.sqlite"))
    start = time.perf_counter()
    limit = GRACE * seconds_of(options.budget or "60s") + 120
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=limit)
        code, message = done.returncode, done.stderr.strip()
    except subprocess.TimeoutExpired:
        code, message = -1, f"stopped after {limit:.0f} s"
    row = {"model": name, "exit": code, "seconds": time.perf_counter() - start}
    if code not in (0, 1) or not out.exists():
        return row | {"error": message.splitlines()[-1] if message else "no output"}, None
    return row | claim(json.loads(report.read_text())), out


def claim(report):
    """What the command says of its own work."""
    rules = Counter(applied["rule"] for applied in report["applied"])
    before, after = report["bytes"]
    return {
        "claimed": report["speedup"],
        "predicted": report.get("predicted_speedup"),
        "rules": dict(rules.most_common()),
        "check": {key: report["check"].get(key, 0) for key in ("passed", "worst", "floor", "tolerance", "confirmed")},
        "bytes_before": before,
        "bytes_after": after,
        "growth_allowed": after - before <= max(before * 0.05, 4 << 20),
        "claimed_single": (report.get("single_thread") or {}).get("speedup"),
        "phases": report["seconds"],
        "ended": report["ended"],
        "target": report["runtime"].partition(" ")[0],
        **({"fastest": report["fastest"]} if report.get("fastest") else {}),
    }


def judge(row, path, out, options):
    shapes = dict(ab.parse_shape(text) for text in models.SHAPES.get(row["model"], []))
    try:
        counts = sorted({options.threads, 1}, reverse=True)
        compare = functools.partial(ab.compare, path, out, shapes, seconds=options.seconds, seed=options.seed)
        # All are judged over the first runtime, which is what most people deploy on.
        base = FIRST if options.target == FASTEST else row["target"]
        verdicts = [asdict(compare(threads=threads, targets=(base, row["target"]))) for threads in counts]
        if options.target == FASTEST:
            others = [name for name in runtimes.ALL if name != FIRST]
            row = row | {"over": {name: asdict(compare(threads=options.threads, targets=(name, row["target"]))) for name in others}}
    except Exception as error:  # The runtime's own errors share no class; any of them is a result that does not run.
        return row | {"error": f"the result does not run: {' '.join(str(error).split())[:200]}"}
    # At one thread, unless that is what the command was run for.
    return row | {"independent": verdicts[0]} | {"independent_single": verdict for verdict in verdicts[1:]}


def prove(row, path, out):
    """Replays the certificate of the result: what is proved of it, and how long that takes."""
    command = [str(models.program()), "check", str(path), str(out), "--effort", "0", "--no-reference", "--json"]
    start = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        said = json.loads(done.stdout) if done.stdout else {}
    except subprocess.TimeoutExpired:
        said = {"word": f"stopped after {PATIENCE:.0f} s"}
    certificate = said.get("certificate") or {}
    kept = {key: certificate[key] for key in ("word", "steps", "proved", "bounded", "tested", "rounded", "bound") if key in certificate}
    return row | {"proof": {"word": said.get("word"), "seconds": time.perf_counter() - start, "certificate": kept}}


def is_slower(timed):
    """Whether a result is slower than its input by more than the input seems to be than itself."""
    return timed["high"] < min(1.0, timed.get("identity_low", 1.0))


def faults(row):
    """What is wrong with a row, in words."""
    if "independent" not in row:
        return ["failed"]
    other, check = row["independent"], row["check"]
    allowed = max(check["tolerance"], ROUNDING * other["floor"])
    found = {
        "slower": is_slower(other),
        "slower at one thread": "independent_single" in row and is_slower(row["independent_single"]),
        "slower than the input on another runtime": any(map(is_slower, row.get("over", {}).values())),
        # Beyond that, double precision must have confirmed that it is rounding.
        "differs": not check["passed"] or (other["difference"] > allowed and not check.get("confirmed")),
        "not proved": row.get("proof", {}).get("word") not in PROVED,
        "too large": not row["growth_allowed"],
    }
    return [fault for fault, holds in found.items() if holds]


def line(row):
    if "independent" not in row:
        return f"{row['model']:32} {row.get('error', '')}"
    own, other = row["claimed"], row["independent"]
    rules = ", ".join(f"{name} x{count}" if count > 1 else name for name, count in list(row["rules"].items())[:4])
    more = f", {len(row['rules']) - 4} more" if len(row["rules"]) > 4 else ""
    alone = row.get("independent_single")
    single = f"{alone['speedup']:7.3f}" if alone else f"{'':7}"
    remark = "".join(f" {fault.upper()}" for fault in faults(row))
    return (
        f"{row['model']:32} {other['base_ms']:9.3f} {other['other_ms']:9.3f} {other['speedup']:7.3f}"
        f" [{other['low']:.3f}, {other['high']:.3f}] {single} {own['median']:7.3f} {other['difference']:8.1e} {other['floor']:8.1e}"
        f" {(row['bytes_after'] - row['bytes_before']) / 1e3:+10.0f} {row['seconds']:6.1f} {rules}{more}{remark}"
    )


HEAD = f"{'model':32} {'input ms':>9} {'ours ms':>9} {'speedup':>7} {'95 % interval':^16} {'alone':>7} {'claimed':>7} {'error':>8} {'floor':>8} {'growth kB':>10} {'time s':>6} rules"


def mean(rows, timed="independent"):
    """Geometric mean of the independent speed-ups; a model without one counts as 1."""
    ratios = [row[timed]["speedup"] if timed in row else 1.0 for row in rows]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1.0


def revision():
    """Of the sources, as they are now."""
    said = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=models.ROOT, capture_output=True, text=True)
    return said.stdout.strip()


def results(rows, options):
    return {
        "schema": SCHEMA,
        "date": time.strftime("%Y-%m-%d"),
        "revision": options.revision,
        "processor": processor(),
        "runtime": ", ".join(f"{name} {ab.runtime(name).version}" for name in runtimes.ALL if options.target in (name, FASTEST)),
        "target": options.target,
        "threads": options.threads,
        "budget": options.budget or "default",
        "seed": options.seed,
        "geometric_mean": mean(rows),
        **({"geometric_mean_single": mean(rows, "independent_single")} if options.threads > 1 else {}),
        "models": rows,
    }


def replay(options):
    """Replays the certificates of kept results again, and puts what is proved now beside the times
    of then."""
    known = json.loads(options.json.read_text())
    for row in known["models"]:
        out = options.keep / f"{row['model']}.onnx"
        if out.exists():
            row.update(prove(row, models.ensure(row["model"]), out))
            print(f"{row['model']:32} {row['proof']['word']:24} {row['proof']['seconds']:6.1f} s", flush=True)
    known["replayed"] = options.revision
    options.json.write_text(json.dumps(known, indent=1) + "\n")


def save(rows, options):
    options.json.parent.mkdir(parents=True, exist_ok=True)
    partial = options.json.with_suffix(".tmp")
    partial.write_text(json.dumps(results(rows, options), indent=1) + "\n")
    partial.rename(options.json)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="*")
    parser.add_argument("--target", choices=[*runtimes.ALL, FASTEST], default=FIRST, help="what the models will run on")
    parser.add_argument("--budget", default=os.environ.get("BUDGET") or None, help="of each optimization; the command's default if not given")
    parser.add_argument("--threads", type=int, help="within an operator; by default, as many as the runtime uses by itself")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each independent measurement")
    parser.add_argument("--cost-store", type=Path, help="shared by all models; a fresh one each if not given")
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON, help="results")
    parser.add_argument("--resume", action="store_true", help="keep the rows that the results have already")
    parser.add_argument("--keep", type=Path, help="folder for the optimized models and reports; they are removed if not given")
    parser.add_argument("--replay", action="store_true", help="only replay the certificates in the folder of --keep again")
    parser.add_argument("--discard", action="store_true", help="remove each model of the corpus after its turn: the whole takes gigabytes")
    options = parser.parse_args()
    options.revision = revision()
    options.threads = options.threads or ab.default_threads()
    if options.replay:
        if not options.keep or not options.json.exists():
            sys.exit("run: --replay needs a folder with --keep, and the results that belong to it")
        return replay(options)
    chosen = models.names(options.pattern)
    if not chosen:
        sys.exit(f"run: no model matches {options.pattern}")
    rows = json.loads(options.json.read_text())["models"] if options.resume and options.json.exists() else []
    known = {row["model"] for row in rows if "independent" in row}
    rows = [row for row in rows if row["model"] in known]
    print(HEAD)
    for row in rows:
        print(line(row))
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        if name in known:
            continue
        path = models.ensure(name)
        with tempfile.TemporaryDirectory() as scratch:
            row, out = optimize(name, path, options.keep or Path(scratch), options)
            row = prove(judge(row, path, out, options), path, out) if out else row
        rows.append(row)
        save(rows, options)
        print(line(row), flush=True)
        if options.discard:
            path.unlink()
    at_fault = [f"{row['model']} ({', '.join(faults(row))})" for row in rows if faults(row)]
    single = f" ({mean(rows, 'independent_single'):.3f} at one thread)" if options.threads > 1 else ""
    print(f"{len(rows)} models, geometric mean {mean(rows):.3f}{single}, at fault: {', '.join(at_fault) or 'none'}")
    sys.exit(1 if at_fault else 0)


if __name__ == "__main__":
    main()
