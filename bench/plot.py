"""Draws speed-ups with their intervals as a self-contained SVG. Equal input gives equal bytes."""

import math
from html import escape

ROW = 16
"""Height of a line."""
TOP, BOTTOM = 8, 26
"""Space above the first line and below the last one, for the axis."""
NAMES, PLOT, VALUES, GAP = 176, 250, 44, 20
"""Widths: names of models, the plot itself, its numbers, space between panels."""
STEP = 0.25
"""Distance of two marks on the axis, unless told otherwise."""
TITLE = "Speed-up of every model, with its 95 % interval"

STYLE = """
  .page { fill: #ffffff } text { fill: #1f2328; font: 11px sans-serif }
  .title { font-weight: bold } .end { text-anchor: end } .middle { text-anchor: middle }
  .grid { stroke: #d8dee4 } .one { stroke: #656d76 }
  .faster { stroke: #0969da; fill: #0969da } .slower { stroke: #bc4c00; fill: #bc4c00 } .same { stroke: #656d76; fill: #656d76 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } text { fill: #e6edf3 } .grid { stroke: #30363d } .one { stroke: #8b949e }
    .faster { stroke: #58a6ff; fill: #58a6ff } .slower { stroke: #f0883e; fill: #f0883e } .same { stroke: #8b949e; fill: #8b949e }
  }
"""
"""Colours for light and dark pages. The page is filled, so that the text is readable whatever lies
below."""


def span(panels, step):
    """The ends of the axis: whole steps that hold every interval and 1."""
    found = [timing for panel in panels for _, rows in panel for _, timing in rows if timing]
    low = min([1.0] + [timing["low"] for timing in found])
    high = max([1.0 + step] + [timing["high"] for timing in found])
    return math.floor(low / step) * step, math.ceil(high / step) * step


def judged(timing):
    """The class of a row: whether its whole interval lies on one side of 1."""
    return "faster" if timing["low"] > 1.0 else "slower" if timing["high"] < 1.0 else "same"


def draw_panel(panel, left, ends, height, step):
    """Lines of SVG for groups of models below each other: `[(title, [(name, timing or None)])]`."""
    low, high = ends
    origin = left + NAMES

    def at(ratio):
        return f"{origin + (ratio - low) / (high - low) * PLOT:.1f}"

    lines = []
    for mark in range(round((high - low) / step) + 1):
        ratio = low + mark * step
        kind = "one" if ratio == 1.0 else "grid"
        lines.append(f'<line class="{kind}" x1="{at(ratio)}" y1="{TOP}" x2="{at(ratio)}" y2="{height - BOTTOM}"/>')
        lines.append(f'<text class="middle" x="{at(ratio)}" y="{height - BOTTOM + 16}">{ratio:g}</text>')
    y = TOP
    for title, rows in panel:
        # On a ground of its own, so that the axis does not strike the title through.
        lines.append(f'<rect class="page" x="{left}" y="{y + 1}" width="{NAMES + PLOT + VALUES}" height="{ROW}"/>')
        lines.append(f'<text class="title" x="{left}" y="{y + 13}">{escape(title)}</text>')
        y += ROW
        for name, timing in rows:
            middle = y + ROW / 2
            lines.append(f'<text class="end" x="{origin - 8}" y="{y + 12}">{escape(name)}</text>')
            if timing:
                kind = judged(timing)
                lines.append(
                    f'<line class="{kind}" stroke-width="2" x1="{at(timing["low"])}" y1="{middle}" x2="{at(timing["high"])}" y2="{middle}"/>'
                )
                lines.append(f'<circle class="{kind}" cx="{at(timing["speedup"])}" cy="{middle}" r="2.5"/>')
            value = f"{timing['speedup']:.3f}" if timing else "failed"
            lines.append(f'<text class="end" x="{origin + PLOT + VALUES}" y="{y + 12}">{value}</text>')
            y += ROW
        y += ROW // 2
    return lines


def render(panels, title=TITLE, step=STEP):
    """The drawing of panels side by side, each a list of groups."""
    ends = span(panels, step)
    tallest = max(sum((len(rows) + 1) * ROW + ROW // 2 for _, rows in panel) for panel in panels)
    panel_width = NAMES + PLOT + VALUES
    width, height = len(panels) * (panel_width + GAP) + GAP, TOP + tallest + BOTTOM
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
    ]
    for number, panel in enumerate(panels):
        lines += draw_panel(panel, GAP + number * (panel_width + GAP), ends, height, step)
    return "\n".join([*lines, "</svg>", ""])
