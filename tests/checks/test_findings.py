"""How findings are chosen, by code and once each; their lines and their words."""

import pytest
from factories import graph, op
from msgspec.structs import replace

from gradinspect.checks.findings import (
    Finding,
    Findings,
    Place,
    caller_in,
    caller_of_helper,
    check_codes,
    line_of,
    line_that_names,
    listed,
    merged,
    place_of,
    place_to_change,
    selected,
)
from gradinspect.errors import GradInspectError
from gradinspect.graph import Frame

BACKWARD = Frame(file="train.py", line=9, code="loss.backward()")
ONCE = Finding(code="GI101", title="", text="", places=place_of("made", BACKWARD), remedy="")
EACH_TIME = replace(ONCE, code="GI601")


def test_codes_choose_and_the_same_lines_count_once() -> None:
    """A code also stands for all that begin with it; what comes first stays first, also when it is seen again."""
    assert selected([ONCE, EACH_TIME, ONCE], (), ()) == (ONCE, EACH_TIME)
    assert selected([ONCE, EACH_TIME], ("GI6",), ()) == (EACH_TIME,)
    assert selected([ONCE, EACH_TIME], (), ("GI6",)) == (ONCE,)


def test_one_cause_that_shows_in_several_losses_is_one_finding() -> None:
    """It names all of them in the order of lines; what has no other line stays, and what says something else."""
    layer, early, late = (place_of(role, frame(line)) for role, line in (("layer", 2), ("loss", 5), ("loss", 7)))
    twice = [replace(ONCE, places=(*layer, *loss, *place_of("backward", BACKWARD))) for loss in (late, early)]
    other = replace(twice[0], text="other")
    alone = [replace(ONCE, places=loss) for loss in (early, late)]

    assert [[(one.role, one.line) for one in found.places] for found in merged([*twice, other])] == [
        [("layer", 2), ("loss", 5), ("loss", 7), ("backward", 9)],
        [("layer", 2), ("loss", 7), ("backward", 9)],
    ]
    assert merged(alone) == tuple(alone)
    assert merged(twice[:1]) == (twice[0],)


def frame(line: int, function: str = "step", file: str = "train.py") -> Frame:
    """Make a line of a function."""
    return Frame(file=file, line=line, function=function, code=f"line {line}")


def test_a_code_may_be_spelled_in_any_case_and_several_in_one_word() -> None:
    """A beginning of a code is one too; what none begins with is an error that names those most like it."""
    known = ["GI101", "GI102", "GI301"]

    assert check_codes(["gi101", " GI3 , gi1,,"], known) == ("GI101", "GI3", "GI1")
    assert check_codes(["GI"], known) == ("GI",)
    for wrong, near in (
        ("GI109", "GI101 and GI102"),
        ("GI9", "GI101, GI102 and GI301"),
        ("101", "GI101, GI102 and GI301"),
    ):
        with pytest.raises(GradInspectError, match=rf"^No rule has the code '{wrong}'. Closest matches: {near}\.$"):
            check_codes([wrong], known)
    with pytest.raises(GradInspectError, match=r"'G'. Closest matches: GI101, GI102, GI103, GI104 and 2 more\.$"):
        check_codes(["G"], [f"GI{number}" for number in range(101, 107)])
    for empty in ("", " , "):
        with pytest.raises(GradInspectError, match=f"There is no code in '{empty}'. Write them as GI101,GI4."):
            check_codes(["GI101", empty], known)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c", "d"], "a, b, c and d"),
        (["a", "b", "c", "d", "e"], "a, b, c, d and 1 more"),
        (["a"] * 2000, "a, a, a, a and 1,996 more"),
    ],
)
def test_names_are_listed_as_in_a_sentence(names: list[str], text: str) -> None:
    """Four, and how many more."""
    assert listed(names) == text


@pytest.mark.parametrize(
    ("roles", "cause"),
    [
        (["sampled", "used", "backward"], "sampled"),
        (["layer", "applied", "loss", "backward"], "layer"),
        (["applied", "loss", "backward"], "applied"),
        (["softmax", "loss", "backward"], "softmax"),
        (["detached", "term", "used", "backward"], "detached"),
        (["read", "last", "replaced", "backward", "step", "optimizer"], "replaced"),
        (["read", "last", "backward", "step", "optimizer"], "last"),
        (["old", "new", "kept", "freed", "backward"], "kept"),
        (["optimizer", "made", "backward"], "made"),
        (["optimizer", "step"], "optimizer"),
        (["frozen", "copied", "step"], "copied"),
        (["eval", "train"], "train"),
        (["function", "optimizer", "step", "scheduler"], "function"),
        (["saved", "shared", "written", "backward"], "written"),
        (["new", "old", "compared", "backward"], "old"),
        (["mask", "added"], "added"),
        (["mask", "used"], "mask"),
        (["step", "backward"], "step"),
    ],
)
def test_the_role_of_a_line_says_how_far_it_is_from_the_cause(roles: list[str], cause: str) -> None:
    """What a line did it to, and where that came to light, are other lines than that of the cause."""
    places = tuple(place for number, role in enumerate(roles, 1) for place in place_of(role, frame(number)))
    place = place_to_change(replace(ONCE, places=places), {"train.py"})

    assert place is not None
    assert place.role == cause


