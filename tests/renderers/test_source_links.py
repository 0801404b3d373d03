"""Addresses of source lines."""

import pytest
from factories import graph, leaf, op

from gradinspect.errors import GradInspectError
from gradinspect.graph import Frame, Graph
from gradinspect.renderers.picture.dot.document import render_dot
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.renderers.source_links import check_link, source_links


def framed(*files: str) -> Graph:
    """A chain of nodes, each of a line in another file."""
    nodes = [op("ExpBackward0", place + 1, frame=place) for place in range(len(files))]
    frames = tuple(Frame(file=file, line=7 + place) for place, file in enumerate(files))
    return graph(*nodes, leaf("w", 2, 3), frames=frames)


def found(file: str) -> tuple[str, str | None]:
    """Find files below /home/me; the library's are not there."""
    return f"src/{file}", None if file.startswith("lib/") else f"/home/me/src/{file}"


@pytest.mark.parametrize(
    ("template", "link"),
    [
        ("vscode://file/{path}:{line}", "vscode://file/home/me/src/a.py:7"),
        ("file://{path}", "file:///home/me/src/a.py"),
        ("https://github.com/o/r/blob/main/{file}#L{line}", "https://github.com/o/r/blob/main/src/a.py#L7"),
        ("HTTP://host/?f={file}&l={line}", "HTTP://host/?f=src/a.py&l=7"),
    ],
)
def test_an_address(template: str, link: str) -> None:
    """Fields are filled in; an absolute path does not double the slash before it."""
    check_link(template)

    assert source_links(framed("a.py"), template, found) == (link,)


def test_a_file_that_is_not_there_has_no_path() -> None:
    """Then there is no link, unless the name alone is asked for."""
    frames = framed("lib/x.py", "b.py")

    assert source_links(frames, "file://{path}", found) == (None, "file:///home/me/src/b.py")
    assert source_links(frames, "https://h/{file}", found) == ("https://h/src/lib/x.py", "https://h/src/b.py")


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("javascript:alert(1)//{file}", "is not a URL that a browser or an editor can open"),
        ("JavaScript://%0aalert(1){file}", "is not a URL that a browser or an editor can open"),
        ("data:text/html,{file}", "is not a URL that a browser or an editor can open"),
        ("{file}", "is not a URL that a browser or an editor can open"),
        ("", "is not a URL that a browser or an editor can open"),
        ("https://h/#L{line}", "does not contain {path} or {file}"),
        ("https://h/{file}/{column}", "has a field other than {path}, {file} and {line}"),
        ("https://h/{file}{", "has a field other than {path}, {file} and {line}"),
        ("https://h/{file.__class__}", "has a field other than {path}, {file} and {line}"),
        ('https://h/{file}"onclick="x', "contains characters that are not valid in a URL"),
        ("https://h/{file} x", "contains characters that are not valid in a URL"),
        ("https://h/{file}\n", "contains characters that are not valid in a URL"),
        ("https://h/\\N{file}", "contains characters that are not valid in a URL"),
    ],
)  # fmt: skip
def test_what_is_no_address(template: str, reason: str) -> None:
    """One sentence with the template in quotes, and an example."""
    with pytest.raises(GradInspectError) as raised:
        check_link(template)

    assert f"'{template}' {reason}." in str(raised.value)


def test_hostile_files_are_data() -> None:
    """Nothing in a file's name ends the address, adds a field to it or is an escape of Graphviz."""
    names = ('a"b.py', "{line}.py", r"\N.py", "a&b<c>.py", "new\nline.py", "имя.py", "\ud800.py", "a b#c?d.py")
    links = source_links(framed(*names), "https://h/{file}#L{line}", lambda file: (file, None))

    assert links == (
        "https://h/a%22b.py#L7", "https://h/%7Bline%7D.py#L8", "https://h/%5CN.py#L9", "https://h/a%26b%3Cc%3E.py#L10",
        "https://h/new%0Aline.py#L11", "https://h/%D0%B8%D0%BC%D1%8F.py#L12", "https://h/%3F.py#L13",
        "https://h/a%20b%23c%3Fd.py#L14",
    )  # fmt: skip


def test_boxes_have_the_addresses() -> None:
    """A node links to its line; one without a line, or whose file is not there, links nowhere."""
    links = ("https://h/?a&b", None)
    dot = render_dot(framed("a.py", "lib/b.py"), DrawOptions(links=links))

    assert dot.count("URL=") == 1
    assert 'URL="https://h/?a&amp;b" target="_blank"' in dot
