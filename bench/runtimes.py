"""Runtimes that the judge measures under, called through their Python packages: independently of
the program."""

import os
from dataclasses import dataclass
from typing import Callable

import numpy as np


@dataclass
class Input:
    """A declared input; sizes that are open are no numbers."""

    name: str
    dtype: np.dtype
    shape: list


@dataclass
class Session:
    """A model that a runtime has loaded."""

    inputs: list[Input]
    run: Callable
    """Values by name in, a list of values out."""
    bound: Callable
    """Values by name in; out comes a call that runs once on them, without copying them or the
    outputs: what Python adds would hide small gains."""


class OnnxRuntime:
    """ONNX Runtime on processors, with every optimization of its own unless told otherwise."""

    name = "onnxruntime"
    TYPES = {
        "tensor(float)": np.float32,
        "tensor(double)": np.float64,
        "tensor(float16)": np.float16,
        "tensor(int64)": np.int64,
        "tensor(int32)": np.int32,
        "tensor(int8)": np.int8,
        "tensor(uint8)": np.uint8,
        "tensor(bool)": np.bool_,
    }

    def __init__(self):
        # It has a thread that collects and sends what a process does, unless this is set before it
        # starts.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime

        self.library = onnxruntime
        self.version = onnxruntime.__version__

    def open(self, path, threads=1, optimize=True):
        options = self.library.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        level = self.library.GraphOptimizationLevel
        options.graph_optimization_level = level.ORT_ENABLE_ALL if optimize else level.ORT_DISABLE_ALL
        # Within a run, waiting workers spin as where the model is deployed. After it they would
        # take processors from the next model.
        options.add_session_config_entry("session.intra_op.allow_spinning", "1" if threads > 1 else "0")
        options.add_session_config_entry("session.force_spinning_stop", "1")
        session = self.library.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

        def bound(feeds):
            binding = session.io_binding()
            for name, value in feeds.items():
                binding.bind_ortvalue_input(name, self.library.OrtValue.ortvalue_from_numpy(value))
            for output in session.get_outputs():
                binding.bind_output(output.name)
            return lambda: session.run_with_iobinding(binding)

        inputs = [Input(value.name, np.dtype(self.TYPES[value.type]), list(value.shape)) for value in session.get_inputs()]
        return Session(inputs, lambda feeds: session.run(None, feeds), bound)


class OpenVino:
    """OpenVINO on processors, in the precision of the model. What it makes of a model cannot be
    switched off."""

    name = "openvino"

    def __init__(self):
        import openvino

        self.library = openvino
        self.version = openvino.__version__.partition("-")[0]
        self.core = openvino.Core()

    def open(self, path, threads=1, optimize=True):
        properties = {
            "NUM_STREAMS": 1,
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32",
            # Pinned threads wait for others that run on their core.
            "ENABLE_CPU_PINNING": False,
        }
        model = self.core.compile_model(str(path), "CPU", properties)

        def requested(feeds):
            request = model.create_infer_request()
            for at, port in enumerate(model.inputs):
                # A tensor may have several names.
                name = next(name for name in port.get_names() if name in feeds)
                request.set_input_tensor(at, self.library.Tensor(feeds[name]))
            return request

        def bound(feeds):
            request = requested(feeds)
            return lambda: request.infer(share_outputs=True)

        def run(feeds):
            request = requested(feeds)
            request.infer()
            return [np.array(request.get_output_tensor(at).data) for at in range(len(model.outputs))]

        def sizes(port):
            return [d.get_length() if d.is_static else None for d in port.partial_shape]

        inputs = [Input(port.any_name, np.dtype(port.element_type.to_dtype()), sizes(port)) for port in model.inputs]
        return Session(inputs, run, bound)


ALL = {runtime.name: runtime for runtime in (OnnxRuntime, OpenVino)}
