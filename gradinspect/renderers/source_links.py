"""URLs of source lines, for an editor or a browser to open.

What comes in: a URL template, and the lines of a `Graph`. What goes out: a URL for each line.
"""

import re
from collections.abc import Callable
from urllib.parse import quote

from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph

# Schemes that open a location and run nothing: web, files, editors.
SCHEMES = frozenset({
    "http", "https", "file", "vscode", "vscode-insiders", "vscodium", "cursor", "windsurf", "zed", "idea", "pycharm",
    "jetbrains", "subl", "sublime", "txmt", "mvim", "emacs",
})  # fmt: skip
EXAMPLES = "Examples: 'vscode://file/{path}:{line}' or 'https://github.com/me/it/blob/main/{file}#L{line}'."
FIELD = re.compile(r"\{(\w*)\}")


def check_link(template: str) -> None:
    """Check that a template produces URLs that are safe to click.

    Raises:
        GradInspectError: The scheme or a field is unknown, no file is named, or a character is not valid in a URL.
    """
    scheme, colon, _ = template.partition(":")
    if not colon or scheme.lower() not in SCHEMES:
        raise GradInspectError(f"'{template}' is not a URL that a browser or an editor can open.", EXAMPLES)
    fields = FIELD.findall(template)
    unknown = [field for field in fields if field not in {"file", "path", "line"}]
    rest = FIELD.sub("", template)
    if unknown or "{" in rest or "}" in rest:
        raise GradInspectError(f"'{template}' has a field other than {{path}}, {{file}} and {{line}}.", EXAMPLES)
    if not {"file", "path"} & set(fields):
        raise GradInspectError(f"'{template}' does not contain {{path}} or {{file}}.", EXAMPLES)
    if not re.fullmatch(r"[!#-;=?-\[\]_a-z~]*", rest):
        raise GradInspectError(
            f"'{template}' contains characters that are not valid in a URL.", "Percent-encode them, as in %20."
        )


def source_links(
    graph: Graph, template: str, path_of: Callable[[str], tuple[str, str | None]]
) -> tuple[str | None, ...]:
    """Return the URL of each line of a graph; None if it needs a path and the file is missing.

    Args:
        graph: The graph.
        template: Checked by `check_link`.
        path_of: Maps a file name in the record to its name relative to here, and to its path if it exists.
    """
    needs_path = "{path}" in template
    template = re.sub(r"(?<=[^/])/\{path\}", "{path}", template)  # an absolute path starts with its own slash
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
