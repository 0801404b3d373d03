"""Statements, their comments, and which have run, on sources as text."""

import pytest

from gradinspect.checks.source_comments import line_comments, lines_run, statements

SOURCE = '''\
import torch  # first
TEXT = """
# not a comment
"""  # second
# alone
value = f(  # inside
    1,  # twice
)
@decorator  # above
def g():
    return "# nor this"
# last
'''.replace("# twice", "# twice  ")


def lines(text: str) -> list[str]:
    """Split as linecache does."""
    return text.splitlines(keepends=True)


def test_a_comment_belongs_to_its_statement() -> None:
    """All lines of it, also for a comment alone above it; strings that look like comments are none."""
    assert [(one.first, one.last, [line for line, _ in one.comments]) for one in statements(lines(SOURCE))] == [
        (1, 1, [1]),
        (2, 4, [4]),
        (6, 8, [5, 6, 7]),
        (9, 9, [9]),
        (12, 12, [12]),
    ]


def test_comments_by_line() -> None:
    """With their text, without the code before it."""
    assert line_comments(lines(SOURCE))[7] == "# twice"


@pytest.mark.parametrize("damaged", ["x = (1,  # open\n", "  x\n y  # indented\n", "x = '''\n# open\n", "\0 # null\n"])
def test_a_file_that_changed_meanwhile_is_no_error(damaged: str) -> None:
    """What can be read of it is."""
    assert set(line_comments(lines(damaged))) <= {1, 2}
    assert lines_run(lines(damaged), {1}) >= {1}


BLOCKS = """\
a = 1
@decorator
def f():
    b = 2
    if b:
        c = 3
    else:
        d = 4
    with e(
        1,
    ):
        g = 5
    h = 6
try:
    i = 7
    j = 8
finally:
    k = 9
match a:
    case 1:
        m = 10
n = 11
"""


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (set(), set()),
        ({6}, {1, 2, 3, 4, 5, 6}),  # the branch, what comes before it, and the definition
        ({12}, {1, 2, 3, 4, 5, 9, 10, 11, 12}),  # neither branch of the condition before it
        ({16}, {1, 2, 3, 14, 15, 16}),
        ({21}, {1, 2, 3, 14, 19, 21}),
        ({22}, {1, 2, 3, 14, 19, 22}),
    ],
)
def test_what_comes_before_in_its_block_has_run(seen: set[int], expected: set[int]) -> None:
    """And nothing else: a branch, a function or a case is known only by a line of its own."""
    assert lines_run(lines(BLOCKS), seen) == expected
