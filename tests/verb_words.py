"""A command line of each verb, for a folder with the capture run.json and the program train.py."""

import typer

from gradinspect.cli.program import app
from gradinspect.cli.verbs import VERBS


def _source(verb: str) -> str:
    """Return the capture, or the program if the help of a verb does not say that it reads captures."""
    command = typer.main.get_command(app).get_command(None, verb)  # type: ignore[attr-defined]
    return "run.json" if any("capture file" in (each.help or "") for each in command.params) else "train.py"


WORDS: dict[str, tuple[str, ...]] = {verb: (_source(verb),) for verb in VERBS} | {
    "find": ("run.json", "bytes>0"),
    "fit": ("train.py",),
    "plan": ("train.py", "--fit", "1GiB"),
    "diff": ("run.json", "run.json"),
    "explain": ("GI101",),
    "export": ("run.json", "-o", "out.json", "--force"),
}
