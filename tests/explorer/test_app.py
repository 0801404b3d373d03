"""The explorer on a screen, driven by keys as a user would; everything below the screen has tests of its own."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest
from factories import graph, leaf, op, residual_blocks, two_layers
from inline_snapshot import snapshot

from gradinspect.explorer.app import Exploration, Explorer
from gradinspect.graph import Graph

HOSTILE = "[red]x[/]\x1b[31m\n\u202e"
SOURCE = ["import model", *(f"line {number}" for number in range(2, 30))]
WIDE = (120, 30)


class Seen:
    """What was on the screen when the last key had been pressed."""

    def __init__(self, explorer: Explorer) -> None:
        """Keep the text of the screen."""
        strips = explorer.screen._compositor.render_strips()
        self.lines = ["".join(segment.text for segment in strip).rstrip() for strip in strips]
        self.is_running = explorer.return_code is None and not explorer._exit
        self.clipboard = explorer.clipboard
        row = explorer.browser.row
        self.nodes = () if row is None else row.nodes
        self.cursor = explorer.browser.cursor
        self.panel = [line.text.plain for line in explorer.panel.lines]
        self.focus = "" if explorer.focused is None else explorer.focused.id

    @property
    def status(self) -> str:
        """The last line."""
        return self.lines[-1]


def explore(drawn: Graph, keys: Sequence[str] = (), *, size: tuple[int, int] = (80, 24), unicode: bool = True) -> Seen:
    """Start the explorer, press keys, and look."""
    return explore_on(drawn, [keys], size=size, unicode=unicode)[0]


def explore_on(
    drawn: Graph, steps: Sequence[Sequence[str]], *, size: tuple[int, int] = (80, 24), unicode: bool = True
) -> list[Seen]:
    """Start the explorer, press the keys of one step after the other, and look after each: a start takes its time."""

    async def run() -> list[Seen]:
        explorer = Explorer(Exploration(drawn, lambda _: None, {"model.py": SOURCE}.get, unicode), depth=0)
        async with explorer.run_test(size=size) as pilot:
            await pilot.pause()
            seen = []
            for keys in steps:
                for key in keys:
                    await pilot.press(key)
                await pilot.pause()
                seen.append(Seen(explorer))
            return seen

    return asyncio.run(run())


def test_the_first_screen() -> None:
    """At 80 by 24: what was recorded, the tree, the panel below it, the keys one needs."""
    seen = explore(two_layers())

    assert "\n" + "\n".join(seen.lines) + "\n" == snapshot("""\

backward #1  10 nodes, 480 B held
root: #0 NllLossBackward0  f32[]  weight: None                       train.py:8
▸ #1–5  model  Sequential  5 nodes                       480 B 100%











────────────────────────────────────────────────────────────────────────────────
#0 NllLossBackward0  f32[]
root
gradients go to
  self → #1 AddmmBackward0  f32[4, 3]
  weight  None: requires no gradient
source
  train.py:8

