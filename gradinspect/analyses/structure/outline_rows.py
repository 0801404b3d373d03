"""The rows of an outline, as data: what a tree, a pager or an explorer shows of a graph, without text or width."""

from typing import Literal, TypeAlias

from gradinspect.analyses.structure.folding import Scope
from gradinspect.graph import Edge, Record

RowKind: TypeAlias = Literal["node", "scope", "leaf", "reference"]
Guide: TypeAlias = Literal["branch", "last_branch", "line", "gap", "scope"]  # one column of indentation, left to right


class Link(Record, frozen=True, kw_only=True):
    """An edge as a reader knows it: the forward argument, and where the gradient goes."""

    argument: str | None = None
    position: int | None = None  # None when it stands for many edges of a scope
    edge: Edge


class Row(Record, frozen=True, kw_only=True):
    """One row of the outline."""

    kind: RowKind
    guides: tuple[Guide, ...] = ()
    links: tuple[Link, ...] = ()  # the edges by which the row above this column leads here
    nodes: tuple[int, ...] = ()  # kind "node": usually one; more when a short chain shares the row
    call: int | None = None  # kind "node": the module call, when this node is all of it
    scope: Scope | None = None
    is_open: bool = False
    copy: int | None = None  # of an open repeat: which copy is told, when the reader can choose
    way_on: tuple[Link, ...] = ()  # where the row's gradients go, if not to the rows below: a leaf, or told elsewhere
    ends_in_leaf: bool = False


def split_row(row: Row) -> list[Row]:
    """Give each node of a row, and what its gradients go to, a row of its own."""
    guides = guides_below(row)
    first, *others = row.nodes
    rows = [Row(kind="node", guides=row.guides, links=row.links, nodes=(first,), call=row.call)]
    rows += [Row(kind="node", guides=guides, nodes=(node,)) for node in others]
    kind: RowKind = "leaf" if row.ends_in_leaf else "reference"
    return [*rows, Row(kind=kind, guides=(*guides, "last_branch"), way_on=row.way_on)]


def guides_below(row: Row) -> tuple[Guide, ...]:
    """Return the indentation of what stands under a row in the same column."""
    below: dict[Guide, Guide] = {"branch": "line", "last_branch": "gap"}
    return tuple(below.get(guide, guide) for guide in row.guides)
