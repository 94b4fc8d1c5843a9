"""Operators that are drawn for a layer, with and without canonical forms and the distance, at equal
processor time.

    bench/operators.py [--seconds 20]     runs the campaign, and draws docs/operators.svg from its figures
    bench/operators.py --draw             only draws

The figures are bench/results/operators.json.
"""

import argparse
import json
import subprocess
from pathlib import Path

import curves

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "bench/results/operators.json"
PLOT = ROOT / "docs/operators.svg"


def panels(figures):
    """All distinct operators, and those with a window, after each part of the time."""
    ways = figures["ways"]
    parts = len(ways[0]["over_time"])
    times = [f"{ways[0]['seconds'] * (part + 1) / parts:.0f}" if part % 2 else "" for part in range(parts)]
    for title, which in [("distinct operators, after s", 0), ("of these with a window", 1)]:
        yield title, "", True, times, {way["way"]: [found[which] for found in way["over_time"]] for way in ways}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="processor time for each way [default: 20]")
    parser.add_argument("--draw", action="store_true", help="only draw")
    args = parser.parse_args()
    if not args.draw:
        command = ["cargo", "run", "--release", "--quiet", "--package", "regraft-gauntlet", "--", "operators"]
        subprocess.run([*command, "--seconds", str(args.seconds), "--audit", "5", "--json", str(FIGURES)], cwd=ROOT, check=True)
    PLOT.write_text(curves.render("Operators drawn for the layers of ResNet-18", list(panels(json.loads(FIGURES.read_text())))))


if __name__ == "__main__":
    main()
