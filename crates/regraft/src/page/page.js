"use strict";
(() => {
  const data = JSON.parse(document.getElementById("changes-data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const HEIGHT = 38;
  /** Height up to which a drawing can be read as a whole, px. */
  const READABLE = 560;

  function made(name, attributes, parent) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (parent) parent.appendChild(element);
    return element;
  }

  /** Both lines of a node fit into this width, px. */
  function width(node) {
    return Math.max(64, 16 + Math.max(7.2 * node.operator.length, 6 * node.shape.length));
  }

  /** Places of nodes and paths of edges. */
  function laidOut(nodes) {
    const graph = new dagre.graphlib.Graph();
    graph.setGraph({ nodesep: 14, ranksep: 26, marginx: 8, marginy: 8 });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const node of nodes) graph.setNode(String(node.id), { width: width(node), height: HEIGHT });
    for (const node of nodes) for (const read of new Set(node.reads)) graph.setEdge(String(read), String(node.id));
    dagre.layout(graph);
    return graph;
  }

  function drawn(drawing, side, title) {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    caption.textContent = title;
    figure.appendChild(caption);
    if (!drawing.nodes.length) {
      const words = document.createElement("p");
      const all = drawing.operators.map(([name, count]) => (count === 1 ? name : `${name} ×${count}`)).join(", ");
      words.textContent = all || "nothing";
      figure.appendChild(words);
      return figure;
    }
    const graph = laidOut(drawing.nodes);
    const { width: wide, height: high } = graph.graph();
    const svg = made("svg", { viewBox: `0 0 ${wide} ${high}`, role: "group", "aria-label": title, tabindex: 0 });
    const about = document.createElement("p");
    about.className = "about";
    about.setAttribute("aria-live", "polite");
    about.textContent = "Click a node, or go to it by Tab. Wheel or + and − zoom; dragging or arrows move.";
    for (const edge of graph.edges()) {
      const points = graph.edge(edge).points;
      made("path", { d: "M" + points.map((point) => `${point.x.toFixed(1)},${point.y.toFixed(1)}`).join("L") }, svg);
    }
    for (const node of drawing.nodes) {
      const { x, y, width: w } = graph.node(String(node.id));
      const group = made("g", { class: `node ${node.around ? "around" : side}`, tabindex: 0, role: "button", transform: `translate(${x - w / 2},${y - HEIGHT / 2})` }, svg);
      group.setAttribute("aria-label", `${node.operator} ${node.shape}`);
      made("rect", { width: w, height: HEIGHT, rx: 4 }, group);
      made("text", { x: w / 2, y: 16, "text-anchor": "middle" }, group).textContent = node.operator;
      made("text", { x: w / 2, y: 30, "text-anchor": "middle", class: "shape" }, group).textContent = node.shape;
      const tell = () => (about.textContent = `${node.operator} · ${node.name} · ${node.shape}${node.around ? " · stays" : ""}`);
      group.addEventListener("click", tell);
      group.addEventListener("focus", tell);
    }
    movable(svg, wide, high);
    figure.append(svg, about);
    return figure;
  }

  /** Zoom and pan by the view box; at first, what can be read of it. */
  function movable(svg, wide, high) {
    let [x, y, w, h] = [0, 0, wide, Math.min(high, READABLE)];
    const show = () => svg.setAttribute("viewBox", `${x} ${y} ${w} ${h}`);
    const zoom = (factor, atX = 0.5, atY = 0.5) => {
      const next = Math.min(Math.max(w * factor, wide / 40), wide * 4) / w;
      x += w * (1 - next) * atX;
      y += h * (1 - next) * atY;
      w *= next;
      h *= next;
      show();
    };
    show();
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      zoom(event.deltaY < 0 ? 0.85 : 1 / 0.85, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
    }, { passive: false });
    let from = null;
    svg.addEventListener("pointerdown", (event) => (from = [event.clientX, event.clientY]));
    addEventListener("pointerup", () => (from = null));
    svg.addEventListener("pointermove", (event) => {
      if (!from) return;
      const box = svg.getBoundingClientRect();
      const scale = Math.max(w / box.width, h / box.height);
      x -= (event.clientX - from[0]) * scale;
      y -= (event.clientY - from[1]) * scale;
      from = [event.clientX, event.clientY];
      show();
    });
    svg.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] };
      const move = moves[event.key];
      if (move) [x, y] = [x + w * move[0], y + h * move[1]];
      else if (event.key === "+" || event.key === "=") zoom(0.85);
      else if (event.key === "-") zoom(1 / 0.85);
      else if (event.key === "0") [x, y, w, h] = [0, 0, wide, high];
      else return;
      event.preventDefault();
      show();
    });
  }

  function show(details) {
    const place = details.querySelector(".drawings");
    if (!details.open || place.childElementCount) return;
    const change = data[details.dataset.change];
    place.append(drawn(change.before, "old", "before"), drawn(change.after, "new", "after"));
  }

  const all = document.querySelectorAll("details.change");
  for (const details of all) details.addEventListener("toggle", () => show(details));
  if (all.length) {
    all[0].open = true;
    show(all[0]);
  }
  // When the page could be used, ms after it was asked for.
  document.documentElement.dataset.usable = performance.now().toFixed(0);
})();
