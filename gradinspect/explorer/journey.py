"""Navigation in a graph: jumps, history, search. No screen."""

from bisect import bisect_left, bisect_right

from gradinspect.analyses.structure.folding import Item, Scope, node_ids
from gradinspect.analyses.structure.search import Found, Search
from gradinspect.explorer.browsing import Browser, RowPosition
from gradinspect.graph import Graph
from gradinspect.units import format_count


class Journey:
    """The user's movement through an outline. A request that cannot be met is answered with a sentence."""

    def __init__(self, graph: Graph, depth: int | None = 0) -> None:
        """Start at the first row, expanded to a depth; None: as deep as is easy to read."""
        self.graph = graph
        self.browser = Browser(graph, depth)
        self._chosen: Item | None = None
        self._behind: list[RowPosition] = []
        self._ahead: list[RowPosition] = []
        self._search: Search | None = None
        self._query = ""
        self._found = Found()
        self._hit: int | None = None  # the current hit

    @property
    def item(self) -> Item | None:
        """The current item: what the user jumped to, else the item of the row."""
        return self.browser.item if self._chosen is None else self._chosen

    def move_to(self, place: int) -> None:
        """Move the cursor to a row."""
        self.browser.move_to(place)
        self.forget()

    def forget(self) -> None:
        """Return to the item of the row with the cursor."""
        self._chosen = self._hit = None

    # Jumps.

    def jump(self, item: Item) -> None:
        """Go to a node or a scope, and remember the row left."""
        self._leave()
        self.browser.reveal(item)
        self._chosen, self._hit = item, None

    def follow(self) -> str:
        """Go to the target of the row."""
        row = self.browser.row
        if row is None or not row.targets:
            return "This row has no reference to follow: its gradients go to the rows below."
        target = row.targets[0].edge.next_node
        if self.graph.nodes[target].kind == "accumulate_grad":
            self.forget()
            self._chosen = target
        else:
            self.jump(target)
        return ""

    def go_to_node(self, number: str) -> str:
        """Go to a node by its number."""
        digits = number.strip().lstrip("#")
        if not (digits.isascii() and digits.isdecimal()):
            return f"'{number.strip()}' is not a node number. Type one, as in :17, or search with /."
        if int(digits[:18]) >= len(self.graph.nodes):
            last = len(self.graph.nodes) - 1
            return f"There is no node '#{digits}'." + (f" The nodes are #0 to #{last}." if last >= 0 else "")
        self.jump(int(digits))
        return ""

    def back(self) -> str:
        """Go back to the start of the last jump."""
        return self._travel(self._behind, self._ahead)

    def forward(self) -> str:
        """Undo going back."""
        return self._travel(self._ahead, self._behind)

    def _leave(self) -> None:
        here = self.browser.here()
        if here is not None:
            self._behind.append(here)
            self._ahead.clear()

    def _travel(self, taken: list[RowPosition], left: list[RowPosition]) -> str:
        here = self.browser.here()
        if not taken or here is None:
            return "There is nothing to go back to." if taken is self._behind else "There is nothing to go forward to."
        left.append(here)
        self.browser.go(taken.pop())
        self.forget()
        return ""

    # Search.

    def search(self, text: str) -> str:
        """Search for all words of a text, and go to the next hit."""
        self._search = self._search or Search(self.graph)
        self._query, self._found, self._hit = text, self._search.find(text), None
        return self.next_hit(1)

    def next_hit(self, by: int) -> str:
        """Go to another hit: 1 for the next, -1 for the previous, wrapping around."""
        if not self._query:
            return "There is no search yet. Type / and some words."
        hits = self._found.hits
        if not hits:
            return f"'{self._query}' was not found."
        wanted = self._beside(by)
        place = wanted % len(hits)
        hit = hits[place]
        self._leave()
        if hit.call is None:
            self.browser.reveal(hit.node)
            self._chosen = hit.node
        else:
            self.browser.reveal_call(hit.call, hit.node)
            self._chosen = None
        self._hit = place
        around = "" if wanted == place else ", wrapped to the first" if by > 0 else ", wrapped to the last"
        return f"/{self._query}  {place + 1:,} of {format_count(len(hits), 'hit')}{around}"

    def _beside(self, by: int) -> int:
        """Return the index of the next hit, before wrapping around."""
        if self._hit is not None:
            return self._hit + by
        item = self.item
        here = (-1 if item is None else node_ids(item).start, not isinstance(item, Scope))
        hits = self._found.hits[: self._found.num_named] or self._found.hits
        keys = [(hit.node, hit.call is None) for hit in hits]
        return bisect_right(keys, here) if by > 0 else bisect_left(keys, here) - 1
