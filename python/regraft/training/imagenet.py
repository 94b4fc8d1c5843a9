"""ImageNet as folders of files, decoded when they are used."""

from __future__ import annotations

import math
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate

from ..errors import Failed
from .images import Batches, mixed, normalized

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
ENDINGS = (".jpeg", ".jpg", ".png")
"""Of files that are images, in any case."""
SHARES, RATIOS = (0.08, 1.0), (3 / 4, 4 / 3)
"""Of the area that is cut out to train on, and of its width to its height."""
MIDDLE = 224 / 256
"""Of the shorter side, what is looked at when images are held back."""


class ImageNet:
    """Folders `train/CLASS/` and `val/CLASS/`."""

    def __init__(self, folder: Path, side: int, workers: int) -> None:
        if find_spec("PIL") is None:
            raise Failed("Pillow, which decodes images, is not installed", hint="pip install Pillow")
        self.place, self.side, self.workers = str(folder), side, workers
        names = folders(folder / "train")
        unknown = sorted(set(folders(folder / "val")) - set(names))
        if unknown:
            raise Failed(f"its class `{unknown[0]}` is not in train", place=str(folder / "val"), hint="give both the same folders")
        self.train, self.val = (listed(folder / part, names) for part in ("train", "val"))
        self.classes, self.count = len(names), len(self.train)
        self.name = f"imagenet, {self.count} and {len(self.val)} images at {side} x {side}"

    def training(self, batch: int, seed: int, epoch: int, device: torch.device) -> Batches:
        order = numpy.random.default_rng(mixed(seed, epoch)).permutation(len(self.train)).tolist()
        return self._loaded(Files(self.train, self.side, (seed, epoch)), batch, device, sampler=order, drop_last=True)

    def held_back(self, batch: int, device: torch.device) -> Batches:
        return self._loaded(Files(self.val, self.side, None), batch, device)

    def _loaded(self, files: Files, batch: int, device: torch.device, **how: Any) -> Batches:
        """Batches from other processes. They draw from a generator of their own, so that how many
        there are changes nothing."""
        is_remote = device.type != "cpu"
        loader = DataLoader(
            files, batch, num_workers=self.workers, collate_fn=together, pin_memory=is_remote, generator=torch.Generator(), **how
        )
        for item in loader:
            if isinstance(item, Failed):
                raise item
            pixels, classes = (part.to(device, non_blocking=True) for part in item)
            yield normalized(pixels, MEAN, DEVIATION), classes


class Files(Dataset[Any]):
    """Decoded images: a part of each that its number, the seed and the epoch decide; the middle
    without a seed.

    One that cannot be decoded is the error that says so: exceptions do not reach other processes
    whole.
    """

    def __init__(self, files: list[tuple[str, int]], side: int, seed: tuple[int, int] | None) -> None:
        self.files, self.side, self.seed = files, side, seed

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, at: int) -> tuple[Tensor, int] | Failed:
        from PIL import Image

        file, label = self.files[at]
        random = None if self.seed is None else numpy.random.default_rng(mixed(*self.seed, at))
        try:
            with Image.open(file) as opened:
                box = middle(opened.size) if random is None else part(opened.size, random)
                image = opened.convert("RGB").resize((self.side, self.side), Image.Resampling.BILINEAR, box=box)
        except Exception as error:
            return Failed(f"it is no image that can be read: {' '.join(str(error).split())}", place=file, hint="replace or remove it")
        pixels = numpy.array(image)
        if random is not None and random.integers(2):
            pixels = pixels[:, ::-1]
        return torch.from_numpy(numpy.ascontiguousarray(pixels.transpose(2, 0, 1))), label


def together(items: list[Any]) -> Any:
    """A batch, or the first error in it."""
    return next((item for item in items if isinstance(item, Failed)), None) or default_collate(items)


def part(size: tuple[int, int], random: numpy.random.Generator) -> tuple[float, float, float, float]:
    """A part of an image, as left, upper, right and lower edge."""
    width, height = size
    for _ in range(10):
        area = width * height * random.uniform(*SHARES)
        ratio = math.exp(random.uniform(math.log(RATIOS[0]), math.log(RATIOS[1])))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            left, upper = random.integers(width - w + 1), random.integers(height - h + 1)
            return float(left), float(upper), float(left + w), float(upper + h)
    return middle(size)


def middle(size: tuple[int, int]) -> tuple[float, float, float, float]:
    """The middle of an image."""
    width, height = size
    half = min(width, height) * MIDDLE / 2
    return width / 2 - half, height / 2 - half, width / 2 + half, height / 2 + half


def folders(folder: Path) -> list[str]:
    """Names of the folders in a folder, in order.

    Raises:
        Failed: if there are none.
    """
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    except OSError as error:
        raise Failed(f"cannot read it: {error.strerror}", place=str(folder), hint="name the folder with train/ and val/ in it") from None
    if not names:
        raise Failed("there are no folders of classes in it", place=str(folder), hint="it needs CLASS/*.JPEG")
    return names


def listed(folder: Path, names: list[str]) -> list[tuple[str, int]]:
    """Files and their classes, in order.

    Raises:
        Failed: if there are none.
    """
    files = [
        (entry, label)
        for label, name in enumerate(names)
        if (folder / name).is_dir()
        for entry in sorted(entry.path for entry in os.scandir(folder / name) if entry.name.lower().endswith(ENDINGS))
    ]
    if not files:
        raise Failed("there are no images in its folders", place=str(folder), hint="it needs CLASS/*.JPEG")
    return files