def test_the_line_to_change_is_that_of_the_cause_in_the_program_itself() -> None:
    """A caller does not count; without a line of the program it is that of a library."""
    read, wrote = frame(3), frame(5, file="lib.py")
    places = (*place_of("saved", read, frame(30)), *place_of("written", wrote), *place_of("backward", frame(9)))
    finding = replace(ONCE, places=places)

    def line_to_change(own: set[str], changed: Finding = finding) -> int | None:
        place = place_to_change(changed, own)
        return None if place is None else place.line

    assert [place.role for place in places] == ["saved", "called", "written", "backward"]
    assert line_to_change({"train.py", "lib.py"}) == 5
    assert line_to_change({"train.py"}) == 3
    assert line_to_change(set()) == 5
    assert line_to_change({"train.py"}, ONCE) == 9
    assert line_to_change({"train.py"}, replace(ONCE, places=())) is None


def test_the_line_to_change_is_not_that_of_backward_where_another_is_named_before_it() -> None:
    """A root whose gradient is infinite at 0 was made elsewhere; alone, the line of backward is the one there is."""
    made, backward, step = (place_of(role, frame(n))[0] for role, n in (("made", 3), ("backward", 9), ("step", 10)))

    def line_to_change(*places: Place) -> int | None:
        place = place_to_change(replace(ONCE, places=places), {"train.py"})
        return None if place is None else place.line

    assert line_to_change(made, backward, step) == line_to_change(made, backward) == 3
    assert line_to_change(backward, step) == 10
    assert line_to_change(backward) == 9


@pytest.mark.parametrize(
    ("code", "called", "is_handed"),
    [
        ("return fn(x, **kw)", "x = run(torch.round, x)", True),
        ("return fn(x)", "return run(x, fn=F.relu)", True),
        ("out = fn(x)", "y = self.run(torch.Tensor.detach, x)", True),
        ("return x.round()", "x = run(x)", False),
        ("return clamp(x)", "x = run(x)", False),
        ("return fn(torch.exp(x))", "x = run(torch.round, x)", False),
        ("return fn(x)", "x = run(torch.exp(x))", False),
        ("return fn(x)", "x = other(torch.round, x)", False),
    ],
)
def test_the_line_that_hands_a_function_of_torch_on_names_the_operator(
    code: str, called: str, *, is_handed: bool
) -> None:
    """A helper that calls whatever it is given is not the line to change."""
    helper, caller = replace(frame(3, "Net.run"), code=code), replace(frame(8, "train"), code=called)

    assert line_that_names(helper, caller) == ((caller, None) if is_handed else (helper, caller))
    assert line_that_names(helper, None) == (helper, None)
    assert line_that_names(None, caller) == (None, caller)


def test_the_caller_of_a_helper_is_named() -> None:
    """Not that of the training loop, of forward(), of a lambda, of a function that calls itself, nor a library's."""
    helper, caller, loop = frame(3, "scale"), frame(8, "train"), frame(9, "train")
    library = replace(caller, is_library=True)

    assert caller_of_helper(helper, caller, loop) == caller
    assert caller_of_helper(helper, caller, None) == caller
    assert caller_of_helper(helper, caller, frame(4, "scale")) is None
    assert caller_of_helper(frame(3, "Net.forward"), caller, loop) is None
    assert caller_of_helper(frame(3, "<lambda>"), caller, loop) is None
    assert caller_of_helper(helper, frame(4, "scale"), loop) is None
    assert caller_of_helper(helper, library, loop) is None
    assert caller_of_helper(None, caller, loop) is None
    assert caller_of_helper(helper, None, loop) is None
    assert caller_of_helper(helper, frame(4, "scale", "other.py"), loop) == frame(4, "scale", "other.py")


def test_the_caller_of_the_line_that_made_a_node() -> None:
    """As the record of its frames says."""
    frames = (frame(8, "train"), replace(frame(3, "scale"), caller=0), frame(4, "main"))
    made = graph(op("A", 1, frame=1), op("B", 2, frame=2), op("C"), frames=frames)

    assert [caller_in(made, node, None) for node in made.nodes] == [frames[0], None, None]


def test_a_line_that_is_not_known_is_said_to_be() -> None:
    """And has no place."""
    assert (line_of(BACKWARD), line_of(None)) == ("train.py:9", "an unknown line")
    assert place_of("made", None, BACKWARD) == ()


def test_the_headline_counts_or_says_that_there_is_none() -> None:
    """And where the program has failed, that all the rest of it was not seen."""
    none = Findings(source="train.py", num_calls=1, findings=())
    failed = replace(none, has_failed=True)

    assert none.headline == "No problems found"
    assert failed.headline == "The program failed, and no problems found until then,"
