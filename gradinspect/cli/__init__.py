"""The command line: parse, call, print. One file per verb; the logic is in the layers below."""

from gradinspect.isolation import OwnSearchPath

with OwnSearchPath():
    from gradinspect.cli.program import main

__all__ = ["main"]
