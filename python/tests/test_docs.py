"""The examples of the documentation: blocks of Python that say `run` behind the fence."""

from __future__ import annotations

import os
import re
import tempfile
import unittest
from pathlib import Path

import onnx
from models import convolutions

PAGES = Path(__file__).resolve().parents[2] / "docs" / "guide"


class Examples(unittest.TestCase):
    def test_examples_run(self) -> None:
        ran = 0
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        for page in sorted(PAGES.glob("*.md")):
            for example in re.findall(r"^```python run\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
                with self.subTest(page=page.name), tempfile.TemporaryDirectory() as folder:
                    os.chdir(folder)
                    onnx.save(convolutions(), "model.onnx")
                    onnx.save(convolutions("N"), "open.onnx")
                    exec(compile(example, page.name, "exec"), {})
                    os.chdir(before)
                    ran += 1
        self.assertGreaterEqual(ran, 3)
