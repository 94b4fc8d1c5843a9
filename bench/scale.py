#!/usr/bin/env python3
"""How the time of searches grows with the depth of a network: ResNet-n of OCGGS (PVLDB 13(11)
2020), with 64 channels, for several n.

    scale.py [--blocks 8,64,512] [--search greedy,auto] [--json FILE]

Each search starts from the model, on one core, under the analytic prices; nothing is measured by a
runtime. Prints a table: per search and number of blocks, the time, the time per block relative to
that of the smallest network, the states visited and the memory.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import models

CHANNELS, SIZE = 64, 14
DEFAULT_JSON = models.ROOT / "bench" / "results" / "scale.json"


def network(blocks):
    """`blocks` residual blocks, each with a projected shortcut that has a ReLU of its own."""
    draw, nodes, weights = np.random.default_rng(0), [], []

    def conv(name, x, kernel, relu):
        shape = (CHANNELS, CHANNELS, kernel, kernel)
        values = draw.standard_normal(shape, np.float32) / np.float32(CHANNELS * kernel * kernel) ** 0.5
        weights.append(numpy_helper.from_array(values, f"{name}_w"))
        nodes.append(helper.make_node("Conv", [x, f"{name}_w"], [name], pads=[kernel // 2] * 4))
        if relu:
            nodes.append(helper.make_node("Relu", [name], [f"{name}_relu"]))
            return f"{name}_relu"
        return name

    x = "x"
    for block in range(blocks):
        y = conv(f"b{block}_second", conv(f"b{block}_first", x, 3, True), 3, False)
        nodes.append(helper.make_node("Add", [conv(f"b{block}_shortcut", x, 1, True), y], [f"b{block}_sum"]))
        nodes.append(helper.make_node("Relu", [f"b{block}_sum"], [f"b{block}"]))
        x = f"b{block}"
    sizes = [1, CHANNELS, SIZE, SIZE]
    begin, end = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)] for name in ("x", x))
    graph = helper.make_graph(nodes, f"resnet_{blocks}", begin, end, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", default="8,64,512")
    parser.add_argument("--search", default="greedy,auto")
    parser.add_argument("--budget", default="600s")
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON)
    options = parser.parse_args()
    rows, program = [], models.program()
    print(f"{'search':<10} {'blocks':>6} {'time, s':>9} {'growth':>7} {'states':>9} {'memory, MB':>11} {'speed-up':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for blocks in map(int, options.blocks.split(",")):
            path = Path(folder) / f"resnet{blocks}.onnx"
            onnx.save(network(blocks), path)
            for search in options.search.split(","):
                command = [program, "compare", path, "--search", search, "--budget", options.budget, "--json"]
                report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                (found,) = report["searches"]
                first = next((row for row in rows if row["search"] == search), None)
                row = {"search": search, "blocks": blocks, "seconds": found["seconds"], "states": found["states"]}
                row |= {"memory_bytes": found.get("peak_bytes"), "speedup": found["speedup"]}
                growth = 1.0 if first is None else row["seconds"] / blocks / (first["seconds"] / first["blocks"])
                row["growth"] = growth
                rows.append(row)
                memory = (row["memory_bytes"] or 0) / 1e6
                print(f"{search:<10} {blocks:>6} {row['seconds']:>9.2f} {growth:>7.2f} {row['states']:>9} {memory:>11.1f} {row['speedup']:>8.3f}x", flush=True)
    options.json.write_text(json.dumps({"channels": CHANNELS, "size": SIZE, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
