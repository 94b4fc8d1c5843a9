#!/usr/bin/env python3
"""Writes a network of Keras with seeded random weights, as its exporter does, which asks `tf2onnx` to
convert what TensorFlow traces: images have their channels last, the batch is open, a convolution of a
sequence is one of an image between two changes of shape, and norms are a scale and a shift.

    converted.py NAME FILE

Needs an interpreter with `tensorflow-cpu`, `tf2onnx` and `onnx` in an environment of its own;
`models.py` starts the one that TENSORFLOW names. Nothing is downloaded.
"""

import os
import sys

APPLICATIONS = {
    "densenet121": "DenseNet121",
    "inception-resnet-v2": "InceptionResNetV2",
    "inception-v3": "InceptionV3",
    "mobilenet": "MobileNet",
    "mobilenet-v2": "MobileNetV2",
    "nasnet-mobile": "NASNetMobile",
    "resnet50": "ResNet50",
    "resnet50-v2": "ResNet50V2",
    "xception": "Xception",
}
"""Classifiers of images that come with Keras."""


def unet(layers):
    """Segments an image: down three levels and up again, with what was there before beside it."""
    image = x = layers.Input((128, 128, 3))
    kept = []
    for width in (32, 64, 128):
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
        kept.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(256, 3, padding="same", activation="relu")(x)
    for width in (128, 64, 32):
        x = layers.Conv2DTranspose(width, 2, strides=2, padding="same")(x)
        x = layers.Concatenate()([kept.pop(), x])
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
        x = layers.BatchNormalization()(x)
    return image, layers.Conv2D(1, 1, activation="sigmoid")(x)


def autoencoder(layers):
    """Makes an image small by separable convolutions, and large by repeating pixels."""
    image = x = layers.Input((64, 64, 3))
    for width in (32, 64, 128):
        x = layers.SeparableConv2D(width, 3, strides=2, padding="same")(x)
        x = layers.PReLU(shared_axes=[1, 2])(x)
    for width in (128, 64, 32):
        x = layers.UpSampling2D()(x)
        x = layers.Conv2D(width, 3, padding="same", activation="elu")(x)
    return image, layers.Conv2D(3, 3, padding="same")(x)


def dcgan(layers):
    """Makes an image out of noise, by transposed convolutions."""
    noise = layers.Input((100,))
    x = layers.Reshape((4, 4, 512))(layers.Dense(4 * 4 * 512)(noise))
    for width in (256, 128, 64):
        x = layers.Conv2DTranspose(width, 5, strides=2, padding="same", use_bias=False)(x)
        x = layers.LeakyReLU()(layers.BatchNormalization()(x))
    return noise, layers.Conv2DTranspose(3, 5, strides=2, padding="same", activation="tanh")(x)


def keyword(layers):
    """Tells which word a second of speech is, as DS-CNN does (Zhang and others, 2017)."""
    sound = layers.Input((49, 10, 1))
    x = layers.Conv2D(64, (10, 4), strides=2, padding="same", use_bias=False)(sound)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    for _ in range(4):
        for layer in (layers.DepthwiseConv2D(3, padding="same", use_bias=False), layers.Conv2D(64, 1, use_bias=False)):
            x = layers.ReLU()(layers.BatchNormalization()(layer(x)))
    return sound, layers.Dense(12, activation="softmax")(layers.GlobalAveragePooling2D()(x))


def wavenet(layers):
    """Predicts samples of sound by gated convolutions that look further and further back."""
    sound = layers.Input((2000, 1))
    x, skips = layers.Conv1D(64, 1)(sound), []
    for dilation in (1, 2, 4, 8, 16, 32) * 2:
        gates = [layers.Conv1D(64, 2, dilation_rate=dilation, padding="causal", activation=f)(x) for f in ("tanh", "sigmoid")]
        gated = layers.Multiply()(gates)
        skips.append(layers.Conv1D(64, 1)(gated))
        x = layers.Add()([x, layers.Conv1D(64, 1)(gated)])
    return sound, layers.Conv1D(256, 1, activation="softmax")(layers.ReLU()(layers.Add()(skips)))


def heartbeats(layers):
    """Classifies an electrocardiogram of one channel, by residual convolutions."""
    signal = layers.Input((1024, 1))
    x = layers.Conv1D(32, 7, padding="same")(signal)
    for width in (32, 64, 128):
        shortcut = layers.Conv1D(width, 1, strides=2)(x)
        x = layers.ReLU()(layers.BatchNormalization()(layers.Conv1D(width, 5, strides=2, padding="same")(x)))
        x = layers.BatchNormalization()(layers.Conv1D(width, 5, padding="same")(x))
        x = layers.ReLU()(layers.Add()([x, shortcut]))
    return signal, layers.Dense(5, activation="softmax")(layers.GlobalAveragePooling1D()(x))


