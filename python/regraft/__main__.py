"""The command `regraft`, and `python -m regraft`."""

import sys

from ._regraft import run
from .command import INTERPRETER, find_runtimes


def main() -> int:
    """Runs the command of this process's arguments; returns its exit code."""
    find_runtimes()
    return run(sys.argv[1:], INTERPRETER)


if __name__ == "__main__":
    sys.exit(main())
