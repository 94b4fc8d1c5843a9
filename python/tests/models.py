"""Small models for the tests."""

from __future__ import annotations

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper


def convolutions(batch: int | str = 1, *, channels: int = 16, size: int = 24) -> onnx.ModelProto:
    """Two convolutions with a batch normalization and an activation after each."""
    random = numpy.random.default_rng(0)
    weights: list[onnx.TensorProto] = []

    def constant(name: str, *shape: int) -> str:
        value = random.standard_normal(shape).astype(numpy.float32) * 0.1
        weights.append(numpy_helper.from_array(abs(value) + 0.5 if name.startswith("var") else value, name))
        return name

    nodes = []
    value, inner = "x", 3
    for at in range(2):
        nodes += [
            helper.make_node("Conv", [value, constant(f"w{at}", channels, inner, 3, 3)], [f"c{at}"], pads=[1, 1, 1, 1]),
            helper.make_node(
                "BatchNormalization",
                [f"c{at}", *(constant(f"{name}{at}", channels) for name in ("scale", "bias", "mean", "var"))],
                [f"n{at}"],
            ),
            helper.make_node("Identity", [f"n{at}"], [f"i{at}"]),
            helper.make_node("Relu", [f"i{at}"], [f"r{at}"]),
        ]
        value, inner = f"r{at}", channels
    nodes.append(helper.make_node("GlobalAveragePool", [value], ["y"]))
    graph = helper.make_graph(
        nodes,
        "convolutions",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, size, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, channels, 1, 1])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
