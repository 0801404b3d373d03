"""Write docs/codes.md, the table of all codes of `gradinspect check`: `python docs/codes.py`."""

from pathlib import Path

from gradinspect.checks.registry import registry
from gradinspect.renderers.data.findings.rules import render_rules_markdown

FILE = Path(__file__).with_suffix(".md")
HEAD = """\
# Codes of `gradinspect check`

`gradinspect explain GI101` prints a section of this page; `--select` and `--skip` of `check` take codes, and `GI1`
stands for all that begin with it. [ci.md](ci.md) shows how to ignore a finding. Written by `python docs/codes.py` from
the rules in gradinspect/checks/rules.

"""


def codes_page() -> str:
    """Return what docs/codes.md should say."""
    return HEAD + render_rules_markdown(registry().rules.values())


if __name__ == "__main__":
    FILE.write_text(codes_page(), encoding="utf-8")
    print(f"Wrote {FILE}")  # a command
