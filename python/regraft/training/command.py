"""The command: arguments, output, exit codes."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from ..errors import Failed, Interrupted

PROGRAM = "python -m regraft.training"


class Parser(argparse.ArgumentParser):
    """Mistakes are errors like all others."""

    def error(self, message: str) -> NoReturn:
        raise Failed(message, hint=f"`{PROGRAM} --help` explains")


def natural(text: str, least: int = 0) -> int:
    """A number from 0, as large as the database holds."""
    number = int(text)
    if not least <= number < 2**63:
        raise ValueError
    return number


def positive(text: str) -> int:
    """A number from 1."""
    return natural(text, 1)


def naturals(text: str) -> list[int]:
    """Numbers from 0, with commas between them."""
    return [natural(word) for word in text.split(",")]


def rate(text: str) -> float:
    """A finite number above 0."""
    number = float(text)
    if not 0 < number < math.inf:
        raise ValueError
    return number


def parser() -> Parser:
    """The command's arguments."""
    made = Parser(
        prog=PROGRAM,
        description="Train a network on real images, and the same with operators in place of its convolutions; "
        "print how accurate they become.",
        epilog="Ctrl-C ends it with what there is; the same command goes on. Exit codes: 0 done, 2 an error, 130 interrupted.",
    )
    add = made.add_argument
    add("folder", type=Path, metavar="FOLDER", help="what `regraft synthesize --emit FOLDER` wrote; its Python files are run")
    add("--network", default="resnet18", metavar="NAME", help="small, resnet18, resnet34, or torchvision/NAME [default: %(default)s]")
    data = "cifar100:FOLDER, with its files train, test and meta; or imagenet:FOLDER, with train/CLASS/*.JPEG and val/CLASS/*.JPEG"
    add("--data", required=True, metavar="KIND:FOLDER", help=data)
    add("--side", type=positive, default=224, metavar="N", help="height and width of images for the network [default: %(default)s]")
    add("--epochs", type=positive, default=100, metavar="N", help="epochs [default: %(default)s]")
    add("--milestones", type=naturals, default=[], metavar="N,..", help="epochs after which the worse half of the operators is dropped")
    add("--batch", type=positive, default=128, metavar="N", help="images at once [default: %(default)s]")
    add("--rate", type=rate, default=0.1, metavar="RATE", help="the rate at first; it falls along a cosine [default: %(default)s]")
    add("--seeds", type=naturals, default=[0], metavar="N,..", help="seeds; each trains all [default: 0]")
    add("--keep-pointwise", action="store_true", help="leave convolutions with a kernel of 1 x 1 as they are")
    add("--store", type=Path, metavar="FILE", help="database of runs: what is in it is not trained again [default: FOLDER/runs.db]")
    add("--threads", type=positive, metavar="N", help="threads of an operator on the CPU [default: PyTorch's]")
    add("--workers", type=natural, default=2, metavar="N", help="processes that decode images [default: %(default)s]")
    add("--device", metavar="NAME", help="cpu, cuda, .. [default: cuda, if there is one]")
    add("--json", action="store_true", help="print runs as JSON, one a line")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    try:
        args = parser().parse_args(arguments)
        if find_spec("torch") is None:
            raise Failed("PyTorch is not installed", hint="pip install torch")
        try:
            return run(args)
        except RuntimeError as error:
            # The class of this error is young, and there is none for the CPU.
            if "memory" not in str(error):
                raise
            raise Failed(f"there is not enough memory: {str(error).splitlines()[0]}", hint="choose a smaller --batch") from None
    except Failed as error:
        place = "" if error.place is None else f" ({error.place})"
        hint = "" if error.hint is None else f" (hint: {error.hint})"
        print(f"regraft: error: {error.cause}{place}{hint}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("regraft: interrupted", file=sys.stderr)
        return Interrupted.exit_code


def run(args: argparse.Namespace) -> int:
    """Trains what the arguments say, and prints it."""
    milestones = ascending(args.milestones, args.epochs)
    # Before CUDA starts: its products repeat only then.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

    import torch

    from .candidates import Candidate, candidates
    from .cifar import Cifar100
    from .halving import Comparison
    from .imagenet import ImageNet
    from .images import Images
    from .networks import network
    from .operators import load
    from .runs import Run, Store
    from .trainer import Recipe

    if args.threads:
        torch.set_num_threads(args.threads)
    name = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.zeros(1, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise Failed(f"cannot use the device `{name}`: {str(error).splitlines()[0]}", hint="--device cpu") from None
    torch.use_deterministic_algorithms(device.type != "cpu", warn_only=True)

    sources: dict[str, Callable[[Path, int, int], Images]] = {"cifar100": Cifar100, "imagenet": ImageNet}
    kind, _, path = args.data.partition(":")
    if kind not in sources or not path:
        raise Failed(f"`{args.data}` names no data", hint=" or ".join(f"--data {kind}:FOLDER" for kind in sources))
    operators = load(args.folder)
    store = Store(args.store or args.folder / "runs.db")
    images = sources[kind](Path(path), args.side, args.workers)
    if images.count < args.batch:
        raise Failed(f"{images.count} images to train on do not fill a batch", place=images.place, hint=f"--batch {images.count}")
    make = partial(network, args.network, images.classes)
    compared = candidates(make, operators, side=args.side, keep_pointwise=args.keep_pointwise)
    for one in compared:
        replaced = f"{len(one.replaced)} of {one.convolutions} convolutions replaced"
        tell(f"{one.name}: {replaced}, {one.parameters} parameters: {one.formula}")

    def each(candidate: Candidate, done: Run) -> None:
        seed, epoch = f"seed {done.subject.seed}", f"epoch {done.epoch} of {done.subject.planned}"
        tell(f"{seed}, {epoch}: {done.accuracy:.4f} after {done.seconds:.1f} s, loss {done.loss:.3f}: {candidate.name}")

    def show(one: Candidate, done: Run) -> None:
        if args.json:
            of = {"operator": one.name, "replaced": len(one.replaced), "convolutions": one.convolutions}
            print(json.dumps({**of, **done.report()}), flush=True)
            return
        trained = f"{100 * done.best:6.2f} %  epoch {done.epoch}  seed {done.subject.seed}"
        print(f"{trained}  {one.parameters / 1e6:.2f} M  {one.name}: {one.formula}", flush=True)

    recipe = Recipe(args.batch, args.rate, args.epochs)
    for seed in args.seeds:
        comparison = Comparison(args.network, compared, images, recipe, seed, store, device)
        try:
            comparison.train(milestones, each)
        finally:
            for one in compared:
                if one.name in comparison.runs:
                    show(one, comparison.runs[one.name])
    return 0


def ascending(milestones: list[int], epochs: int) -> list[int]:
    """The milestones, and the last epoch."""
    found = milestones if milestones[-1:] == [epochs] else [*milestones, epochs]
    if found[0] < 1 or any(one >= other for one, other in zip(found, found[1:])):
        raise Failed("the milestones are no ascending epochs up to the last", hint=f"--epochs {epochs} --milestones {max(epochs // 10, 1)}")
    return found


def tell(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)
