"""The colors of static pictures, light and dark: tints of the Okabe-Ito palette.

Text has a contrast of at least 4.5. Boxes also differ by shape and border, so that they survive grayscale printing.
"""

from typing import NamedTuple


class Palette(NamedTuple):
    """One color for each part of a picture, as `#RRGGBB`."""

    paper: str
    ink: str
    soft: str  # less important text
    quiet: str  # least important text
    edge: str
    skip: str  # a residual connection
    card: str  # a node
    card_line: str
    other: str  # a node without a formula of its own, a chain of views
    leaf: str
    leaf_line: str
    shared: str
    shared_line: str
    custom: str
    custom_line: str
    closed: str
    closed_line: str
    track: str  # of a bar: all of it
    copies: str
    copies_line: str
    cut: str  # text and lines of what is left out
    root: str
    root_ink: str
    accumulate: str
    accumulate_ink: str
    clusters: tuple[str, ...]  # by depth
    cluster_line: str
    plain_clusters: tuple[str, ...]  # when colors mean something else
    plain: str  # of boxes without their own fill
    ramp: tuple[str, ...]  # least to most in one hue, so that the order survives color blindness: ColorBrewer's Blues
    kinds: tuple[str, ...]
    zero_line: str
    alarm: str


LIGHT = Palette(
    paper="#FFFFFF", ink="#111111", soft="#333333", quiet="#4C4C4C", edge="#444444", skip="#8C2F66",
    card="#FFFFFF", card_line="#555555", other="#E4E4E4",
    leaf="#D5F0E6", leaf_line="#00664B", shared="#F7DCEB", shared_line="#8C2F66",
    custom="#FBE3B5", custom_line="#7A4F00",
    closed="#CFE3F5", closed_line="#00507D", track="#C3CEDA", copies="#FBF6C9", copies_line="#6B6300", cut="#8F3A00",
    root="#222222", root_ink="#FFFFFF", accumulate="#00664B", accumulate_ink="#FFFFFF",
    clusters=("#F4F8FB", "#E8F0F7", "#DCE8F2", "#D0E0ED", "#C4D7E7"), cluster_line="#7F97AD",
    plain_clusters=("#FAFAFA", "#F3F3F3", "#ECECEC", "#E5E5E5", "#DEDEDE"), plain="#F7F7F7",
    ramp=("#F0F6FC", "#DAE8F5", "#BAD6EB", "#89BEDC", "#539ECD", "#2B7BBA", "#0B559F", "#08306B"),
    kinds=("#CFE3F5", "#FBE3B5", "#D5F0E6", "#F7DCEB", "#FBF6C9", "#F6D3BF", "#E0DAF3", "#DDE3E8"),
    zero_line="#C04000", alarm="#FFE45C",
)  # fmt: skip
DARK = Palette(
    paper="#14171C", ink="#E7EAF0", soft="#CBD2DC", quiet="#AEB8C6", edge="#8793A8", skip="#D98CB4",
    card="#242A33", card_line="#77849A", other="#3A424F",
    leaf="#173528", leaf_line="#58A886", shared="#402232", shared_line="#D98CB4",
    custom="#43340F", custom_line="#D3A54B",
    closed="#1F2F4D", closed_line="#6E93D6", track="#3B4350", copies="#38331C", copies_line="#B9A85C", cut="#F0A070",
    root="#E7EAF0", root_ink="#14171C", accumulate="#58A886", accumulate_ink="#0C1A14",
    clusters=("#191D24", "#1D222B", "#222833", "#272E3A", "#2C3441"), cluster_line="#56647A",
    plain_clusters=("#18191B", "#1D1E21", "#222427", "#27292D", "#2C2E33"), plain="#2B2E34",
    ramp=("#0F2238", "#0F3358", "#0B559F", "#2B7BBA", "#539ECD", "#89BEDC", "#BAD6EB", "#F0F6FC"),
    kinds=("#24466B", "#5C4312", "#1D5240", "#5E2A49", "#4F4A17", "#66351F", "#443A6B", "#434B55"),
    zero_line="#FF9A5C", alarm="#FFE45C",
)  # fmt: skip
PAPER = LIGHT._replace(
    ink="#000000", soft="#222222", quiet="#333333", edge="#333333", other="#EEEEEE",
    closed="#E4EEF7", closed_line="#333333", leaf="#EAF6F1", clusters=("#FFFFFF", "#F8F8F8", "#F2F2F2", "#ECECEC"),
    cluster_line="#777777",
)  # fmt: skip
PALETTES = {"light": LIGHT, "dark": DARK, "paper": PAPER}


def luminance(color: str) -> float:
    """Return the relative luminance of `#RRGGBB`, as WCAG 2 defines it."""
    parts = (int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colors, as WCAG 2 defines it: 1 to 21."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def blend(start: str, end: str, share: float) -> str:
    """Return a color between two."""
    pairs = ((int(start[place : place + 2], 16), int(end[place : place + 2], 16)) for place in (1, 3, 5))
    return "#" + "".join(f"{round(low + share * (high - low)):02X}" for low, high in pairs)
