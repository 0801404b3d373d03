"""The titles of frames stay legible."""

from factories import residual_blocks

from gradinspect.renderers.picture.picture import draw
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.renderers.picture.svg.titles import raise_titles


def test_titles_are_drawn_after_the_arrows_on_a_strip_of_their_own() -> None:
    """Each title is once in the picture, after the last arrow, and its strip has the color of its frame."""
    picture = draw(residual_blocks(5), "svg", DrawOptions(depth=2)).content.decode()
    before, titles = picture.split('<g class="titles">')

    assert before.count('class="cluster"') == titles.count("paint-order") == 2
    assert "<path" not in titles
    assert 'stroke="#f4f8fb"' in titles
    assert picture.count(">Net<") == 1


def test_a_picture_without_frames_is_unchanged() -> None:
    """Nothing is added to what has no title."""
    assert raise_titles("<svg>\n<g>\n</g>\n</svg>") == "<svg>\n<g>\n</g>\n</svg>"
