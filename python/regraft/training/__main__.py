"""The command `python -m regraft.training`."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