def video(layers):
    """Classifies 16 images in a row by convolutions of volumes."""
    images = x = layers.Input((16, 56, 56, 3))
    for width in (32, 64, 128):
        x = layers.MaxPooling3D(2)(layers.Conv3D(width, 3, padding="same", activation="relu")(x))
    return images, layers.Dense(10)(layers.GlobalAveragePooling3D()(x))


def transformer(layers):
    """Classifies 64 tokens by four layers of attention."""
    import keras

    tokens = layers.Input((64,), dtype="int32")
    x = layers.Embedding(5000, 256)(tokens)
    for _ in range(4):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(8, 32)(x, x))
        hidden = layers.Dense(1024, activation=lambda y: keras.activations.gelu(y, approximate=True))(x)
        x = layers.LayerNormalization()(x + layers.Dense(256)(hidden))
    return tokens, layers.Dense(10)(layers.GlobalAveragePooling1D()(x))


def mixer(layers):
    """Classifies an image by products along its patches and along their features in turn."""
    image = layers.Input((64, 64, 3))
    x = layers.Reshape((64, 128))(layers.Conv2D(128, 8, strides=8)(image))
    for _ in range(4):
        y = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        x = x + layers.Permute((2, 1))(layers.Dense(64)(layers.Dense(256, activation="relu")(y)))
        x = x + layers.Dense(128)(layers.Dense(512, activation="relu")(layers.LayerNormalization()(x)))
    return image, layers.Dense(10)(layers.GlobalAveragePooling1D()(x))


def wide_and_deep(layers):
    """Recommends by eight categories and 13 numbers (Cheng and others, 2016)."""
    categories = [layers.Input((1,), dtype="int32") for _ in range(8)]
    numbers = layers.Input((13,))
    known = [layers.Flatten()(layers.Embedding(1000, 16)(category)) for category in categories]
    deep = layers.Concatenate()([*known, numbers])
    for width in (256, 128, 64):
        deep = layers.BatchNormalization()(layers.Dense(width, activation="relu")(deep))
    return [*categories, numbers], layers.Dense(1, activation="sigmoid")(layers.Concatenate()([deep, numbers]))


def recurrent(layers):
    """Classifies 60 tokens by a recurrent layer in both directions."""
    tokens = layers.Input((60,), dtype="int32")
    x = layers.Bidirectional(layers.LSTM(64))(layers.Embedding(5000, 128)(tokens))
    return tokens, layers.Dense(20, activation="softmax")(x)


def convolutional_recurrent(layers):
    """Predicts the next one of eight images by convolutions in a loop."""
    images = layers.Input((8, 32, 32, 1))
    x = layers.ConvLSTM2D(16, 3, padding="same", return_sequences=True)(images)
    x = layers.ConvLSTM2D(16, 3, padding="same")(x)
    return images, layers.Conv2D(1, 3, padding="same", activation="sigmoid")(x)


MADE = {
    make.__name__.replace("_", "-"): make
    for make in (
        unet,
        autoencoder,
        dcgan,
        keyword,
        wavenet,
        heartbeats,
        video,
        transformer,
        mixer,
        wide_and_deep,
        recurrent,
        convolutional_recurrent,
    )
}
"""Small networks of other kinds."""

NAMES = [*APPLICATIONS, *MADE]


def network(name):
    import keras

    if name in APPLICATIONS:
        return getattr(keras.applications, APPLICATIONS[name])(weights=None)
    return keras.Model(*MADE[name](keras.layers))


def main():
    name, path = sys.argv[1:]
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    import keras
    import numpy as np

    keras.utils.set_random_seed(0)
    made = network(name)
    random = np.random.default_rng(0)
    for weight in made.weights:
        # As after some training: else biases are 0, and norms do nothing.
        if weight.path.endswith(("moving_mean", "beta", "bias")):
            weight.assign(random.normal(0, 0.05, weight.shape))
        elif weight.path.endswith(("moving_variance", "gamma")):
            weight.assign(random.uniform(0.75, 1.25, weight.shape))
    # What was never called is not traced.
    zeros = [np.zeros([1, *value.shape[1:]], value.dtype) for value in made.inputs]
    made(zeros if len(zeros) > 1 else zeros[0])
    made.export(path, format="onnx", verbose=False)


if __name__ == "__main__":
    main()
