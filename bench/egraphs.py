"""Draws how e-graphs grow: rules against networks, and cost over e-nodes, as self-contained SVG.
Equal input gives equal bytes."""

import math
from collections import Counter
from html import escape

from plot import STYLE

CELL, NAMES, HEAD = 17, 250, 96
"""Size of a field, width of the names of rules, height of those of networks."""
RULES = 40
"""Rules that are shown."""
PLOT, HEIGHT, LEFT, TOP, GAP, COLUMNS = 190, 120, 44, 26, 18, 4
"""Sizes of the panels of growth, and how many are in a row."""
COLOURS = {"saturation": "#bc4c00", "mcts": "#0969da"}


def page(width, height, title, lines):
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
    ]
    return "\n".join([*head, *lines, "</svg>", ""])


def applied(trace):
    """How often each rule was applied."""
    return sum((Counter(step["applied"]) for step in trace["steps"]), Counter())


def heat_map(traces):
    """Rules by networks: how often saturation (left half of a field) and tree search (right half)
    applied them."""
    counts = {network: {by: applied(trace) for by, trace in found.items()} for network, found in traces.items()}
    everywhere = sum((count for found in counts.values() for count in found.values()), Counter())
    rules = [rule for rule, _ in sorted(everywhere.items(), key=lambda item: (-item[1], item[0]))[:RULES]]
    most = math.log1p(max(everywhere.values(), default=1))
    lines = []
    for column, network in enumerate(counts):
        x = NAMES + column * CELL * 2 + CELL
        lines.append(f'<text transform="translate({x},{HEAD - 8}) rotate(-45)">{escape(network.removeprefix("paper-"))}</text>')
    for row, rule in enumerate(rules):
        y = HEAD + row * CELL
        lines.append(f'<text class="end" x="{NAMES - 8}" y="{y + 12}">{escape(rule)}</text>')
        for column, found in enumerate(counts.values()):
            for half, by in enumerate(COLOURS):
                count = found.get(by, Counter())[rule]
                x = NAMES + (2 * column + half) * CELL
                shade = f"{math.log1p(count) / most:.3f}"
                lines.append(f'<rect x="{x}" y="{y}" width="{CELL - 1}" height="{CELL - 1}" fill="{COLOURS[by]}" fill-opacity="{shade}"><title>{count}</title></rect>')
    width, bottom = NAMES + 2 * CELL * len(counts) + 40, HEAD + len(rules) * CELL
    for at, by in enumerate(COLOURS):
        lines.append(f'<rect x="{NAMES + at * 100}" y="{bottom + 10}" width="10" height="10" fill="{COLOURS[by]}"/>')
        lines.append(f'<text x="{NAMES + at * 100 + 16}" y="{bottom + 19}">{by}</text>')
    return page(width, bottom + 30, "How often rules were applied", lines)


def growth(traces):
    """Cost over e-nodes, a panel for each network."""
    lines = []
    for number, (network, found) in enumerate(traces.items()):
        left, top = GAP + number % COLUMNS * (LEFT + PLOT + GAP), TOP + number // COLUMNS * (HEIGHT + TOP + 30)
        points = {by: [(step["nodes"], step["cost"]) for step in trace["steps"]] for by, trace in found.items()}
        first = next(iter(points.values()))[0][1]
        everything = [point for one in points.values() for point in one]
        low, high = min(nodes for nodes, _ in everything), max(nodes for nodes, _ in everything)
        least = min(cost for _, cost in everything) / first
        span = max(1 - least, 0.01)

        def at(nodes, cost, left=left, top=top, low=low, high=high, first=first, span=span):
            return f"{left + LEFT + (nodes - low) / max(high - low, 1) * PLOT:.1f},{top + (1 - cost / first) / span * HEIGHT:.1f}"

        lines.append(f'<text class="title" x="{left + LEFT}" y="{top - 8}">{escape(network.removeprefix("paper-"))}</text>')
        for mark in range(3):
            share, y = 1 - span * mark / 2, top + HEIGHT * mark / 2
            lines.append(f'<line class="grid" x1="{left + LEFT}" y1="{y}" x2="{left + LEFT + PLOT}" y2="{y}"/>')
            lines.append(f'<text class="end" x="{left + LEFT - 6}" y="{y + 4}">{share:.2f}</text>')
        lines.append(f'<text x="{left + LEFT}" y="{top + HEIGHT + 16}">{low}</text>')
        lines.append(f'<text class="end" x="{left + LEFT + PLOT}" y="{top + HEIGHT + 16}">{high} e-nodes</text>')
        for by, steps in points.items():
            path = " ".join(at(*point) for point in steps)
            lines.append(f'<polyline fill="none" stroke="{COLOURS[by]}" stroke-width="1.5" points="{path}"/>')
            lines += [f'<circle fill="{COLOURS[by]}" cx="{at(*point).split(",")[0]}" cy="{at(*point).split(",")[1]}" r="2"/>' for point in steps]
    width, height = GAP + COLUMNS * (LEFT + PLOT + GAP), TOP + -(-len(traces) // COLUMNS) * (HEIGHT + TOP + 30)
    for at_, by in enumerate(COLOURS):
        lines.append(f'<rect x="{GAP + LEFT + at_ * 100}" y="{height}" width="10" height="10" fill="{COLOURS[by]}"/>')
        lines.append(f'<text x="{GAP + LEFT + at_ * 100 + 16}" y="{height + 9}">{by}</text>')
    return page(width, height + 20, "Cost over e-nodes", lines)