? help  q quit  / search  Enter expand  ] follow  Tab panel
""")


def test_the_panel_beside_the_tree() -> None:
    """On a wide screen."""
    seen = explore(two_layers(), "ll", size=WIDE)

    assert seen.lines[1].startswith("root: #0 NllLossBackward0")
    assert "│ #0 NllLossBackward0  f32[]" in seen.lines[1]
    assert seen.status.startswith("There is nothing to expand in this row.")


@pytest.mark.slow
def test_keys_move_the_cursor() -> None:
    """Each way to get to a node ends there, one after the other."""
    steps: list[tuple[list[str], tuple[int, ...]]] = [
        (["j", "l", "j", "l", "3", "j"], (2,)),  # open, go inside
        (["z", "M"], ()),
        (["down", "enter", "2", "j"], (3,)),
        (["z", "R", "G"], (5,)),
        (["g", "g"], (0,)),
        (["ctrl+d", "ctrl+u", "ctrl+f", "ctrl+b"], (0,)),
        ([*":3", "enter"], (3,)),
        ([*"#4", "enter"], (4,)),
        (["ctrl+o"], (3,)),
        (["H"], (0,)),
        (["L"], (3,)),
        (["5", "G"], (5,)),
        (["g", *"/addmm", "enter"], (1,)),
        (["n"], (4,)),
        (["N"], (1,)),
        ([*"/relu", "escape"], (1,)),
        ([*"/re", "backspace", "backspace", "backspace", "k", "j"], (1,)),
        (["tab", "5", "j", "enter"], (3,)),  # a link in the panel: mat1
        (["tab", "k", "k", "h", "h"], ()),  # out of the module, and it closes
    ]
    seen = explore_on(two_layers(), [keys for keys, _ in steps], size=WIDE)

    for (keys, nodes), after in zip(steps, seen, strict=True):
        assert after.nodes == nodes, keys


def test_closing_goes_outwards() -> None:
    """First to the scope that the row is in, then that closes."""
    inside, outside, closed, alone = explore_on(two_layers(), [["j", "l", "j", "j"], ["h"], ["h"], ["k", "h"]])

    assert (inside.cursor, outside.cursor, closed.cursor) == (3, 1, 1)
    assert sum(map(bool, outside.lines[1:14])) > sum(map(bool, closed.lines[1:14])) == 2
    assert alone.status.startswith("This row is not inside anything")


def test_gd_follows_a_reference() -> None:
    """As in vim: `g` alone goes to the top, but not when `d` comes after it."""
    at, *followed = explore_on(
        residual_blocks(4), [["z", "R", "5", "j"], ["g", "d"], ["H"], ["]"], ["H"], ["enter"], ["g"]]
    )

    assert at.panel[0].startswith("#3 AddBackward0")
    assert [seen.cursor == at.cursor for seen in followed] == [False, True, False, True, False, False]
    assert [seen.nodes for seen in followed[::2]] == [(3,), (3,), (3,)]


def test_another_copy() -> None:
    """The panel tells the node at the same place in it."""
    there, back, outside = explore_on(residual_blocks(4), [["z", "R", "3", "j", ">"], ["<"], ["g", ">"]])

    assert there.panel[0].startswith("#4 ExpBackward0")
    assert back.panel[0].startswith("#1 ExpBackward0")
    assert outside.status.startswith("There is no other copy")


def test_the_panel_has_a_cursor_of_its_own() -> None:
    """Tab goes there and back; Enter on a node without anything to open goes there too."""
    steps = [["tab"], ["enter"], ["tab"], ["enter"]]
    there, nowhere, back, entered = explore_on(two_layers(), steps)

    assert [seen.focus for seen in (there, nowhere, back, entered)] == ["panel", "panel", "tree", "panel"]
    assert nowhere.status.startswith("This line does not lead to a node.")


def test_help_has_the_screen_and_gives_it_back() -> None:
    """It is read like a text; what only leaves it does nothing else."""
    page, further, left, opened = explore_on(two_layers(), ["?", ["space"], "q", ["?", "j", "z", "R"]])

    assert any("half a screen down" in line for line in page.lines)
    assert "root: #0" not in "".join(page.lines)
    assert any("A search matches" in line for line in further.lines)
    assert left.is_running
    assert left.panel[0].startswith("#0")
    assert left.focus == opened.focus == "tree"
    assert len([line for line in opened.lines if line]) > len([line for line in left.lines if line])


def test_the_last_line_names_the_keys_of_the_pane_and_what_was_answered() -> None:
    """An answer stays until the next key, though the focus moves when the prompt is left."""
    steps = [[], ["tab"], ["escape"], [*"/relu", "enter"], ["j"], ["w"]]
    tree, panel, back, answered, after, warned = (seen.status for seen in explore_on(two_layers(), steps))

    assert tree == back == "? help  q quit  / search  Enter expand  ] follow  Tab panel"
    assert panel == "? help  q quit  Enter follow  Tab back to the tree  y copy"
    assert answered == "/relu  1 of 1 hit"
    assert after == "? help  q quit  / search  Enter expand  ] follow  Tab panel, 6 more lines"
    assert warned == "There were no warnings when the graph was recorded."


@pytest.mark.slow
@pytest.mark.parametrize("keys", ["q", ["ctrl+c"], [*":q", "enter"], [*"/q", "escape", "q"]])
def test_quitting(keys: Sequence[str]) -> None:
    """By q, by Ctrl-C, by :q; a q that is typed into a search is a letter."""
    *before, after = explore_on(two_layers(), [keys[:-1], keys[-1:]])

    assert all(seen.is_running for seen in before)
    assert not after.is_running


def test_what_the_panel_says_can_be_copied() -> None:
    """As plain text."""
    assert explore(two_layers(), "y").clipboard.startswith("#0 NllLossBackward0")


def test_the_line_that_made_a_node() -> None:
    """With the code around it, read from the user's file."""
    frames = (*two_layers().frames[:1], msgspec.structs.replace(two_layers().frames[1], file="model.py"))
    seen = explore(msgspec.structs.replace(two_layers(), frames=frames), [*":3", "enter"], size=WIDE)

    assert ">   21  line 21" in seen.panel


