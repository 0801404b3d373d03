"""SVG to PDF with the optional `typst` package, for machines without `dot`.

What comes in: an SVG file. What goes out: a one-page PDF of the same size, with text as text.
"""

from importlib import import_module, util

from gradinspect.errors import GradInspectError

PAGE = """\
#set document(date: none)
#set page(width: auto, height: auto, margin: 0pt)
#image(bytes(sys.inputs.svg), format: "svg")
"""


def require_typst() -> None:
    """Check that PDF can be written.

    Raises:
        GradInspectError: The package is not installed.
    """
    if util.find_spec("typst") is None:
        raise GradInspectError(
            "Writing 'pdf' needs Graphviz's `dot` or the typst package.",
            "Install one: `pip install 'gradinspect[pdf]'`, or write .svg.",
        )


def svg_to_pdf(svg: bytes) -> bytes:
    """Place an SVG on a PDF page of the same size."""
    content = import_module("typst").compile(PAGE.encode(), format="pdf", sys_inputs={"svg": svg.decode()})
    return bytes(content)
