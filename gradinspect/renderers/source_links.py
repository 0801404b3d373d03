"""Addresses of source lines, for an editor or a browser to open.

What comes in: a template of the user's, and the `Graph`'s lines. What goes out: an address for each line.
"""

import re
from collections.abc import Callable
from urllib.parse import quote

from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph

# What opens a place and runs nothing: the web, files, editors.
SCHEMES = frozenset({
    "http", "https", "file", "vscode", "vscode-insiders", "vscodium", "cursor", "windsurf", "zed", "idea", "pycharm",
    "jetbrains", "subl", "sublime", "txmt", "mvim", "emacs",
})  # fmt: skip
EXAMPLES = "Write it like 'vscode://file/{path}:{line}' or 'https://github.com/me/it/blob/main/{file}#L{line}'."
FIELD = re.compile(r"\{(\w*)\}")


def check_link(template: str) -> None:
    """See to it that a template makes addresses that are safe to click.

    Raises:
        GradInspectError: Its scheme is unknown, a field is, it names no file, or it has characters no address has.
    """
    scheme, colon, _ = template.partition(":")
    if not colon or scheme.lower() not in SCHEMES:
        raise GradInspectError(f"'{template}' is no address that a browser or an editor opens.", EXAMPLES)
    fields = FIELD.findall(template)
    unknown = [field for field in fields if field not in {"file", "path", "line"}]
    rest = FIELD.sub("", template)
    if unknown or "{" in rest or "}" in rest:
        raise GradInspectError(f"'{template}' has a field other than {{path}}, {{file}} and {{line}}.", EXAMPLES)
    if not {"file", "path"} & set(fields):
        raise GradInspectError(f"'{template}' leads to no file.", EXAMPLES)
    if not re.fullmatch(r"[!#-;=?-\[\]_a-z~]*", rest):
        raise GradInspectError(f"'{template}' has characters that no address has.", "Write them as %20 and the like.")


def source_links(
    graph: Graph, template: str, path_of: Callable[[str], tuple[str, str | None]]
) -> tuple[str | None, ...]:
    """Return the address of each line of a graph; None where a path is asked for and the file is not there.

    Args:
        graph: The graph.
        template: Checked by `check_link`.
        path_of: Takes a file as the record names it; returns it as seen from here, and its path if it is there.
    """
    needs_path = "{path}" in template
    template = re.sub(r"(?<=[^/])/\{path\}", "{path}", template)  # an absolute path brings its own slash
    places = {file: path_of(file) for file in sorted({frame.file for frame in graph.frames})}

    def link(file: str, line: int) -> str | None:
        name, path = places[file]
        if needs_path and path is None:
            return None
        values = {"file": quote(_clean(name)), "path": quote(_clean(path or "")), "line": str(line)}
        return FIELD.sub(lambda match: values[match[1]], template)

    return tuple(link(frame.file, frame.line) for frame in graph.frames)


def _clean(text: str) -> str:
    """Replace lone surrogates, which have no UTF-8."""
    return text.encode(errors="replace").decode()
