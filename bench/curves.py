"""Draws curves over a few settings, on a logarithmic axis, as a self-contained SVG. Equal input
gives equal bytes."""

import math
from html import escape

from plot import STYLE

PLOT, HEIGHT = 250, 170
"""Size of one plot."""
LEFT, TOP, BOTTOM, GAP = 62, 28, 34, 26
"""Space for the axis, the title, the settings below, and between plots."""
NAMES, ROW = 96, 15
"""Width of the list of curves, and height of its lines."""
COLOURS = ["#0969da", "#bc4c00", "#1a7f37", "#8250df", "#9a6700", "#cf222e", "#0a7d91", "#6e7781"]
"""One for each curve; they are told apart on light and on dark pages."""


def decades(values):
    """Ends of an axis: whole powers of ten that hold all values."""
    known = [value for value in values if value and value > 0]
    low, high = (min(known), max(known)) if known else (1.0, 10.0)
    low, high = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return low, max(high, low + 1)


def linear(values):
    """Ends of an axis that starts near the smallest value."""
    known = [value for value in values if value]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    return low, high if high > low else low + 1.0


def draw(panel, left, order):
    """Lines of SVG for one plot: `(title, unit, is logarithmic, settings, {curve: values or
    None})`."""
    title, unit, is_logarithmic, settings, curves = panel
    values = [value for points in curves.values() for value in points]
    low, high = decades(values) if is_logarithmic else linear(values)
    origin, bottom = left + LEFT, TOP + HEIGHT

    def across(at):
        return origin + (at + 0.5) / len(settings) * PLOT

    def up(value):
        share = ((math.log10(value) if is_logarithmic else value) - low) / (high - low)
        return bottom - share * (HEIGHT - 12) - 6

    lines = [f'<text class="title" x="{left}" y="{TOP - 12}">{escape(title)}</text>']
    marks = [10.0**power for power in range(low, high + 1)] if is_logarithmic else [low + part / 4 * (high - low) for part in range(5)]
    for mark in marks:
        y = f"{up(mark):.1f}"
        lines.append(f'<line class="grid" x1="{origin}" y1="{y}" x2="{origin + PLOT}" y2="{y}"/>')
        lines.append(f'<text class="end" x="{origin - 6}" y="{up(mark) + 4:.1f}">{mark:.4g} {escape(unit)}</text>')
    for at, setting in enumerate(settings):
        lines.append(f'<text class="middle" x="{across(at):.1f}" y="{bottom + 16}">{escape(str(setting))}</text>')
    for name, points in curves.items():
        colour = COLOURS[order.index(name) % len(COLOURS)]
        known = [(across(at), up(value)) for at, value in enumerate(points) if value]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in known)
        lines.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{path}"/>')
        lines += [f'<circle fill="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in known]
    return lines


def render(title, panels):
    """The drawing of plots side by side; a curve has one colour in all."""
    order = list(dict.fromkeys(name for *_, curves in panels for name in curves))
    width = GAP + len(panels) * (LEFT + PLOT + GAP) + NAMES
    height = TOP + HEIGHT + BOTTOM
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
    ]
    for number, panel in enumerate(panels):
        lines += draw(panel, GAP + number * (LEFT + PLOT + GAP), order)
    left = GAP + len(panels) * (LEFT + PLOT + GAP)
    for number, name in enumerate(order):
        y = TOP + 8 + number * ROW
        lines.append(f'<rect fill="{COLOURS[number % len(COLOURS)]}" x="{left}" y="{y - 8}" width="10" height="10"/>')
        lines.append(f'<text x="{left + 16}" y="{y + 1}">{escape(name)}</text>')
    return "\n".join([*lines, "</svg>", ""])
