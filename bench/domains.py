"""Networks of `torchvision`, `segmentation_models_pytorch`, `diffusers` and `torchaudio`, of images,
clips and sound. Each has seeded random weights and one output."""

from typing import Callable, NamedTuple

LIBRARIES = ("torchvision", "segmentation_models_pytorch", "diffusers", "torchaudio")


class Network(NamedTuple):
    """How a network is made, and what it reads."""

    make: Callable
    sizes: dict
    """Sizes of its inputs, without the batch."""
    run: Callable = lambda network, *operands: network(*operands)
    """Its output, of operands in order."""
    whole: tuple = ()
    """Inputs that are integers."""


def torchvision(name, **settings):
    def make():
        import torchvision

        return torchvision.models.get_model(name, weights=None, **settings)

    return make


def segmentation(name, encoder):
    def make():
        import segmentation_models_pytorch

        return getattr(segmentation_models_pytorch, name)(encoder, encoder_weights=None)

    return make


def diffusers(name, **settings):
    def make():
        import diffusers

        return getattr(diffusers, name)(sample_size=32, **settings)

    return make


def torchaudio(name, *settings, **named):
    def make():
        import torchaudio

        return getattr(torchaudio.models, name)(*settings, **named)

    return make


def out(network, *operands):
    return network(*operands)["out"]


def sample(network, *operands):
    return network(*operands).sample


def frames(network, mel):
    """Of sequences that all have 200 frames."""
    import torch

    return network(mel, torch.full((mel.shape[0],), 200, dtype=torch.int64))[0]


def image(size):
    return {"image": (3, size, size)}


CLIP = {"clip": (3, 8, 64, 64)}
BARE = {"weights_backbone": None}
ATTENDING = {
    "layers_per_block": 1,
    "block_out_channels": (64, 128),
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
    "cross_attention_dim": 128,
    "attention_head_dim": 8,
}
PLAIN = {
    "layers_per_block": 1,
    "block_out_channels": (64, 128, 128),
    "down_block_types": ("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
}
CODER = {
    "layers_per_block": 1,
    "block_out_channels": (32, 64, 64),
    "down_block_types": ("DownEncoderBlock2D",) * 3,
    "up_block_types": ("UpDecoderBlock2D",) * 3,
    "norm_num_groups": 16,
}
SEPARATOR = {
    "num_sources": 2,
    "enc_kernel_size": 16,
    "enc_num_feats": 128,
    "msk_num_feats": 64,
    "msk_num_hidden_feats": 128,
    "msk_num_layers": 5,
    "msk_num_stacks": 2,
}

NETWORKS = {
    "deeplab-mobilenet": Network(torchvision("deeplabv3_mobilenet_v3_large", **BARE), image(256), out),
    "lraspp-mobilenet": Network(torchvision("lraspp_mobilenet_v3_large", **BARE), image(256), out),
    "fcn-resnet50": Network(torchvision("fcn_resnet50", **BARE), image(128), out),
    "shufflenet": Network(torchvision("shufflenet_v2_x1_0"), image(224)),
    "densenet121": Network(torchvision("densenet121"), image(224)),
    "googlenet": Network(torchvision("googlenet", aux_logits=False, init_weights=False), image(224)),
    "maxvit": Network(torchvision("maxvit_t"), image(224)),
    "swin-v2": Network(torchvision("swin_v2_t"), image(224)),
    "r3d": Network(torchvision("r3d_18"), CLIP),
    "mc3": Network(torchvision("mc3_18"), CLIP),
    "r2plus1d": Network(torchvision("r2plus1d_18"), CLIP),
    "s3d": Network(torchvision("s3d"), {"clip": (3, 16, 224, 224)}),
    "unet-resnet18": Network(segmentation("Unet", "resnet18"), image(192)),
    "fpn-mobilenet": Network(segmentation("FPN", "mobilenet_v2"), image(256)),
    "linknet-resnet18": Network(segmentation("Linknet", "resnet18"), image(192)),
    "deeplab-plus-mobilenet": Network(segmentation("DeepLabV3Plus", "mobilenet_v2"), image(256)),
    "pan-resnet18": Network(segmentation("PAN", "resnet18"), image(256)),
    "pspnet-resnet18": Network(segmentation("PSPNet", "resnet18"), image(192)),
    "unet-plus-plus": Network(segmentation("UnetPlusPlus", "mobilenet_v2"), image(128)),
    "denoiser": Network(diffusers("UNet2DModel", **PLAIN), {"image": (3, 32, 32), "time": ()}, sample, ("time",)),
    "denoiser-of-texts": Network(
        diffusers("UNet2DConditionModel", **ATTENDING),
        {"image": (4, 32, 32), "time": (), "text": (77, 128)},
        sample,
        ("time",),
    ),
    "diffusion-transformer": Network(
        diffusers("DiTTransformer2DModel", num_attention_heads=6, attention_head_dim=64, num_layers=4),
        {"image": (4, 32, 32), "time": (), "label": ()},
        sample,
        ("time", "label"),
    ),
    "image-decoder": Network(diffusers("AutoencoderKL", **CODER), {"image": (4, 32, 32)}, lambda network, image: network.decode(image).sample),
    "conv-tasnet": Network(torchaudio("ConvTasNet", **SEPARATOR), {"wave": (1, 16000)}),
    "conformer": Network(torchaudio("Conformer", 80, 4, 256, 4, 31), {"mel": (200, 80)}, frames),
    "wav2letter": Network(torchaudio("Wav2Letter", num_classes=40, input_type="mfcc", num_features=80), {"mel": (80, 200)}),
    "deepspeech": Network(torchaudio("DeepSpeech", 80, 512), {"mel": (1, 100, 80)}),
}


def shapes(name):
    """Sizes at which a network is timed."""
    return [f"{key}:{','.join(map(str, (1, *sizes)))}" for key, sizes in NETWORKS[name].sizes.items()]


def called(network, run):
    """The network as a module that returns what `run` makes of it and of operands."""
    import torch

    class Called(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, *operands):
            return run(self.network, *operands)

    return Called()


def build(name):
    """A network with one output, and its inputs."""
    import torch

    made = NETWORKS[name]

    def operand(key, sizes):
        return torch.randint(0, 100, (2, *sizes)) if key in made.whole else torch.randn(2, *sizes)

    return called(made.make(), made.run), {key: operand(key, sizes) for key, sizes in made.sizes.items()}
