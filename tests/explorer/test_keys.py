"""Keys that are pressed one after the other."""

import pytest
from rich.cells import cell_len

from gradinspect.explorer.commands import Commands
from gradinspect.explorer.keys import COMMANDS, Command, HelpPage, KeyReader


@pytest.mark.parametrize(
    ("keys", "commands"),
    [
        ("j", [Command("down")]),
        ("12j", [Command("down", 12)]),
        ("17G", [Command("last", 17)]),
        ("zR", [Command("open_all")]),
        ("zj", [Command("down")]),  # no pair: the second key by itself
        ("gg", [Command("first"), Command("first")]),
        ("gd", [Command("first"), Command("take_back"), Command("follow")]),
        ("gj", [Command("first"), Command("down")]),
        ("5zRj", [Command("open_all"), Command("down")]),  # a count belongs to the key after it
        ("0j", [Command("down")]),
        ("é٣", []),
    ],
)
def test_what_keys_mean(keys: str, commands: list[Command]) -> None:
    """Counts stand before a key, pairs belong together."""
    reader = KeyReader()

    assert [command for key in keys for command in reader.read(key)] == commands


def test_each_key_has_a_command() -> None:
    """The table names methods; take_back is what `gd` adds."""
    assert all(hasattr(Commands, f"_{name}") for name in {*COMMANDS.values(), "take_back"})


@pytest.mark.parametrize("width", [30, 80])
def test_the_help_fits(width: int) -> None:
    """Whatever the width is, and it is cut only where it has to be."""
    lines = [line.plain for line in HelpPage(width=width).lines()]

    assert max(map(cell_len, lines)) <= width
    assert width < 80 or not any("…" in line for line in lines)
