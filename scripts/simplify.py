"""The side of other simplifiers in the campaign `foreign`.

usage: simplify.py TOOL FOLDER OUT         simplifies every FOLDER/NAME.onnx into OUT/NAME.onnx
       simplify.py --versions              which tools there are

TOOL is `onnxsim` or `onnxslim`. A model that the tool refuses gets OUT/NAME.txt, which says why.
Every model has a process of its own: a tool that crashes or hangs takes no other model with it.
"""

import importlib.metadata
import os
import signal
import sys
import traceback
import warnings
from pathlib import Path

import onnx

TOOLS = ("onnxsim", "onnxslim")
SECONDS = 60


def versions() -> None:
    for tool in TOOLS:
        try:
            print(tool, importlib.metadata.version(tool))
        except importlib.metadata.PackageNotFoundError:
            continue


def function(tool: str):
    """What simplifies a model, without the tool's own comparison of outputs."""
    match tool:
        case "onnxsim":
            import onnxsim

            return lambda model: onnxsim.simplify(model, check_n=0)[0]
        case "onnxslim":
            import onnxslim

            return lambda model: onnxslim.slim(model)
        case _:
            sys.exit(f"simplify.py: no tool is called {tool}")


def simplify(tool: str, folder: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    run = function(tool)
    for path in sorted(folder.glob("*.onnx")):
        result, refusal = out / path.name, out / f"{path.stem}.txt"
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            code = 0
            try:
                quiet = os.open(os.devnull, os.O_WRONLY)
                os.dup2(quiet, 1)
                os.dup2(quiet, 2)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = run(onnx.load(path))
                result.write_bytes(model.SerializeToString())
            except BaseException:
                refusal.write_text(traceback.format_exc().splitlines()[-1])
                code = 1
            os._exit(code)
        _, status = os.waitpid(child, 0)
        if not result.exists() and not refusal.exists():
            refusal.write_text(f"ended with status {status}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--versions"]:
            versions()
        case [tool, folder, out]:
            simplify(tool, Path(folder), Path(out))
        case _:
            sys.exit(__doc__)
