"""Models as they are given: a path, bytes, or a `ModelProto`."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from .errors import Failed

if TYPE_CHECKING:
    import onnx

Model = Union[str, "os.PathLike[str]", bytes, "onnx.ModelProto"]
"""A model: the path of its file, its bytes, or itself."""

LARGEST = 2**31 - 1
"""Bytes of the largest protobuf message."""


class Folder:
    """A temporary folder, removed with the object."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="regraft-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Given:
    """A model as a file.

    Attributes:
        path: The file.
    """

    def __init__(self, model: Model) -> None:
        self._folder: Folder | None = None
        # A result of this package is a file, too.
        written = getattr(model, "path", None)
        if isinstance(model, (str, os.PathLike)) or isinstance(written, Path):
            self.path = Path(written or model)  # type: ignore[arg-type]
            return
        self._folder = Folder()
        self.path = self._folder.path / "model.onnx"
        if isinstance(model, (bytes, bytearray, memoryview)):
            self.path.write_bytes(model)
        elif hasattr(model, "SerializeToString") and hasattr(model, "graph"):
            save(model, self.path)
        else:
            raise Failed(
                f"a {type(model).__name__} is no model",
                hint="give a path, the bytes of a file, or an onnx.ModelProto",
            )


def save(model: Any, path: Path) -> None:
    """Writes a `ModelProto`, with its weights in a file of their own if the message would be too
    large."""
    if model.ByteSize() <= LARGEST:
        path.write_bytes(model.SerializeToString())
        return
    import onnx

    onnx.save(model, path, save_as_external_data=True, location=path.name + ".data")


def load(path: Path) -> onnx.ModelProto:
    """Reads a model, its weights included.

    Raises:
        Failed: if the package `onnx` is not installed.
    """
    try:
        import onnx
    except ImportError:
        raise Failed("the package onnx is not installed", place=str(path), hint="pip install onnx, or use `path`") from None
    return onnx.load(path)


def parsed(model: Model) -> onnx.ModelProto:
    """A model as a `ModelProto`, its weights included.

    Raises:
        Failed: if it is none, or if the package `onnx` is not installed.
    """
    if hasattr(model, "SerializeToString") and hasattr(model, "graph"):
        return model  # type: ignore[return-value]
    given = Given(model)
    try:
        return load(given.path)
    except Failed:
        raise
    except Exception as error:
        raise Failed(f"it is no model that can be read: {error}", place=str(given.path), hint="check the path") from None
