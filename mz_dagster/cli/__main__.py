"""Runs the command line as `python -m mz_dagster.cli`."""

import sys

from mz_dagster.cli import main

if __name__ == "__main__":
    sys.exit(main())
