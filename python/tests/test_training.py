"""Training of networks with operators in them, on tiny data in the formats of the real ones."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import math
import os
import pickle
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path
from typing import Any

import numpy

COLOURS = numpy.array([[220, 40, 40], [40, 220, 40], [40, 40, 220], [200, 200, 40]])

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
LAYER = """

class Layer{at}(nn.Module):
    def __init__(self):
        super().__init__()
        self.w0 = nn.Parameter(torch.empty({w0}))
        self.w1 = nn.Parameter(torch.empty({w1}))
        for weight in self.parameters():
            nn.init.trunc_normal_(weight, std=0.1)

    def forward(self, x):
        return {result}
"""
SEPARABLE = {
    "formula": "sum r0: C_in, r1: k, r2: k; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r0] * w[r0, r1, r2]",
    "w0": "{outer}, {inner}",
    "w1": "{inner}, 1, 3, 3",
    "result": "F.conv2d(F.conv2d(x, self.w1, padding=1, groups={inner}), self.w0[:, :, None, None])",
}
LOW_RANK = {
    "formula": "sum r0: C_in, r1: C_out/(g*s); x[r0, i1, i2] * w[i0, r1] * w[r1, r0]",
    "w0": "{outer}, {outer} // 16",
    "w1": "{outer} // 16, {inner}",
    "result": "F.conv2d(F.conv2d(x, self.w1[:, :, None, None]), self.w0[:, :, None, None])",
}
# The second operator of Syno, section 9.1, in two stages.
SYNO = {
    "formula": "x[.., shift(unfold(i1, r1)), unfold(i2, r2)] * w[i0, r0, r1, r3] * w[.., r2, r3]",
    "w0": "{outer}, 32 * {outer} // 64, 3, 1",
    "w1": "32 * {outer} // 64, {inner} // 32, 1, 3",
    "result": "F.conv2d(F.conv2d(torch.roll(x, -1, 2), self.w1, padding=(0, 1), groups=32), self.w0, padding=(1, 0))",
}
SMALL = [((32, 16, 16), (32, 16, 16)), ((32, 8, 8), (64, 8, 8)), ((64, 8, 8), (64, 8, 8))]
"""Layers of the network `small` at 32 x 32."""


def operator(file: Path, form: dict[str, str], layers: list[Any]) -> None:
    """Writes an operator as `regraft synthesize --emit` does."""
    text = HEAD
    for at, ((inner, *_), (outer, *_)) in enumerate(layers):
        fields = {key: value.format(inner=inner, outer=outer) for key, value in form.items() if key != "formula"}
        text += LAYER.format(at=at, **fields)
    known = "".join(f"    {layer}: Layer{at},\n" for at, layer in enumerate(layers))
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'{text}\n\nFORMULA = "{form["formula"]}"\nLAYERS = {{\n{known}}}\n')


def cifar(folder: Path) -> Path:
    """A folder in CIFAR-100's format whose classes are colours under noise."""
    folder.mkdir()
    random = numpy.random.default_rng(0)
    (folder / "meta").write_bytes(pickle.dumps({b"fine_label_names": [b"red", b"green", b"blue", b"yellow"]}, protocol=2))
    for name, count in (("train", 64), ("test", 32)):
        labels = [int(label) for label in random.integers(0, 4, count)]
        noise = random.normal(0, 30, (count, 3, 32 * 32))
        pixels = (COLOURS[labels][:, :, None] + noise).clip(0, 255).astype(numpy.uint8).reshape(count, -1)
        found = {b"data": pixels, b"fine_labels": labels, b"coarse_labels": labels, b"filenames": [b"x.png"] * count}
        (folder / name).write_bytes(pickle.dumps(found, protocol=2))
    return folder


def imagenet(folder: Path) -> Path:
    """A folder in ImageNet's format whose classes are colours."""
    from PIL import Image

    random = numpy.random.default_rng(0)
    for part, count in (("train", 12), ("val", 4)):
        for label, name in enumerate(("n01", "n02")):
            (folder / part / name).mkdir(parents=True)
            for at in range(count):
                size = tuple(random.integers(30, 60, 2))
                pixels = (COLOURS[label] + random.normal(0, 20, (*size, 3))).clip(0, 255).astype(numpy.uint8)
                Image.fromarray(pixels).save(folder / part / name / f"{at}.JPEG")
    return folder


