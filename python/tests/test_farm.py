"""Farms: on this machine, and in a Ray cluster of two nodes, one of which is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path

import onnx
import regraft
from models import convolutions

MODELS = 20


class Jobs(unittest.TestCase):
    """Every test has a folder of its own."""

    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = Path(self._folder.name)

    def jobs(self, name: str, *, models: int, options: str = '"--untimed"') -> Path:
        """A file of jobs that simplifies so many models, each of its own size."""
        (self.folder / "models").mkdir(exist_ok=True)
        for at in range(models):
            onnx.save(convolutions(channels=4 + at), self.folder / "models" / f"m{at:02}.onnx")
        jobs = self.folder / f"{name}.toml"
        jobs.write_text(f'[[optimize]]\nmodels = "models/*.onnx"\nthreads = [1]\noptions = [{options}]\n')
        return jobs


class Farm(Jobs):
    """On this machine."""

    def test_rows_say_what_came_of_every_task(self) -> None:
        steps: list[str] = []
        jobs = self.jobs("own", models=2, options='"--budget=4s"')
        rows = regraft.farm(jobs, progress=lambda phase, detail: steps.append(phase))
        self.assertEqual([row.state for row in rows], ["done", "done"])
        for row in rows:
            assert row.output is not None and row.speedup is not None
            self.assertTrue(regraft.check(self.folder / "models" / f"{row.subject}.onnx", row.output))
            self.assertLessEqual(row.speedup.low, row.speedup)
        self.assertEqual(steps[0], "0/2")
        (self.folder / "wrong.toml").write_text("[[optimize]]\n")
        with self.assertRaises(regraft.Failed):
            regraft.farm(self.folder / "wrong.toml")


class Ray(Jobs):
    """A cluster of two nodes on this machine."""

    def setUp(self) -> None:
        super().setUp()
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            from ray.cluster_utils import Cluster
        except ImportError:
            if os.environ.get("REGRAFT_REQUIRE_RAY"):
                raise
            self.skipTest("the package ray is not installed")
        node = {"num_cpus": 1, "object_store_memory": 200 << 20}
        # A lost node is missed after three seconds.
        watch = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}
        head = {**node, "include_dashboard": False, "_system_config": watch}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.addCleanup(self.cluster.shutdown)
        self.second = self.cluster.add_node(**node)

    def farm(self, jobs: Path, **named: bool) -> list[regraft.Row]:
        return regraft.farm(jobs, ray=self.cluster.address, **named)

    def test_the_same_results_as_without(self) -> None:
        expected = regraft.farm(self.jobs("own", models=MODELS))
        jobs = self.jobs("cluster", models=MODELS)
        done: list[regraft.Row] = []
        worker = threading.Thread(target=lambda: done.extend(self.farm(jobs)))
        worker.start()
        results = self.folder / "cluster" / "results"
        self.wait(lambda: len(list(results.glob("*/outcome.json"))) >= 3)
        # A process that works on a task, and then a whole node.
        running = subprocess.run(["pgrep", "-f", f"task {self.folder}/cluster/"], capture_output=True, text=True, check=False)
        for process in running.stdout.split()[:1]:
            os.kill(int(process), signal.SIGKILL)
        self.cluster.remove_node(self.second, allow_graceful=False)
        worker.join(timeout=300)
        self.assertFalse(worker.is_alive())
        self.assertEqual([row.state for row in done], ["done"] * MODELS)
        for here, there in zip(expected, done):
            assert here.output is not None and there.output is not None
            self.assertEqual(here.output.read_bytes(), there.output.read_bytes(), there.task)
        # Each was finished once, and nothing lies about.
        self.assertEqual(len(list(results.iterdir())), MODELS)

    def test_files_are_sent_where_the_folder_is_not_seen(self) -> None:
        rows = self.farm(self.jobs("sent", models=3), send=True)
        self.assertEqual([row.state for row in rows], ["done"] * 3, rows)
        for row in rows:
            assert row.output is not None
            self.assertTrue(regraft.check(self.folder / "models" / f"{row.subject}.onnx", row.output))

    def test_no_cluster_is_an_error(self) -> None:
        with self.assertRaises(regraft.Failed) as raised:
            regraft.farm(self.jobs("lost", models=1), ray="127.0.0.1:1")
        self.assertIn("127.0.0.1:1", raised.exception.cause)

    def wait(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + 120
        while not condition():
            self.assertLess(time.monotonic(), until, "nothing happens")
            time.sleep(0.02)
