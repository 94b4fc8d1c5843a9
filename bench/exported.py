#!/usr/bin/env python3
"""Writes an architecture of `timm`, `transformers` or the libraries of `domains.py`, with seeded random
weights, as the exporter of PyTorch 2 writes it: the batch is open, and so is the length of a text.

    exported.py NAME FILE

Needs an interpreter with `torch`, the library that the network is from, `onnx` and `onnxscript`, in an
environment of its own; `models.py` starts the one that PYTORCH names. Nothing is downloaded.
"""

import importlib.util
import logging
import sys
import warnings

import domains

SIZES = {
    "botnet26t_256": 256,
    "cait_xxs24_224": 224,
    "coat_lite_tiny": 224,
    "convnext_tiny": 224,
    "crossvit_tiny_240": 240,
    "dla34": 224,
    "edgenext_small": 256,
    "efficientformer_l1": 224,
    "efficientnet_b0": 224,
    "efficientvit_b1": 224,
    "ese_vovnet19b_dw": 224,
    "fbnetc_100": 224,
    "gcresnet33ts": 256,
    "ghostnet_100": 224,
    "hardcorenas_a": 224,
    "lcnet_100": 224,
    "levit_128": 224,
    "mixer_s32_224": 224,
    "mnasnet_100": 224,
    "mobilenetv4_conv_small": 224,
    "mobilevit_s": 256,
    "poolformer_s12": 224,
    "pvt_v2_b0": 224,
    "regnety_008": 224,
    "repvgg_a0": 224,
    "res2net50_26w_4s": 224,
    "resmlp_12_224": 224,
    "resnest14d": 224,
    "rexnet_100": 224,
    "selecsls42b": 224,
    "skresnet18": 224,
    "swin_tiny_patch4_window7_224": 224,
    "tinynet_c": 224,
    "visformer_tiny": 224,
    "xcit_tiny_12_p16_224": 224,
}
"""Networks of `timm`, by the height and width of their images."""

TEXT, IMAGE, WAVE, SPECTRUM = "text", "image", "wave", "spectrum"
"""What networks of `transformers` read."""

