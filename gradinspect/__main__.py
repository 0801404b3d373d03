"""Run `python -m gradinspect`."""

import sys

from gradinspect.cli import main

if __name__ == "__main__":
    sys.exit(main())
