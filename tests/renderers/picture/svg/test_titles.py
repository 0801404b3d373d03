"""The titles of frames stay legible."""

import re

from factories import residual_blocks

from gradinspect.renderers.picture.picture import draw
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.renderers.picture.svg.titles import raise_titles


def test_titles_are_drawn_after_the_arrows_on_a_strip_of_their_own() -> None:
    """Each title is once in the picture, after the last arrow, and its strip has the color of its frame."""
    picture = draw(residual_blocks(5), "svg", DrawOptions(depth=2)).content.decode()
    before, titles = picture.split('<g class="titles">')

    assert before.count('class="cluster"') == titles.count("<rect") == 2
    assert "<path" not in titles
    assert 'fill="#f4f8fb"' in titles
    assert picture.count(">Net<") == 1


def test_a_picture_without_frames_is_unchanged() -> None:
    """Nothing is added to what has no title."""
    assert raise_titles("<svg>\n<g>\n</g>\n</svg>") == "<svg>\n<g>\n</g>\n</svg>"


def test_a_strip_is_as_long_as_its_title_and_below_all_of_it() -> None:
    """It begins where the title does, and no piece of the title covers another."""
    picture = draw(residual_blocks(5), "svg", DrawOptions(depth=2)).content.decode()
    titles = picture.split('<g class="titles">')[1].splitlines()[1:3]
    found = [
        re.search(r'<rect x="([-\d.]+)" .*?width="([\d.]+)".*<text [^>]*?x="([-\d.]+)"', title) for title in titles
    ]

    assert all(match and match[1] == match[3] and 40 < float(match[2]) < 220 for match in found)
    assert "paint-order" not in picture


def test_a_strip_is_as_long_as_its_title_in_a_wider_font() -> None:
    """A viewer without Helvetica may have a wider one: the arrow does not pass through the end of the title there."""
    frame = '<path fill="#ffffff" stroke="black" d="M0,0C0,0 400,0 400,0 400,0 400,40 0,40"/>'
    text = '<text x="8" y="12" font-size="8.00">31 nodes · 967.6 KiB</text>'  # 74 points in Helvetica, 83 in Verdana
    svg = f'<svg>\n<g id="clust1" class="cluster">\n{frame}\n{text}\n</g>\n</g>\n</svg>'
    found = re.search(r'<rect x="8" .*?width="([\d.]+)"', raise_titles(svg))

    assert found is not None
    assert 83 < float(found[1]) < 95


def test_a_strip_ends_within_its_frame() -> None:
    """A strip that is wider than the frame would erase its border and what is beside it."""
    picture = draw(residual_blocks(5), "svg", DrawOptions(depth=2)).content.decode()
    frames = re.findall(r'class="cluster">.*?<path fill="[^"]*".*? d="([^"]*)"', picture, re.DOTALL)
    right_sides = [max(float(x) for x in re.findall(r"(-?[\d.]+),", outline)) for outline in frames]
    strips = re.findall(r'<rect x="([-\d.]+)" .*?width="([\d.]+)"', picture.split('<g class="titles">')[1])

    assert len(frames) == len(strips) == 2
    assert all(float(x) + float(width) < right for (x, width), right in zip(strips, right_sides, strict=True))


def test_a_strip_is_cut_at_the_border_of_a_narrow_frame() -> None:
    """The text may be wider than the frame where an engine measures another font than the viewer has."""
    frame = '<path fill="#ffffff" stroke="black" d="M0,0C0,0 40,0 40,0 40,0 40,40 0,40"/>'
    text = '<text x="8" y="12" font-size="10.00">a title that is long</text>'
    svg = f'<svg>\n<g id="clust1" class="cluster">\n{frame}\n{text}\n</g>\n</g>\n</svg>'

    assert '<rect x="8" y="3.00" width="30.50"' in raise_titles(svg)
