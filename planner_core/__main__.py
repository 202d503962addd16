"""`python -m planner_core`: the command line."""

import sys

from planner_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