class Evil:
    """Calls something when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("called",)


def call(*arguments: object) -> tuple[int, str, str]:
    """The command in this process: its exit code, its output, and its errors."""
    from regraft.training.command import main

    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = main([str(argument) for argument in arguments])
    return code, output.getvalue(), errors.getvalue()


class Package(unittest.TestCase):
    def test_nothing_of_it_is_needed(self) -> None:
        script = "import sys, regraft, regraft.training.command; print(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        self.assertFalse({"torch", "torchvision", "PIL", "numpy"} & set(done.stdout.split()))

    def test_without_pytorch_it_says_so(self) -> None:
        with unittest.mock.patch.dict(sys.modules, {"torch": None}):
            code, output, errors = call("operators", "--data", "cifar100:none")
        self.assertEqual((code, output), (2, ""))
        self.assertEqual(errors, "regraft: error: PyTorch is not installed (hint: pip install torch)\n")


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
class Training(unittest.TestCase):
    """Every test has operators, data and a database of its own."""

    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = Path(self._folder.name)
        self.operators = self.folder / "operators"
        operator(self.operators / "operator-01.py", SEPARABLE, SMALL)
        self.store = self.operators / "runs.db"
        self.data = f"cifar100:{cifar(self.folder / 'cifar')}"

    def train(self, *options: object, epochs: int = 2) -> tuple[int, str, str]:
        """The small network, for two epochs unless others are asked for."""
        how = ("--network=small", "--side=32", "--batch=16", "--threads=1", f"--epochs={epochs}")
        return call(self.operators, f"--data={self.data}", *how, *options)

    def rows(self, store: Path | None = None) -> list[tuple[Any, ...]]:
        """All that is in a database, but the times."""
        columns = "network, data, recipe, formula, parameters, seed, planned, epoch, loss, accuracy"
        with contextlib.closing(sqlite3.connect(store or self.store)) as connection:
            return connection.execute(f"SELECT {columns} FROM network_runs ORDER BY formula, seed, epoch").fetchall()

    def refused(self, *options: object) -> str:
        """The error of a call, which is one line with a hint."""
        code, output, errors = self.train(*options)
        self.assertEqual((code, output), (2, ""), errors)
        self.assertRegex(errors, r"\Aregraft: error: .*\(hint: .*\)\n\Z")
        return errors

    def test_an_operator_is_compared_with_the_network(self) -> None:
        code, output, errors = self.train("--json", epochs=3)
        self.assertEqual(code, 0, errors)
        baseline, separable = map(json.loads, output.splitlines())
        self.assertEqual((baseline["operator"], separable["operator"]), ("baseline", "operator-01"))
        self.assertEqual((baseline["replaced"], separable["replaced"], separable["convolutions"]), (0, 5, 6))
        dense = 2 * 32 * 32 * 9 + 32 * 64 * (9 + 1) + 64 * 64 * 9
        factors = 2 * (32 * 32 + 32 * 9) + 2 * (32 * 64 + 32 * 9) + 64 * 64 + 64 * 9
        self.assertEqual(baseline["parameters"] - separable["parameters"], dense - factors)
        self.assertEqual(separable["formula"], SEPARABLE["formula"])
        for run in (baseline, separable):
            rows = [row for row in self.rows() if row[3] == run["formula"]]
            self.assertEqual([row[7] for row in rows], [1, 2, 3])
            self.assertLess(rows[-1][8], rows[0][8])
            self.assertEqual((run["loss"], run["accuracy"]), rows[-1][8:])
            self.assertEqual(run["best"], max(row[9] for row in rows))
            self.assertGreater(run["best"], 0.5)
        # Known by now, and in words.
        code, output, errors = self.train(epochs=3)
        self.assertEqual((code, "epoch 1" in errors), (0, False), errors)
        self.assertRegex(output.splitlines()[1], r"^ *\d+\.\d\d %  epoch 3  seed 0  0\.0\d M  operator-01: sum r0")

    def test_every_epoch_has_images_and_a_rate_of_its_own(self) -> None:
        import torch
        from regraft.training.cifar import Cifar100
        from regraft.training.networks import network
        from regraft.training.trainer import Recipe
        from regraft.training.trainer import Training as Trained

        images, device = Cifar100(self.folder / "cifar", 40, 0), torch.device("cpu")
        epochs = [next(iter(images.training(16, *which, device))) for which in ((0, 1), (0, 1), (0, 2), (1, 1))]
        self.assertEqual(epochs[0][0].shape, (16, 3, 40, 40))
        self.assertEqual([torch.equal(epochs[0][0], pixels) for pixels, _ in epochs], [True, True, False, False])
        self.assertLess(abs(float(epochs[0][0].mean())), 1.0)
        self.assertEqual([len(classes) for _, classes in images.held_back(20, device)], [20, 12])
        training = Trained(network("small", 4), images, Recipe(batch=16, rate=0.2, epochs=2), 0, device)
        for done in (3 / 8, 7 / 8):
            training.advance()
            self.assertAlmostEqual(training.optimizer.param_groups[0]["lr"], 0.1 * (1 + math.cos(math.pi * done)))

    def test_an_interrupted_run_goes_on(self) -> None:
        from regraft.training.runs import Store

        operator(self.operators / "operator-02.py", LOW_RANK, SMALL)
        whole = self.folder / "whole.db"
        self.assertEqual(self.train(f"--store={whole}", epochs=3)[0], 0)
        save, calls = Store.save, 0

        def interrupt(store: Any, subject: Any, state: Any) -> None:
            nonlocal calls
            calls += 1
            # Before and after what is saved, in turns.
            if calls % 2:
                raise KeyboardInterrupt
            save(store, subject, state)
            raise KeyboardInterrupt

        with unittest.mock.patch.object(Store, "save", interrupt):
            code, output, errors = self.train(epochs=3)
            self.assertEqual((code, len(output.splitlines())), (130, 1), errors)
            self.assertIn("interrupted", errors)
            code, output, errors = self.train(epochs=3)
            self.assertEqual(code, 130)
            self.assertLess(len(self.rows()), 9)
        code, output, errors = self.train(epochs=3)
        self.assertEqual((code, len(output.splitlines())), (0, 3), errors)
        self.assertIn("epoch 3 of 3", errors)
        self.assertNotRegex(errors, r"epoch 1 of 3: .*: baseline")
        self.assertEqual(self.rows(), self.rows(whole))
        self.assertEqual(len(self.rows()), 9)

    def test_control_c_keeps_what_there_is(self) -> None:
        # Shells have programs in the background ignore it.
        script = (
            "import signal, sys; from regraft.training.command import main\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "sys.exit(main())"
        )
        how = ["--network=small", "--side=32", "--batch=16", "--threads=1", "--epochs=10000"]
        command = [sys.executable, "-c", script, str(self.operators), f"--data={self.data}", *how]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if "epoch 2 of" in line:
                    process.send_signal(signal.SIGINT)
                    break
            output, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, errors)
        self.assertNotIn("Traceback", errors)
        self.assertRegex(output, r"\A.* %  epoch \d+  seed 0  .* baseline: baseline\n\Z")

    def test_the_worse_half_is_dropped_and_the_network_is_not(self) -> None:
        from regraft.training.networks import parameters
        from regraft.training.trainer import Training as Trained

        for at in range(1, 5):
            form = {**LOW_RANK, "formula": f"rank {at}", "w0": f"{{outer}}, {at}", "w1": f"{at}, {{inner}}"}
            operator(self.operators / f"operator-{at:02}.py", form, SMALL)
        _, _, errors = self.train()
        sizes = {name: int(size) for name, size in re.findall(r"^(\S+): .* replaced, (\d+) parameters", errors, re.MULTILINE)}
        accuracies = {"baseline": 0.1, "operator-01": 0.5, "operator-02": 0.7, "operator-03": 0.9, "operator-04": 0.2}
        known = {sizes[name]: accuracy for name, accuracy in accuracies.items()}
        self.assertEqual(len(known), 5)

        def advance(training: Any) -> tuple[float, float]:
            training.epoch += 1
            # The score is the best epoch.
            return 1.0, known[parameters(training.network)] / training.epoch

        with unittest.mock.patch.object(Trained, "advance", advance):
            code, output, _ = self.train("--milestones=1,2", "--json", f"--store={self.folder / 'halved.db'}", epochs=3)
        self.assertEqual(code, 0)
        reached = {run["operator"]: (run["epoch"], run["best"]) for run in map(json.loads, output.splitlines())}
        want = {"baseline": (3, 0.1), "operator-01": (1, 0.5), "operator-02": (2, 0.7), "operator-03": (3, 0.9), "operator-04": (1, 0.2)}
        self.assertEqual(reached, want)
        for milestones in ("2,1", "0", "5", "x", "1,1"):
            self.refused(f"--milestones={milestones}")

    def test_files_of_imagenet_are_decoded(self) -> None:
        if importlib.util.find_spec("PIL") is None:
            self.skipTest("Pillow is not installed")
        folder = imagenet(self.folder / "imagenet")
        self.data = f"imagenet:{folder}"
        alone, beside = self.folder / "alone.db", self.folder / "beside.db"
        self.assertEqual(self.train("--workers=0", f"--store={alone}")[0], 0)
        self.assertEqual(self.train("--workers=2", f"--store={beside}")[0], 0)
        self.assertEqual(self.rows(alone), self.rows(beside))
        self.assertLess(self.rows(alone)[1][8], self.rows(alone)[0][8])
        self.assertEqual(self.rows(alone)[0][1], "imagenet, 24 and 8 images at 32 x 32")
        (folder / "val" / "n01" / "0.JPEG").write_bytes(b"no image")
        self.assertIn("0.JPEG", self.train("--workers=2", "--store", self.folder / "broken.db")[2])
        (folder / "val" / "n03").mkdir()
        self.assertIn("n03", self.refused())

    def test_data_that_cannot_be_read_are_refused(self) -> None:
        cifar = self.folder / "cifar"
        self.assertIn("names no data", self.refused("--data=mnist:x"))
        self.assertIn("no such folder", self.refused("--data=cifar100:none"))
        self.assertIn("none/train", self.refused("--data=imagenet:none"))
        self.assertIn("--batch 64", self.refused("--batch=65"))
        whole = (cifar / "train").read_bytes()
        pixels = numpy.zeros((2, 3072), numpy.uint8)
        for wrong, cause in (
            (whole[: len(whole) // 2], "no pickle"),
            (b"", "no pickle"),
            (pickle.dumps(Evil()), "mkdir"),
            (pickle.dumps([1]), "lacks data"),
            (pickle.dumps({b"data": pixels, b"labels": [0, 0]}), "lacks data or fine_labels"),
            (pickle.dumps({b"data": pixels, b"fine_labels": [0]}), "no images"),
            (pickle.dumps({b"data": pixels, b"fine_labels": [0, 4]}), "not all of 4 classes"),
            (pickle.dumps({b"data": pixels.astype(float), b"fine_labels": [0, 1]}), "float64"),
        ):
            (cifar / "train").write_bytes(wrong)
            errors = self.refused()
            self.assertIn(cause, errors)
            self.assertIn(str(cifar / "train"), errors)
        self.assertFalse(Path("called").exists())
        (cifar / "train").unlink()
        self.assertIn("cannot read it", self.refused())

    def test_operators_that_do_not_fit_are_refused(self) -> None:
        self.assertIn("none of its layers", self.refused("--side=48"))
        self.assertIn("32x24x24 to 32x24x24", self.refused("--side=48"))
        file = self.operators / "operator-01.py"
        text = file.read_text()
        for wrong, cause in (
            ("import none", "ModuleNotFoundError"),
            ("LAYERS = {", "SyntaxError"),
            ("x = 1", "lacks LAYERS"),
            (text.replace("padding=1", "padding=0"), "of a batch of 2"),
            (text.replace("self.w1, padding", "self.w2, padding"), "no attribute 'w2'"),
        ):
            file.write_text(wrong)
            errors = self.refused()
            self.assertIn(cause, errors)
            self.assertIn(str(file), errors)
        file.unlink()
        self.assertIn("no file operator-NUMBER.py", self.refused())
        self.operators = self.folder / "none"
        self.assertIn("no such folder", self.refused())

    def test_other_mistakes_are_refused(self) -> None:
        for option in ("--network=lenet", "--seeds=-1", "--epochs=0", "--device=nothing", "--speed", "--workers=-1", "--rate=0"):
            self.refused(option)
        wrong = self.folder / "wrong.db"
        wrong.write_text("no database, but more than a hundred bytes of text, as a header has: " + "x" * 100)
        self.assertIn("wrong.db", self.refused(f"--store={wrong}"))
        self.assertEqual(self.train(epochs=2)[0], 0)
        checkpoints = list((self.operators / "runs.db.checkpoints").iterdir())
        self.assertEqual([file.suffix for file in checkpoints], [".pt", ".pt"])

    def test_a_run_that_diverges_is_no_number(self) -> None:
        code, output, errors = self.train("--rate=1e30", "--json")
        self.assertEqual(code, 0, errors)
        self.assertIn('"loss": null', output)


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
class Networks(unittest.TestCase):
    """Those of the literature, by the numbers that are known of them."""

    def test_parameters_are_as_published(self) -> None:
        from regraft.training.networks import network, parameters

        self.assertEqual(parameters(network("resnet18", 1000)), 11_689_512)
        self.assertEqual(parameters(network("resnet34", 1000)), 21_797_672)

    def test_synos_operator_takes_the_place_of_19_convolutions(self) -> None:
        from functools import partial

        from regraft.training.candidates import candidates
        from regraft.training.networks import network
        from regraft.training.operators import load

        channels = [(64, 64, 56), (64, 128, 28), (128, 128, 28), (128, 256, 14), (256, 256, 14), (256, 512, 7), (512, 512, 7)]
        with tempfile.TemporaryDirectory() as folder:
            layers = [((inner, side, side), (outer, side, side)) for inner, outer, side in channels]
            operator(Path(folder) / "operator-01.py", SYNO, layers)
            operators = load(Path(folder))
        names = ["resnet18"] + ["torchvision/resnet18"] * bool(importlib.util.find_spec("torchvision"))
        for name in names:
            with self.subTest(network=name):
                baseline, found = candidates(partial(network, name, 100), operators, side=224, keep_pointwise=False)
                self.assertEqual((len(found.replaced), found.convolutions, found.parameters), (19, 20, 2_740_644))
                _, found = candidates(partial(network, name, 100), operators, side=224, keep_pointwise=True)
                self.assertEqual(len(found.replaced), 16)

    def test_only_convolutions_that_keep_the_size_are_replaced(self) -> None:
        import torch
        from regraft.training.replacement import Replacement, convolutions
        from torch import nn

        network = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1),
            nn.Conv2d(4, 4, 3, padding=1, groups=2),
            nn.Conv2d(4, 4, 3, padding=2, dilation=2),
            nn.Conv2d(4, 4, (1, 3), padding="same"),
            nn.Conv2d(4, 6, 3, stride=2, padding=1),
            nn.Conv2d(6, 6, 3),
            nn.Conv2d(6, 6, 2, padding=1),
        )
        want = [((3, 7, 7), (4, 7, 7)), None, None, ((4, 7, 7), (4, 7, 7)), ((4, 4, 4), (6, 4, 4)), None, None]
        self.assertEqual(list(convolutions(network, 7).values()), want)
        strided = network[4]
        replaced = Replacement(strided, nn.Conv2d(4, 6, 1, bias=False))
        x = torch.ones(2, 4, 7, 7)
        self.assertEqual(replaced(x).shape, strided(x).shape)
        torch.testing.assert_close(replaced(x)[:, :, 0, 0], replaced(x)[:, :, 3, 3])
        self.assertIs(replaced.bias, strided.bias)


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
class Changes(unittest.TestCase):
    def test_images_are_shifted_mirrored_and_blanked(self) -> None:
        import torch
        from regraft.training.cifar import changed

        images = torch.arange(2 * 3 * 32 * 32).reshape(2, 3, 32, 32).float()
        shifts, mirrors, holes = torch.tensor([[2, 2], [0, 3]]), torch.tensor([True, False]), torch.tensor([[0, 0], [10, 20]])
        found = changed(images, shifts, mirrors, holes)
        want = torch.zeros_like(images)
        want[0] = images[0].flip(2)
        want[0, :, :2, :2] = 0
        want[1, :, 2:, :31] = images[1, :, :30, 1:]
        want[1, :, 9:12, 19:22] = 0
        torch.testing.assert_close(found, want)


if __name__ == "__main__":
    unittest.main()
