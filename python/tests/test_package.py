"""The package as its users meet it."""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any

import numpy
import onnx
import regraft
from models import convolutions


def outputs(model: onnx.ModelProto, feeds: dict[str, numpy.ndarray]) -> list[Any]:
    """What a model computes under the runtime."""
    import onnxruntime

    return list(onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds))


class Package(unittest.TestCase):
    """Every test has a folder and a store of measurements of its own."""

    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = Path(self._folder.name)
        self.store = self.folder / "costs.sqlite"
        self.model = convolutions()
        self.path = self.folder / "model.onnx"
        onnx.save(self.model, self.path)

    def optimize(self, model: Any, output: Any = None, **named: Any) -> regraft.Result:
        return regraft.optimize(model, output, **{"budget": 6, "threads": 1, "cost_store": self.store, **named})

    def feeds(self) -> dict[str, numpy.ndarray]:
        return {"x": numpy.random.default_rng(1).standard_normal((1, 3, 24, 24)).astype(numpy.float32)}

    def test_paths_bytes_and_models_are_optimized(self) -> None:
        steps: list[tuple[str, str]] = []
        for model in (self.path, str(self.path), self.path.read_bytes(), self.model):
            result = self.optimize(model, untimed=True, progress=lambda *step: steps.append(step))
            numpy.testing.assert_allclose(outputs(result.model, self.feeds())[0], outputs(self.model, self.feeds())[0], rtol=1e-4)
            self.assertLess(len(result.model.graph.node), len(self.model.graph.node))
            self.assertTrue(result.certificate)
        self.assertIn("load", {phase for phase, _ in steps})

    def test_a_result_is_timed_checked_and_saved(self) -> None:
        result = self.optimize(self.path, self.folder / "fast.onnx")
        self.assertTrue((self.folder / "fast.onnx").exists())
        self.assertGreater(result.speedup, 0.5)
        self.assertLessEqual(result.speedup.low, result.speedup)
        self.assertTrue(result.certificate)
        self.assertIn("regraft", result._repr_html_())
        found = regraft.check(self.path, result.path)
        self.assertTrue(found)
        self.assertIn(found.word, ("proved", "bounded"))
        self.assertTrue(result.save(self.folder / "copy.onnx").exists())
        self.assertIn("verdict", regraft.explain(result))

    def test_recorded_prices_predict(self) -> None:
        recording = regraft.record(self.path, self.folder / "device.json", threads=1, budget=4)
        self.assertTrue(recording.path.exists())
        self.assertGreater(recording.report["prices"], 0)
        result = self.optimize(self.path, self.folder / "fast.onnx", cost=recording.cost)
        assert result.prediction is not None
        self.assertEqual(result.prediction["threads"], 1)
        self.assertEqual(result.speedup.pairs, 0)
        self.assertIn("not measured here", result.verdict)
        self.assertIsNone(self.optimize(self.path, untimed=True).prediction)
        with self.assertRaises(regraft.Failed) as caught:
            self.optimize(self.path, cost=f"profile:{self.path}")
        self.assertTrue(caught.exception.hint)

    @unittest.skipUnless(importlib.util.find_spec("openvino"), "openvino is not installed")
    def test_the_fastest_runtime_is_named(self) -> None:
        result = self.optimize(self.path, target="openvino", untimed=True)
        self.assertTrue(result.report["runtime"].startswith("openvino "))
        self.assertTrue(regraft.check(self.path, result.path, target="openvino"))
        timed = regraft.bench(self.path, result.path, target="openvino", runs=4, threads=1)
        self.assertEqual(len(timed.models), 2)
        result = self.optimize(self.path, self.folder / "fast.onnx", target="fastest", budget=12)
        rows = result.report["fastest"]["runtimes"]
        self.assertEqual([row["runtime"].split()[0] for row in rows], ["onnxruntime", "openvino"])
        self.assertIn(result.report["runtime"], [row["runtime"] for row in rows])
        self.assertIn(f"deploy on {result.report['runtime']}", result.verdict)
        self.assertEqual(sorted(file.name for file in self.folder.glob("*fast*")), ["fast.certificate", "fast.onnx"])
        self.assertEqual(list(self.folder.glob(".regraft-*")), [])

    def test_python_and_the_command_write_the_same_bytes(self) -> None:
        self.optimize(self.path, self.folder / "warm.onnx")
        ours = self.optimize(self.path, self.folder / "ours.onnx", frozen=True)
        theirs = self.folder / "theirs.onnx"
        options = ["-o", str(theirs), "--frozen", "--threads=1", "--budget=6s", f"--cost-store={self.store}"]
        command = [sys.executable, "-m", "regraft", "optimize", str(self.path), *options]
        subprocess.run(command, check=True, capture_output=True)
        self.assertEqual(ours.path.read_bytes(), theirs.read_bytes())
        self.assertEqual(ours.certificate, theirs.with_suffix(".certificate").read_text())

    def test_mistakes_have_cause_place_and_hint(self) -> None:
        with self.assertRaises(regraft.Failed) as caught:
            self.optimize(self.folder / "none.onnx")
        self.assertIn("none.onnx", caught.exception.cause)
        self.assertEqual(caught.exception.place, str(self.folder / "none.onnx"))
        self.assertTrue(caught.exception.hint)
        self.assertEqual(str(pickle.loads(pickle.dumps(caught.exception))), str(caught.exception))
        with self.assertRaises(regraft.Failed):
            self.optimize(b"no model")
        with self.assertRaises(regraft.Failed):
            self.optimize(17)
        with self.assertRaises(regraft.Failed):
            self.optimize(self.path, search="magic")
        with self.assertRaises(regraft.Unmet) as unmet:
            self.optimize(self.path, min_speedup=1000.0)
        self.assertIsInstance(unmet.exception.result, regraft.Result)
        self.assertIn("min_speedup=1000.0", unmet.exception.cause)
        with self.assertRaises(regraft.Failed):
            regraft.slim(self.path, input_shapes=["x"])
        with self.assertRaises(regraft.Failed):
            regraft.simplify(self.path, input_data={"q": numpy.zeros(3, numpy.float32)})

    def test_files_are_not_lost(self) -> None:
        before = self.path.read_bytes()
        with self.assertRaises(regraft.Failed):
            self.optimize(self.path, self.path, untimed=True)
        self.assertEqual(self.path.read_bytes(), before)
        self.optimize(self.path, self.path, untimed=True, overwrite=True)
        apart = self.folder / "apart.onnx"
        onnx.save(convolutions(channels=64), apart, save_as_external_data=True, location="apart.data", size_threshold=0)
        result = self.optimize(apart, untimed=True)
        with self.assertRaises(regraft.Failed):
            result.save(self.folder / "other.onnx")
        saved = result.save(self.folder / result.path.name)
        self.assertTrue(regraft.check(apart, saved, certificate=False))
        with self.assertRaises(regraft.Failed):
            result.save(self.folder / "none" / result.path.name)

    def test_differences_are_found(self) -> None:
        other = convolutions()
        other.graph.initializer[0].raw_data = bytes(len(other.graph.initializer[0].raw_data))
        found = regraft.check(self.model, other)
        self.assertFalse(found)
        self.assertTrue(found.differences)

    def test_models_are_timed(self) -> None:
        found = regraft.bench(self.path, self.model, budget=1, threads=1)
        self.assertEqual(len(found.models), 2)
        self.assertGreater(found.models[0].median, 0.0)
        self.assertAlmostEqual(float(found.speedup), 1.0, delta=0.5)

    def test_other_threads_go_on(self) -> None:
        ticks = 0
        stop = threading.Event()

        def tick() -> None:
            nonlocal ticks
            while not stop.wait(0.01):
                ticks += 1

        thread = threading.Thread(target=tick)
        thread.start()
        self.optimize(self.path)
        stop.set()
        thread.join()
        self.assertGreater(ticks, 50)

    def test_what_progress_raises_reaches_the_caller(self) -> None:
        def refuse(phase: str, detail: str) -> None:
            raise ValueError(phase)

        with self.assertRaises(ValueError):
            self.optimize(self.path, progress=refuse)

    def test_control_c_ends_with_what_there_is(self) -> None:
        script = (
            "import regraft, signal, sys, _thread\n"
            # Shells have programs in the background ignore it.
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "def progress(phase, detail):\n"
            "    if phase == 'measure':\n"
            "        _thread.interrupt_main()\n"
            "try:\n"
            "    regraft.optimize(sys.argv[1], budget=60, threads=1, cost_store=sys.argv[2], progress=progress)\n"
            "except KeyboardInterrupt as error:\n"
            "    print(type(error).__name__, error.result is not None)\n"
        )
        start = time.monotonic()
        done = subprocess.run([sys.executable, "-c", script, self.path, self.store], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout.split(), ["Interrupted", "True"], done.stderr)
        self.assertLess(time.monotonic() - start, 30)

    def test_drop_ins_simplify(self) -> None:
        simpler, is_checked = regraft.simplify(self.model)
        self.assertTrue(is_checked)
        self.assertLess(len(simpler.graph.node), len(self.model.graph.node))
        numpy.testing.assert_allclose(outputs(simpler, self.feeds())[0], outputs(self.model, self.feeds())[0], rtol=1e-4)
        again, _ = regraft.simplify(self.path)
        self.assertEqual(simpler, again)
        kept, _ = regraft.simplify(self.model, skip_fuse_bn=True)
        self.assertIn("BatchNormalization", {node.op_type for node in kept.graph.node})
        fixed, _ = regraft.simplify(convolutions("N"), overwrite_input_shapes={"x": [2, 3, 24, 24]})
        self.assertEqual(fixed.graph.input[0].type.tensor_type.shape.dim[0].dim_value, 2)
        self.assertEqual(regraft.slim(self.model), simpler)
        self.assertIsNone(regraft.slim(self.path, self.folder / "slim.onnx"))
        self.assertEqual(onnx.load(self.folder / "slim.onnx"), simpler)

    def test_rules_are_listed(self) -> None:
        rules = regraft.rules()
        self.assertGreater(len(rules), 500)
        self.assertTrue(all(rule["name"] and rule["trust"] for rule in rules))


class Start(unittest.TestCase):
    def test_importing_is_quick(self) -> None:
        """Nothing heavy is imported; the time itself is measured by `scripts/wheel.sh`."""
        script = "import sys, regraft; print(*sorted({name.split('.')[0] for name in sys.modules}))"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        self.assertFalse({"numpy", "onnx", "onnxruntime", "tqdm"} & set(done.stdout.split()))


if __name__ == "__main__":
    unittest.main()