def test_names_of_the_program_are_text() -> None:
    """Neither markup nor control characters of a name do anything, wherever it stands."""
    drawn = graph(op(HOSTILE, 1, function=HOSTILE), leaf(HOSTILE, 2), warnings=(HOSTILE,), source=HOSTILE)
    for seen in explore_on(drawn, [[], ["w"], [*"/[red]x", "enter"]]):
        assert all(line.isprintable() for line in seen.lines if line)
        assert any("[red]x[/]" in line for line in seen.lines)


@pytest.mark.slow
def test_an_empty_graph() -> None:
    """There is a screen, and no key breaks it."""
    every_key = ["j", "k", "G", "g", "l", "h", "o", "]", ">", "n", "y", "tab", "enter", "z", "z", "z", "R", "z", "M"]
    seen = explore(graph(roots=()), every_key)

    assert seen.is_running
    assert "0 nodes" in seen.lines[0]


@pytest.mark.slow
@pytest.mark.parametrize("size", [(20, 5), (1, 1), (300, 80)])
def test_any_size(size: tuple[int, int]) -> None:
    """However small or large the terminal is."""
    assert explore(residual_blocks(9), ["z", "R", "G", "?", "tab", "k"], size=size).is_running


def test_ascii() -> None:
    """Where the terminal has no more than ASCII, nothing else is written."""
    for seen in explore_on(residual_blocks(4), [["z", "R", "4", "j"], ["?"]], unicode=False):
        assert "\n".join(seen.lines).isascii()
        assert "\\u" not in "\n".join(seen.lines)


def test_resizing_keeps_the_cursor_on_the_screen() -> None:
    """The tree is written anew at the new width, and the panel moves to where there is room."""

    async def run() -> tuple[Seen, Seen]:
        explorer = Explorer(Exploration(residual_blocks(9), lambda _: None, lambda _: None), depth=0)
        async with explorer.run_test(size=(120, 40)) as pilot:
            await pilot.press("z", "R", *"/mulb", "enter", "N")
            wide = Seen(explorer)
            await pilot.resize_terminal(60, 12)
            await pilot.pause()
            return wide, Seen(explorer)

    wide, narrow = asyncio.run(run())

    assert wide.nodes == narrow.nodes == (26,)
    assert any("#26 MulBackward0" in line for line in narrow.lines[1:6])
    assert max(map(len, narrow.lines)) <= 60
    assert any("\u2500" * 60 in line for line in narrow.lines)
    assert not any("\u2500" * 60 in line for line in wide.lines)
