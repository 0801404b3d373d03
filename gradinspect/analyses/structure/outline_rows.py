"""The rows of an outline, as data for the tree, the pager and the explorer, without text or width."""

from typing import Literal, TypeAlias

from gradinspect.analyses.structure.folding import Scope
from gradinspect.graph import Edge, Record

RowKind: TypeAlias = Literal["node", "scope", "leaf", "reference"]
Guide: TypeAlias = Literal["branch", "last_branch", "line", "gap", "scope"]  # one column of indentation, left to right


class Link(Record, frozen=True, kw_only=True):
    """An edge as shown to the user: the forward argument, and where the gradient goes."""

    argument: str | None = None
    position: int | None = None  # None if it represents several edges of a scope
    edge: Edge


class Row(Record, frozen=True, kw_only=True):
    """One row of the outline."""

    kind: RowKind
    guides: tuple[Guide, ...] = ()
    links: tuple[Link, ...] = ()  # the edges from the row above in this column
    nodes: tuple[int, ...] = ()  # kind "node": usually one; more if a short chain shares the row
    call: int | None = None  # kind "node": the module call, if this is its only node
    scope: Scope | None = None
    is_open: bool = False
    copy: int | None = None  # of an expanded repeat: which copy is listed, if the user can choose
    targets: tuple[Link, ...] = ()  # where gradients go, if not to the rows below: a leaf, or a row elsewhere
    ends_in_leaf: bool = False


def split_row(row: Row) -> list[Row]:
    """Give each node of a row, and its targets, a row of their own."""
    guides = guides_below(row)
    first, *others = row.nodes
    rows = [Row(kind="node", guides=row.guides, links=row.links, nodes=(first,), call=row.call)]
    rows += [Row(kind="node", guides=guides, nodes=(node,)) for node in others]
    kind: RowKind = "leaf" if row.ends_in_leaf else "reference"
    return [*rows, Row(kind=kind, guides=(*guides, "last_branch"), targets=row.targets)]


def guides_below(row: Row) -> tuple[Guide, ...]:
    """Return the indentation of rows under a row in the same column."""
    below: dict[Guide, Guide] = {"branch": "line", "last_branch": "gap"}
    return tuple(below.get(guide, guide) for guide in row.guides)