SMALL = {"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536}
DECODER = {"vocab_size": 8000, "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8}
BART = {"vocab_size": 8000, "d_model": 512, "encoder_layers": 4, "decoder_layers": 1, "encoder_attention_heads": 8, "encoder_ffn_dim": 2048}
CLIP = {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 2048}
DEBERTA = {
    "vocab_size": 8000,
    "num_hidden_layers": 3,
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
}
WHISPER = {"encoder_layers": 2, "decoder_layers": 1, "d_model": 384, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536}
YOLOS = {"hidden_size": 192, "num_hidden_layers": 6, "num_attention_heads": 3, "intermediate_size": 768, "image_size": [256, 256]}
CONFIGURED = {
    "albert": ("Albert", "Model", {**SMALL, "num_hidden_layers": 6}, TEXT),
    "bart-encoder": ("Bart", "Model", BART, TEXT),
    "beit": ("Beit", "Model", {**SMALL, "num_hidden_layers": 4}, IMAGE),
    "clip-vision": ("CLIPVision", "Model", CLIP, IMAGE),
    "deberta-v2": ("DebertaV2", "Model", {**SMALL, **DEBERTA}, TEXT),
    "dinov2": ("Dinov2", "Model", {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6}, IMAGE),
    "distilbert": ("DistilBert", "Model", {"n_layers": 3}, TEXT),
    "electra": ("Electra", "Model", {"num_hidden_layers": 6}, TEXT),
    "gemma": ("Gemma", "Model", {**DECODER, "intermediate_size": 2048, "num_key_value_heads": 1, "head_dim": 64}, TEXT),
    "gpt2": ("GPT2", "Model", {"vocab_size": 8000, "n_embd": 512, "n_layer": 4, "n_head": 8}, TEXT),
    "hubert": ("Hubert", "Model", {**CLIP, "num_hidden_layers": 3}, WAVE),
    "llama": ("Llama", "Model", {**DECODER, "intermediate_size": 1408, "num_key_value_heads": 4}, TEXT),
    "minilm": ("Bert", "Model", {**SMALL, "num_hidden_layers": 6, "num_attention_heads": 12}, TEXT),
    "mobilebert": ("MobileBert", "Model", {"num_hidden_layers": 6}, TEXT),
    "qwen2": ("Qwen2", "Model", {**DECODER, "intermediate_size": 1408, "num_key_value_heads": 2}, TEXT),
    "segformer": ("Segformer", "ForSemanticSegmentation", {}, IMAGE),
    "squeezebert": ("SqueezeBert", "Model", {"num_hidden_layers": 4}, TEXT),
    "t5-encoder": ("T5", "EncoderModel", {"num_layers": 4}, TEXT),
    "wav2vec2": ("Wav2Vec2", "Model", {"num_hidden_layers": 3}, WAVE),
    "whisper-encoder": ("Whisper", "Model", WHISPER, SPECTRUM),
    "yolos": ("Yolos", "ForObjectDetection", YOLOS, IMAGE),
}
"""Networks of `transformers`: their name there, the kind of model, its settings, what it reads."""

NAMES = [*CONFIGURED, *(f"timm-{name}" for name in SIZES), *domains.NETWORKS]
DECODERS = ("gemma", "gpt2", "llama", "qwen2")


def pixels(name):
    """Height and width of the images that a network of `transformers` reads."""
    return 256 if name in ("segformer", "yolos") else 224


def shapes(name):
    """Sizes at which a network is timed."""
    if name in domains.NETWORKS:
        return domains.shapes(name)
    if name.startswith("timm-"):
        size = SIZES[name.removeprefix("timm-")]
        return [f"image:1,3,{size},{size}"]
    reads = CONFIGURED[name][3]
    return {
        TEXT: ["ids:1,128", "mask:1,128"],
        IMAGE: [f"image:1,3,{pixels(name)},{pixels(name)}"],
        WAVE: ["wave:1,16000"],
        SPECTRUM: ["mel:1,80,3000"],
    }[reads]


def of_timm(name):
    """A network of `timm` and its inputs."""
    import timm
    import torch

    return timm.create_model(name, pretrained=False), {"image": torch.randn(2, 3, SIZES[name], SIZES[name])}


def settle(network):
    """Gives norms statistics as after training, not those of an identity."""
    import torch

    for norm in network.modules():
        if isinstance(norm, (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)) and norm.affine:
            torch.nn.init.uniform_(norm.running_mean, -0.1, 0.1)
            torch.nn.init.uniform_(norm.running_var, 0.8, 1.2)
            torch.nn.init.uniform_(norm.weight, 0.8, 1.2)


def of_transformers(name):
    """A network of `transformers` with one output, and its inputs."""
    import torch
    import transformers

    family, kind, settings, reads = CONFIGURED[name]
    config = getattr(transformers, f"{family}Config")(**settings)
    network = getattr(transformers, f"{family}{kind}")(config)
    network = network.encoder if name in ("bart-encoder", "whisper-encoder") else network
    inputs = {
        TEXT: lambda: {"ids": torch.randint(0, 1000, (2, 32)), "mask": torch.ones(2, 32, dtype=torch.int64)},
        IMAGE: lambda: {"image": torch.randn(2, 3, pixels(name), pixels(name))},
        WAVE: lambda: {"wave": torch.randn(2, 16000)},
        SPECTRUM: lambda: {"mel": torch.randn(2, 80, 3000)},
    }[reads]()

    def first(network, *operands):
        """The network's first output."""
        if reads != TEXT:
            return network(*operands)[0]
        cached = {"use_cache": False} if name in DECODERS else {}
        return network(input_ids=operands[0], attention_mask=operands[1], **cached)[0]

    return domains.called(network, first), inputs


def export(name, path):
    """Writes the network of this name."""
    import torch

    torch.manual_seed(0)
    if name in domains.NETWORKS:
        network, inputs = domains.build(name)
    elif name.startswith("timm-"):
        network, inputs = of_timm(name.removeprefix("timm-"))
    else:
        network, inputs = of_transformers(name)
    settle(network)
    batch, length = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("length", min=2, max=256)
    sizes = [{0: batch, 1: length} if key in ("ids", "mask") else {0: batch} for key in inputs]
    # What takes any number of operands has one argument, a tuple.
    dynamic = tuple(sizes) if name.startswith("timm-") else (tuple(sizes),)
    network.eval()
    with torch.no_grad():
        torch.onnx.export(
            network,
            tuple(inputs.values()),
            path,
            input_names=list(inputs),
            output_names=["output"],
            dynamic_shapes=dynamic,
            dynamo=True,
            external_data=False,
            verbose=False,
        )


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in NAMES:
        sys.exit(f"usage: exported.py NAME FILE, with a name of {', '.join(NAMES)}")
    libraries = domains.LIBRARIES if sys.argv[1] in domains.NETWORKS else ("timm", "transformers")
    missing = [module for module in ("torch", "onnxscript", *libraries) if importlib.util.find_spec(module) is None]
    if missing:
        sys.exit(f"exported: {sys.executable} has no {', '.join(missing)} (hint: PYTORCH names an interpreter that has them)")
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    export(sys.argv[1], sys.argv[2])


if __name__ == "__main__":
    main()
