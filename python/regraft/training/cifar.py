"""CIFAR-100 in its own format, held in memory (Krizhevsky, "Learning Multiple Layers of Features
from Tiny Images", 2009)."""

from __future__ import annotations

import codecs
import pickle
from pathlib import Path
from typing import Any

import numpy
import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import Failed
from .images import Batches, mixed, normalized

MEAN, DEVIATION = (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)
SIDE = 32
"""Height and width in the files."""
PAD = 2
"""Pixels around an image when a part of the old size is cut out of it."""
HOLE = 3
"""Height and width of the square that is blanked."""

# What numpy makes arrays with when they are unpickled, wherever this release of it keeps that.
ARRAYS = {
    "_reconstruct": numpy.empty(1).__reduce__()[0],
    "_frombuffer": numpy.empty(1).__reduce_ex__(5)[0],
    "scalar": numpy.float64(1).__reduce__()[0],
    "ndarray": numpy.ndarray,
    "dtype": numpy.dtype,
}


class Unpickler(pickle.Unpickler):
    """Makes arrays of numpy and Python's plain values, and calls nothing else that a file names."""

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "numpy" and name in ARRAYS:
            return ARRAYS[name]
        if (module, name) == ("_codecs", "encode"):
            return codecs.encode
        raise pickle.UnpicklingError(f"it names {module}.{name}, which is no array")


class Cifar100:
    """The folder `cifar-100-python`: enlarged when they are used; to train on, shifted, mirrored,
    and with a hole."""

    def __init__(self, folder: Path, side: int, workers: int) -> None:
        del workers
        if not folder.is_dir():
            raise Failed("there is no such folder", place=str(folder), hint="unpack cifar-100-python.tar.gz, and name the folder in it")
        names = unpickled(folder / "meta", b"fine_label_names")[0]
        self.place, self.side, self.classes = str(folder), side, len(names)
        self.train, self.test = (labelled(folder / name, self.classes) for name in ("train", "test"))
        self.count = len(self.train[1])
        self.name = f"cifar100, {self.count} and {len(self.test[1])} images at {side} x {side}"

    def training(self, batch: int, seed: int, epoch: int, device: torch.device) -> Batches:
        pixels, classes = self.train
        random = numpy.random.default_rng(mixed(seed, epoch))
        order = torch.from_numpy(random.permutation(len(classes)))
        shifts = torch.from_numpy(random.integers(0, 2 * PAD + 1, (len(order), 2)))
        mirrors = torch.from_numpy(random.integers(0, 2, len(order)).astype(bool))
        holes = torch.from_numpy(random.integers(0, SIDE, (len(order), 2)))
        for at in range(0, len(order) - batch + 1, batch):
            part = slice(at, at + batch)
            chosen = order[part]
            images = normalized(pixels[chosen].to(device), MEAN, DEVIATION)
            images = changed(images, *(one[part].to(device) for one in (shifts, mirrors, holes)))
            yield enlarged(images, self.side), classes[chosen].to(device)

    def held_back(self, batch: int, device: torch.device) -> Batches:
        pixels, classes = self.test
        for at in range(0, len(classes), batch):
            part = slice(at, at + batch)
            yield enlarged(normalized(pixels[part].to(device), MEAN, DEVIATION), self.side), classes[part].to(device)


def changed(images: Tensor, shifts: Tensor, mirrors: Tensor, holes: Tensor) -> Tensor:
    """Each image `[N, 3, H, W]` shifted, mirrored if it says so, and blanked around a pixel."""
    along = torch.arange(SIDE, device=images.device)
    rows = along + shifts[:, :1]
    columns = torch.where(mirrors[:, None], along.flip(0), along) + shifts[:, 1:]
    every = torch.arange(len(images), device=images.device)[:, None, None]
    images = F.pad(images, (PAD,) * 4)[every, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
    near = [(along - holes[:, axis : axis + 1]).abs() <= HOLE // 2 for axis in (0, 1)]
    return images.masked_fill((near[0][:, :, None] & near[1][:, None, :])[:, None], 0.0)


def enlarged(images: Tensor, side: int) -> Tensor:
    """Images at another size."""
    return images if side == SIDE else F.interpolate(images, size=(side, side), mode="bilinear", align_corners=False)


def unpickled(file: Path, *keys: bytes) -> list[Any]:
    """The values of some keys of a pickled dictionary.

    Raises:
        Failed: if the file is not there, or is no such dictionary.
    """
    hint = "unpack cifar-100-python.tar.gz again"
    try:
        with file.open("rb") as stream:
            found = Unpickler(stream, encoding="bytes").load()
    except OSError as error:
        raise Failed(f"cannot read it: {error.strerror}", place=str(file), hint=hint) from None
    except Exception as error:
        raise Failed(f"it is no pickle of CIFAR-100: {' '.join(str(error).split())}", place=str(file), hint=hint) from None
    if not isinstance(found, dict) or not all(key in found for key in keys):
        raise Failed(f"it lacks {' or '.join(key.decode() for key in keys)}", place=str(file), hint=hint)
    return [found[key] for key in keys]


def labelled(file: Path, classes: int) -> tuple[Tensor, Tensor]:
    """Images `[N, 3, H, W]` as bytes, and their classes `[N]`."""
    pixels, labels = unpickled(file, b"data", b"fine_labels")
    try:
        images = numpy.asarray(pixels).reshape(len(labels), 3, SIDE, SIDE)
        known = numpy.asarray(labels, dtype=numpy.int64)
        if images.dtype != numpy.uint8 or not len(known) or known.min() < 0 or known.max() >= classes:
            raise ValueError(f"data are {images.dtype}, and {len(known)} labels are not all of {classes} classes")
    except (TypeError, ValueError) as error:
        hint = "unpack cifar-100-python.tar.gz again"
        raise Failed(f"its data are no images of {SIDE} x {SIDE} with labels: {error}", place=str(file), hint=hint) from None
    return torch.from_numpy(images.copy()), torch.from_numpy(known)
