"""What does `python -m perfkit` run? The `perfkit` command."""

import sys

from perfkit.showing.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
