"""The side of the `onnx` package in the campaign `node-tests`: it exports ONNX's own node tests,
and infers shapes to compare with.

usage: node_tests.py export FOLDER        one folder per case: model.onnx,
test_data_set_N/input_M.pb and output_M.pb node_tests.py infer FOLDER         for every
FOLDER/NAME.onnx the inferred types, in FOLDER/NAME.json

A type is {"dtype": code, "dims": [size, "symbol" or null, ...]}; "dims" is null where the rank is
not known.
"""

import json
import sys
import warnings
from pathlib import Path

import onnx
from onnx import numpy_helper


def export(folder: Path) -> None:
    """Writes every case and its data; the list of names comes last, so that an interrupted export
    is seen to be one."""
    from onnx.backend.test.loader import load_model_tests

    names = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    for case in cases:
        if case.model is None:
            continue
        here = folder / case.name
        here.mkdir(parents=True, exist_ok=True)
        (here / "model.onnx").write_bytes(case.model.SerializeToString())
        for number, (inputs, outputs) in enumerate(case.data_sets or []):
            data = here / f"test_data_set_{number}"
            data.mkdir(exist_ok=True)
            for kind, infos, values in (("input", case.model.graph.input, inputs), ("output", case.model.graph.output, outputs)):
                for at, (info, value) in enumerate(zip(infos, values)):
                    (data / f"{kind}_{at}.pb").write_bytes(serialized(info, value))
        names.append(case.name)
    (folder / "cases.txt").write_text("".join(f"{name}\n" for name in sorted(names)))
    print(f"{len(names)} cases in {folder}")


def serialized(info: onnx.ValueInfoProto, value: object) -> bytes:
    """A value in the form that the declared type asks for."""
    if isinstance(value, (onnx.TensorProto, onnx.SequenceProto, onnx.OptionalProto)):
        return value.SerializeToString()
    match info.type.WhichOneof("value"):
        case "sequence_type":
            return numpy_helper.from_list(value, info.name).SerializeToString()
        case "optional_type":
            return numpy_helper.from_optional(value, info.name).SerializeToString()
        case "map_type":
            return numpy_helper.from_dict(value, info.name).SerializeToString()
        case _:
            return numpy_helper.from_array(value, info.name).SerializeToString()


def infer(folder: Path) -> None:
    """Infers the types of all models of a folder. A model that the package refuses gets a file that
    says why."""
    for path in sorted(folder.glob("*.onnx")):
        try:
            model = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=False)
            graph = model.graph
            answer = {"types": {info.name: known for info in (*graph.value_info, *graph.output) if (known := tensor_type(info))}}
        except Exception as refusal:  # The package raises whatever its operators raise.
            answer = {"refused": str(refusal).strip().splitlines()[:1]}
        path.with_suffix(".json").write_text(json.dumps(answer))


def tensor_type(info: onnx.ValueInfoProto) -> dict | None:
    """The type of a tensor; None for other values and where the element type is not known."""
    if info.type.WhichOneof("value") != "tensor_type" or not info.type.tensor_type.elem_type:
        return None
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return {"dtype": tensor.elem_type, "dims": None}
    size = {"dim_value": lambda d: d.dim_value, "dim_param": lambda d: d.dim_param or None, None: lambda _: None}
    return {"dtype": tensor.elem_type, "dims": [size[d.WhichOneof("value")](d) for d in tensor.shape.dim]}


def main() -> int:
    commands = {"export": export, "infer": infer}
    if len(sys.argv) != 3 or sys.argv[1] not in commands:
        print(__doc__, file=sys.stderr)
        return 2
    commands[sys.argv[1]](Path(sys.argv[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
