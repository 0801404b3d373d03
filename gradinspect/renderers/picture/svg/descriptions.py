"""Make an SVG accessible: a title and a description for each box, cluster and arrow.

What comes in: SVG written by Graphviz, whose titles are names such as `n12` and whose tooltips are ours. What goes out:
the same picture, with the first line of each tooltip as the title and the other lines as the description.
"""

import re

DESCRIBED = re.compile(r'<title>([^<]*)</title>\n(?=<g id="a_[^"]*"><a [^>]*?xlink:title="([^"]*)")')
ARROW = re.compile(r"<title>([^<&]*)&#45;&gt;([^<&]*)</title>")
LINE_END = "&#10;"


def describe_parts(svg: str) -> str:
    """Replace the titles. Tooltips are already escaped for attributes, and so for elements too."""
    titles: dict[str, str] = {}

    def described(match: re.Match[str]) -> str:
        title, _, rest = match[2].partition(LINE_END)
        titles[match[1]] = title
        description = rest.replace(LINE_END, "\n")
        return f"<title>{title}</title>\n" + (f"<desc>{description}</desc>\n" if rest else "")

    def arrow(match: re.Match[str]) -> str:
        return f"<title>{titles.get(match[1], match[1])} to {titles.get(match[2], match[2])}</title>"

    return ARROW.sub(arrow, DESCRIBED.sub(described, svg))
