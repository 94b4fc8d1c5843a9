"""Real inputs of a model: arrays, files, or a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Union

from .model import Folder

if TYPE_CHECKING:
    import numpy

Data = Union[Mapping[str, Union["numpy.ndarray", str, "os.PathLike[str]"]], str, "os.PathLike[str]", None]
"""An array or a file (.npy, .pb) for each input; or a folder with one file for each, or an .npz
file."""


class Held:
    """Inputs as the command reads them.

    Attributes:
        arguments: Values of its option `--data`.
    """

    def __init__(self, data: Data) -> None:
        self._folder: Folder | None = None
        self.arguments: list[str] = []
        if data is None:
            return
        if not isinstance(data, Mapping):
            self.arguments = [os.fspath(data)]
            return
        for number, (name, value) in enumerate(data.items()):
            self.arguments.append(f"{name}:{self._file(number, value)}")

    def _file(self, number: int, value: numpy.ndarray | str | os.PathLike[str]) -> str:
        if isinstance(value, (str, os.PathLike)):
            return os.fspath(value)
        import numpy

        self._folder = self._folder or Folder()
        path = self._folder.path / f"{number}.npy"
        numpy.save(path, numpy.asarray(value))
        return str(path)
