"""Jumps, the way back, and search."""

from factories import graph, product_plus_two, residual_blocks, two_layers

from gradinspect.analyses.structure.folding import Scope
from gradinspect.explorer.journey import Journey


def looks_at(journey: Journey) -> object:
    """Return the node or scope that the panel is about."""
    return journey.item


def test_a_reference_leads_to_its_definition_and_back() -> None:
    """The cursor goes to the row of the node, and returns to the reference itself."""
    journey = Journey(residual_blocks(4))
    journey.browser.open_all()
    journey.move_to(5)

    assert journey.follow() == ""
    assert (journey.item, journey.browser.row and journey.browser.row.nodes) == (3, (3,))

    assert journey.back() == ""
    assert journey.browser.cursor == 5
    assert journey.item == 3  # what the reference refers to

    assert journey.forward() == ""
    assert journey.browser.row is not None
    assert journey.browser.row.nodes == (3,)


def test_a_row_that_ends_in_a_leaf_shows_the_leaf() -> None:
    """There is no other row to go to."""
    journey = Journey(product_plus_two())
    journey.move_to(2)

    assert looks_at(journey) == 1
    assert journey.follow() == ""
    assert (journey.item, journey.browser.cursor) == (2, 2)


def test_what_is_not_there_is_said() -> None:
    """Each in one sentence, and the cursor stays."""
    journey = Journey(two_layers())

    assert journey.follow() == "This row has no reference to follow: its gradients go to the rows below."
    assert journey.go_to_node("10") == "There is no node '#10'. The nodes are #0 to #9."
    assert journey.go_to_node("#x") == "'#x' is not a node number. Type one, as in :17, or search with /."
    assert journey.back() == "There is nothing to go back to."
    assert journey.forward() == "There is nothing to go forward to."
    assert journey.next_hit(1) == "There is no search yet. Type / and some words."
    assert journey.search("absent") == "'absent' was not found."
    assert journey.browser.cursor == 0


def test_a_node_by_its_number() -> None:
    """What it lies in is opened."""
    journey = Journey(two_layers())

    assert journey.go_to_node("#5") == ""
    assert journey.browser.row is not None
    assert journey.browser.row.nodes[-1] == 5


def test_search_goes_on_from_here_and_around_the_end() -> None:
    """A module is opened to where its row is; after the last hit comes the first."""
    journey = Journey(two_layers())

    assert journey.search("linear") == "/linear  1 of 6 hits"
    assert isinstance(journey.item, Scope)
    assert journey.next_hit(1) == "/linear  2 of 6 hits"
    assert looks_at(journey) == 1
    assert journey.next_hit(-1) == "/linear  1 of 6 hits"
    assert journey.next_hit(-1) == "/linear  6 of 6 hits, wrapped to the last"
    assert looks_at(journey) == 5
    assert journey.next_hit(1) == "/linear  1 of 6 hits, wrapped to the first"

    journey.go_to_node("3")

    assert journey.next_hit(1) == "/linear  4 of 6 hits"
    assert journey.back() == ""
    assert looks_at(journey) == 3


def test_a_call_in_a_repeat_is_found_in_its_copy() -> None:
    """The repeat tells the copy that was found."""
    journey = Journey(residual_blocks(4))

    assert journey.search("h.1") == "/h.1  1 of 4 hits"
    assert journey.browser.row is not None
    assert journey.browser.row.copy == 2
    assert journey.browser.item is journey.browser.row.scope


def test_nowhere_to_go_in_an_empty_graph() -> None:
    """Everything is answered, nothing breaks."""
    journey = Journey(graph(roots=()))

    assert journey.follow().startswith("This row has no reference")
    assert journey.go_to_node("0") == "There is no node '#0'."
    assert journey.search("x") == "'x' was not found."
    assert journey.item is None
