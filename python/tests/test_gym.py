"""Rewriting as an environment of gymnasium."""

from __future__ import annotations

import importlib.util
import tempfile
import unittest
from pathlib import Path

import regraft

HAS_GYMNASIUM = importlib.util.find_spec("gymnasium") is not None
HAS_LEARNER = all(importlib.util.find_spec(name) is not None for name in ("sb3_contrib", "torch"))


@unittest.skipUnless(HAS_GYMNASIUM, "gymnasium is not installed")
class Gym(unittest.TestCase):
    def test_the_environment_is_one(self) -> None:
        import gymnasium
        from gymnasium.utils.env_checker import check_env

        import regraft.gym

        environment = gymnasium.make("regraft/Rewriting-v0", model="paper-sru", horizon=5, render_mode="ansi")
        check_env(environment.unwrapped)
        self.assertIsInstance(environment.unwrapped, regraft.gym.Rewriting)

    def test_rewards_are_what_the_graph_gains(self) -> None:
        import regraft.gym

        environment = regraft.gym.Rewriting("paper-sru", horizon=12, shaping="none")
        observation, info = environment.reset()
        earned, ended = 0.0, False
        while not ended:
            # The candidate that saves most, if one does.
            best = int(observation["savings"].argmax())
            action = best if observation["savings"][best] > 0 else environment.stop
            observation, reward, terminated, truncated, info = environment.step(action)
            earned += reward
            ended = terminated or truncated
        self.assertGreater(info["speedup"], 1.0)
        self.assertAlmostEqual(earned, 100 * (1 - 1 / info["speedup"]), places=3)
        faster, rules = environment.best()
        self.assertGreaterEqual(faster, info["speedup"])
        self.assertEqual(set(rules) - {rule["name"] for rule in regraft.rules()}, set())

    def test_an_action_without_a_candidate_changes_nothing(self) -> None:
        import regraft.gym

        environment = regraft.gym.Rewriting("paper-sru", horizon=2)
        _, before = environment.reset()
        action = len(before["rules"])
        self.assertFalse(environment.action_masks()[action])
        self.assertTrue(environment.action_masks()[environment.stop])
        _, reward, terminated, truncated, after = environment.step(action)
        self.assertEqual((reward, terminated, truncated, after["cost"]), (0.0, False, False, before["cost"]))
        self.assertTrue(environment.step(action)[3], "it counts as a step")

    def test_graphs_are_whole_and_the_best_one_is_a_model(self) -> None:
        import regraft.gym

        environment = regraft.gym.Rewriting("paper-sru")
        environment.reset()
        graphs = environment.graphs()
        self.assertEqual(len(graphs), len(environment.reset()[1]["rules"]) + 1)
        types, edges, shapes = graphs[-1]
        self.assertLess(edges.max(), len(types))
        self.assertEqual(len(edges), len(shapes))
        with tempfile.TemporaryDirectory() as folder:
            environment.write_best(Path(folder) / "best.onnx")
            self.assertGreater((Path(folder) / "best.onnx").stat().st_size, 0)

    def test_what_cannot_be_opened_is_said(self) -> None:
        import regraft.gym

        with self.assertRaises(regraft.Failed) as caught:
            regraft.gym.Rewriting("no such network")
        self.assertIn("no such network", str(caught.exception))
        with self.assertRaises(regraft.Failed):
            regraft.gym.Rewriting("paper-sru", slots=1)

    @unittest.skipUnless(HAS_LEARNER, "sb3_contrib is not installed")
    def test_a_library_learns_in_it(self) -> None:
        from sb3_contrib import MaskablePPO

        import regraft.gym

        environment = regraft.gym.Rewriting("paper-sru", horizon=8, slots=40)
        learner = MaskablePPO("MultiInputPolicy", environment, n_steps=32, batch_size=32, seed=0)
        learner.learn(64)
        observation, _ = environment.reset()
        action, _ = learner.predict(observation, action_masks=environment.action_masks())
        self.assertTrue(environment.action_masks()[int(action)])


if __name__ == "__main__":
    unittest.main()
