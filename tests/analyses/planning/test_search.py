"""The search for the cheapest plan: on a model of memory that is a sum."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gradinspect.analyses.planning.blocks import blocks_of
from gradinspect.analyses.planning.changes import (
    Autocast,
    Change,
    Checkpoint,
    CheckpointSegments,
    ChunkLoss,
    DeleteVariable,
    HalfSaves,
    ModuleUse,
    Offload,
    Plan,
    ReleaseGradients,
    SequencePart,
    describe_plan,
    rounding_of,
)
from gradinspect.analyses.planning.search import FoundPlans, PlanOutcome, PlanSearch, TimeIsOver, front_of
from gradinspect.analyses.planning.segments import sequences_of

KEPT = ("aten.mm.default",)
RELEASE = ReleaseGradients(line="train.py:9", code="optimizer.zero_grad()")
DELETION = DeleteVariable(name="out", file="train.py", line=12, indent=4, code="loss = f(out)", num_bytes=100)
CHUNKED = ChunkLoss(root=0, path="head", chunks=8, projection="model.py:5", loss="model.py:6", loss_code="f(x)")
USES = (
    ModuleUse(root=0, path="", class_name="GPT", saved_bytes=1000, has_parts=True),
    *(ModuleUse(root=0, path=f"h.{n}", class_name="Block", saved_bytes=100, has_parts=True) for n in range(8)),
    *(ModuleUse(root=0, path=f"h.{n}.mlp", class_name="MLP", saved_bytes=60, has_parts=True) for n in range(8)),
    ModuleUse(root=0, path="head", class_name="Linear", saved_bytes=3),
)


def measured(plan: Plan) -> PlanOutcome:
    """Need 1,000 bytes, of which gradients are 100; computing a block again costs 10, without its products 1."""
    peak, flops, moved = 1000, 1000, 0
    for change in plan.changes:
        if isinstance(change, Offload | HalfSaves | Autocast):
            saved = len(change.paths) * (60 if change.paths[0].endswith("mlp") else 100)
            peak -= saved if isinstance(change, Offload) else saved // (4 if isinstance(change, Autocast) else 2)
            moved += saved if isinstance(change, Offload) else 0
            continue
        if not isinstance(change, Checkpoint):
            peak -= 200 if isinstance(change, ChunkLoss) else 100
            flops += 50 * isinstance(change, ChunkLoss)
            continue
        size = 60 if change.paths[0].endswith("mlp") else 100
        peak -= len(change.paths) * (size // 2 if change.kept else size)
        flops += len(change.paths) * (1 if change.kept else 10)
    lowest = 50 if CHUNKED in plan.changes else 250
    return PlanOutcome(plan=plan, peak_bytes=max(peak, lowest), flops=flops, moved_bytes=moved)


def found(limit: int, *offers: Change) -> FoundPlans:
    """Search among these modules."""
    return PlanSearch(limit, USES, KEPT, measured).run(measured(Plan()), offers)


def modules(outcome: PlanOutcome) -> list[tuple[str, int, bool]]:
    """List what a plan checkpoints: the first module, how many, and whether products are kept."""
    return [
        (change.paths[0], len(change.paths), bool(change.kept))
        for change in outcome.plan.changes
        if isinstance(change, Checkpoint)
    ]


def test_levels_with_names_of_their_own_are_tried_one_by_one() -> None:
    """They hold different amounts; blocks of a list are tried together. A plan names both as one."""
    uses = [ModuleUse(root=0, path=path, class_name="Up", saved_bytes=size, has_parts=True)
            for path, size in (("up1", 100), ("up2", 200), ("h.0", 100), ("h.1", 100))]  # fmt: skip
    whole = ModuleUse(root=0, path="", class_name="Net", saved_bytes=500, has_parts=True)
    found = blocks_of([whole, *uses])
    plan = Plan(changes=tuple(block.checkpointed(block.paths) for block in found))

    assert sorted(block.paths for block in found) == [("h.0", "h.1"), ("up1",), ("up2",)]
    assert sorted(describe_plan(plan, "×").split("; ")) == ["checkpoint h.0-1 Up ×2", "checkpoint up1-2 Up ×2"]


def test_modules_that_differ_in_numbers_are_one_block() -> None:
    """The one that holds most comes first; the whole model and what holds next to nothing are left out."""
    blocks = blocks_of(USES)

    assert [(block.class_name, len(block.paths)) for block in blocks] == [("Block", 8), ("MLP", 8)]


def test_what_cannot_run_again_is_changed_in_other_ways() -> None:
    """It is named once, by the outermost block, and what stands beside it is still checkpointed."""
    reason = "draws from Python's random"
    other = [ModuleUse(root=0, path=f"g.{n}", class_name="Other", saved_bytes=70, has_parts=True) for n in range(2)]
    uses = [
        *other,
        *(
            msgspec.structs.replace(use, unrepeatable=reason if use.class_name in {"GPT", "Block", "MLP"} else "")
            for use in USES
        ),
    ]
    search = PlanSearch(500, uses, KEPT, measured).run(measured(Plan()), ())
    checkpointed = {path for one in (*search.front, search.lowest) for path, _, _ in modules(one)}

    assert checkpointed == {"g.0"}
    assert any(isinstance(change, HalfSaves) and "h.0" in change.paths for change in search.lowest.plan.changes)
    assert search.refused == (
        "Not possible: checkpoint h.0-7 Block x8. Its forward draws from Python's random, which a checkpoint does not "
        "put back.",
    )
    assert PlanSearch(2000, uses, KEPT, measured).run(measured(Plan()), ()).refused == ()


def test_what_fits_needs_no_change() -> None:
    """Then nothing else is run."""
    search = found(1000, RELEASE)

    assert search.fitting[0].plan == Plan()
    assert search.num_runs == 1


def test_what_was_found_when_the_time_was_over_is_reported() -> None:
    """The first plan that fits is there after three runs; more time finds a cheaper one."""
    tried: list[Plan] = []

    def in_time(plan: Plan) -> PlanOutcome:
        if len(tried) == 3:
            raise TimeIsOver
        tried.append(plan)
        return measured(plan)

    cut = PlanSearch(900, USES, KEPT, in_time).run(measured(Plan()), ())
    whole = found(900)

    assert (cut.is_cut, cut.num_runs, whole.is_cut) == (True, 4, False)
    assert cut.fitting[0].peak_bytes <= 900
    assert cut.fitting[0].flops >= whole.fitting[0].flops


def test_gradients_are_freed_before_anything_is_computed_again() -> None:
    """It costs nothing."""
    search = found(900, RELEASE)

    assert search.fitting[0].plan == Plan(changes=(RELEASE,))
    assert search.fitting[0].flops == 1000


def test_what_costs_nothing_is_changed_together() -> None:
    """One after the other, until it fits."""
    assert found(900, DELETION, RELEASE).fitting[0].plan == Plan(changes=(DELETION,))
    assert found(800, DELETION, RELEASE).fitting[0].plan == Plan(changes=(DELETION, RELEASE))


def rounded(limit: int, *, rounds: bool = False) -> FoundPlans:
    """Search, where the loss can be computed in chunks."""
    search = PlanSearch(limit, USES, KEPT, measured, rounds=rounds)
    return search.run(measured(Plan()), [], [[CHUNKED]])


def test_gradients_are_rounded_otherwise_only_if_nothing_else_fits() -> None:
    """Or if that is asked for: then after all plans that keep every bit."""
    exact, asked, needed = rounded(700), rounded(700, rounds=True), rounded(200)

    assert not any(CHUNKED in outcome.plan.changes for outcome in exact.fitting)
    assert CHUNKED not in asked.fitting[0].plan.changes
    assert CHUNKED in [outcome for outcome in asked.fitting if rounding_of(outcome.plan) < 2][-1].plan.changes
    assert all(CHUNKED in outcome.plan.changes for outcome in needed.fitting)
    assert modules(needed.fitting[0]) == [("h.0", 4, False), ("h.4", 4, True)]


def test_saved_tensors_are_offloaded_where_there_is_a_device() -> None:
    """As few as fit; a plan that moves nothing comes first, as only a run shows what a move costs."""
    search = PlanSearch(700, USES, KEPT, measured, offloads=True).run(measured(Plan()), [])
    moving = [outcome for outcome in search.fitting if outcome.moved_bytes]

    assert search.fitting[-len(moving) :] == tuple(moving)
    assert moving[0].plan.changes == (Offload(root=0, paths=("h.0", "h.1", "h.2"), class_name="Block", num_alike=8),)
    assert {outcome.moved_bytes for outcome in found(700).fitting} == {0}


def test_saves_in_half_precision_come_last() -> None:
    """They are tried if nothing else fits, or if that is asked for."""
    first, *others = (one.plan.changes for one in rounded(700, rounds=True).fitting if rounding_of(one.plan) > 1)

    assert first == (HalfSaves(root=0, paths=tuple(f"h.{n}" for n in range(6)), class_name="Block", num_alike=8),)
    assert rounded(700, rounds=True).fitting[-1].plan.changes == others[-1]
    assert not any(isinstance(change, HalfSaves) for one in rounded(700).fitting for change in one.plan.changes)


def test_autocast_is_tried_after_saves_in_half_precision() -> None:
    """It rounds as much; in this fake program it frees less, so that only the table of what was run has it."""
    tried: list[Plan] = []

    def measure(plan: Plan) -> PlanOutcome:
        tried.append(plan)
        return measured(plan)

    PlanSearch(1, USES, KEPT, measure).run(measured(Plan()), [])
    kinds = [type(plan.changes[0]) for plan in tried if plan.changes]

    assert Autocast in kinds
    assert kinds.index(HalfSaves) < kinds.index(Autocast)


def test_autocast_comes_on_top_of_checkpoints_where_neither_is_enough() -> None:
    """As little of it as fits; alone, checkpoints reach 400 here, and autocast 700."""

    def measure(plan: Plan) -> PlanOutcome:
        cast = sum(len(change.paths) for change in plan.changes if isinstance(change, Autocast))
        again = sum(len(change.paths) for change in plan.changes if isinstance(change, Checkpoint))
        peak = 1000 - min(cast, 8) * 30 - min(again, 8) * 75
        return PlanOutcome(plan=plan, peak_bytes=peak, flops=1000 + again)

    search = PlanSearch(340, USES, (), measure).run(measure(Plan()), [])
    checkpoint, autocast = search.fitting[0].plan.changes

    assert isinstance(checkpoint, Checkpoint)
    assert isinstance(autocast, Autocast)
    assert (len(checkpoint.paths), len(autocast.paths)) == (8, 2)


def test_a_loss_that_cannot_be_changed_is_not_tried_again() -> None:
    """It is said why."""

    def refuses(plan: Plan) -> PlanOutcome:
        return PlanOutcome(plan=plan, failure="It reads the logits.") if CHUNKED in plan.changes else measured(plan)

    search = PlanSearch(200, USES, KEPT, refuses).run(measured(Plan()), [], [[CHUNKED]])

    assert search.fitting == ()
    assert search.refused == ("It reads the logits.",)


def test_the_fewest_modules_are_checkpointed_that_fit() -> None:
    """Products are kept where that is enough: it costs least."""
    assert modules(found(700).fitting[0]) == [("h.0", 6, True)]


def test_blocks_are_mixed_where_keeping_products_is_not_enough() -> None:
    """As few as possible are computed wholly again."""
    assert modules(found(500).fitting[0]) == [("h.0", 2, False), ("h.2", 6, True)]


def test_where_nothing_fits_the_lowest_is_known() -> None:
    """So that it can be said what stands in the way."""
    search = found(100)

    assert search.fitting == ()
    assert search.lowest.peak_bytes == 250
    assert modules(search.lowest) == [("h.0", 8, False)]


def test_only_what_was_tried_is_listed() -> None:
    """A program without deletions is not said to have been tried with them."""
    with_deletions = found(100, RELEASE, DELETION).tried

    assert found(100).tried == ("checkpoints", "bfloat16 saves", "autocast")
    assert set(with_deletions) == {*found(100).tried, "gradients freed earlier", "deletions"}
    assert PlanSearch(100, (), (), measured).run(measured(Plan()), ()).tried == ()


def test_a_plan_that_breaks_the_program_is_not_proposed() -> None:
    """Whatever it would need."""

    def fails(plan: Plan) -> PlanOutcome:
        return PlanOutcome(plan=plan, failure="no") if plan.changes else measured(plan)

    search = PlanSearch(500, USES, KEPT, fails).run(measured(Plan()), [RELEASE])

    assert search.fitting == ()
    assert search.lowest.plan == Plan()


def test_modules_that_cannot_be_checkpointed_are_named_once() -> None:
    """Each block with the largest number of its modules that was tried; a cache is a likely reason."""

    def failing(plan: Plan) -> PlanOutcome:
        for change in plan.changes:
            if isinstance(change, Checkpoint) and change.class_name == "Block":
                return PlanOutcome(plan=plan, failure="It failed with CheckpointError.")
            if isinstance(change, Checkpoint) and change.class_name == "MLP":
                return PlanOutcome(plan=plan, failure="It failed with KeyError.")
        return measured(plan)

    refused = PlanSearch(600, USES, KEPT, failing).run(measured(Plan()), ()).refused

    assert len(refused) == 2
    assert refused[0].startswith("Not possible: checkpoint h.0-7 Block x8. It failed with CheckpointError. The modules")
    assert "use_cache=False" in refused[0]
    assert refused[1] == "Not possible: checkpoint h.0-7.mlp MLP x8. It failed with KeyError."


def test_a_change_that_is_not_needed_is_not_part_of_the_best_plan() -> None:
    """Freeing gradients that are not there changes nothing."""

    def unmoved(plan: Plan) -> PlanOutcome:
        changes = tuple(change for change in plan.changes if isinstance(change, Checkpoint))
        return PlanOutcome(plan=plan, peak_bytes=measured(Plan(changes=changes)).peak_bytes, flops=measured(plan).flops)

    search = PlanSearch(700, USES, KEPT, unmoved).run(measured(Plan()), [RELEASE])

    assert RELEASE not in search.fitting[0].plan.changes


def in_segments(plan: Plan) -> PlanOutcome:
    """Need 1,000 bytes; cut into segments, 25 for each and those that the longest of them computes again."""
    for change in plan.changes:
        if isinstance(change, CheckpointSegments):
            ends = (*change.starts[1:], 48)
            longest = max(end - start for start, end in zip(change.starts, ends, strict=True))
            return PlanOutcome(plan=plan, peak_bytes=20 * longest + 25 * len(ends), flops=1000 + 10 * change.starts[-1])
    return PlanOutcome(plan=plan, peak_bytes=1000, flops=1000)


def segments_found(limit: int) -> FoundPlans:
    """Search in a flat Sequential of 48 modules."""
    parts = tuple(SequencePart(saved_bytes=20) for _ in range(48))
    uses = (ModuleUse(root=0, path="", class_name="Sequential", saved_bytes=960, has_parts=True, parts=parts),)
    search = PlanSearch(limit, uses, KEPT, in_segments)
    return search.run(in_segments(Plan()), [])


def test_the_fewest_segments_are_cut_that_fit() -> None:
    """Fewer segments compute less again."""
    fitting = segments_found(420).fitting

    assert fitting[0].plan.changes[0] == sequences_of(
        [ModuleUse(root=0, path="", class_name="Sequential", saved_bytes=960, has_parts=True,
                   parts=tuple(SequencePart(saved_bytes=20) for _ in range(48)))]
    )[0].in_segments(3)  # fmt: skip


def test_the_number_of_segments_that_needs_least_is_found() -> None:
    """Beyond it, what segments are given is more than they save."""
    lowest = segments_found(1).lowest

    assert lowest.peak_bytes == min(20 * -(-48 // number) + 25 * number for number in range(1, 49))
    assert len(lowest.plan.changes[0].starts) == 6  # type: ignore[union-attr]  # they are segments


def test_what_costs_nothing_may_help_together_with_checkpoints() -> None:
    """Freeing gradients moves no peak that lies elsewhere; once blocks are checkpointed, it does."""

    def elsewhere(plan: Plan) -> PlanOutcome:
        found, frees = measured(plan), RELEASE in plan.changes
        return PlanOutcome(plan=plan, peak_bytes=max(found.peak_bytes + 100 * frees, 600 - 100 * frees), flops=1)

    search = PlanSearch(500, USES, KEPT, elsewhere).run(elsewhere(Plan()), [RELEASE])

    assert RELEASE in search.fitting[0].plan.changes
    assert modules(search.fitting[0])
    assert not any(RELEASE in one.plan.changes for one in found(700).fitting)


def test_what_needs_no_less_than_a_cheaper_plan_is_left_out() -> None:
    """Where nothing fits, too."""
    outcomes = [
        PlanOutcome(plan=Plan(changes=changes), peak_bytes=peak, flops=flops)
        for changes, peak, flops in (((), 100, 10), ((RELEASE,), 80, 12), ((DELETION,), 80, 11), ((CHUNKED,), 90, 11))
    ]

    assert front_of(outcomes) == (outcomes[0], outcomes[2])
    assert [one.peak_bytes for one in found(1).front] == [1000, 250, 600]  # half precision computes nothing again


def columns_of(outcome: PlanOutcome) -> tuple[int, ...]:
    """List what the table shows of a plan, the less the better."""
    plan = outcome.plan
    return outcome.peak_bytes, outcome.flops, outcome.moved_bytes, plan.num_changes, rounding_of(plan)


def is_beaten(outcome: PlanOutcome, by: PlanOutcome) -> bool:
    """Return whether another plan is better in something, and worse in nothing."""
    one, other = columns_of(outcome), columns_of(by)
    return one != other and all(a >= b for a, b in zip(one, other, strict=True))


@st.composite
def outcomes(draw: st.DrawFn) -> PlanOutcome:
    """Draw the outcome of a plan, of few values, so that some are equal."""
    paths = tuple(f"h.{number}" for number in range(draw(st.integers(0, 3))))
    kind = draw(st.sampled_from((Checkpoint, Offload, HalfSaves, Autocast)))
    changes = [kind(root=0, paths=paths, class_name="Block", num_alike=3)] if paths else []
    changes += draw(st.lists(st.sampled_from((RELEASE, DELETION, CHUNKED)), unique=True))
    peak, flops, moved = (draw(st.integers(0, 1)) for _ in range(3))
    return PlanOutcome(plan=Plan(changes=tuple(changes)), peak_bytes=peak, flops=flops, moved_bytes=moved)


@given(st.lists(outcomes(), min_size=2, max_size=12))
def test_no_row_of_the_front_is_beaten_in_all_columns(found: list[PlanOutcome]) -> None:
    """Each plan that is left out is: at the same work or less, by one of the front."""
    front = front_of(found)

    assert not [one for one in front for by in front if is_beaten(one, by)]
    assert len({columns_of(one) for one in front}) == len(front)
    for outcome in found:
        assert any(
            by.peak_bytes <= outcome.peak_bytes
            and by.moved_bytes <= outcome.moved_bytes
            and rounding_of(by.plan) <= rounding_of(outcome.plan)
            and (by.flops < outcome.flops or columns_of(by)[1:4:2] <= columns_of(outcome)[1:4:2])
            for by in front
        )


def test_what_promises_most_is_tried_first() -> None:
    """It is found even if the time is over after one plan."""
    first = Checkpoint(root=0, paths=("h.0", "h.1"), class_name="Block", num_alike=8)
    plans: list[Plan] = []

    def once(plan: Plan) -> PlanOutcome:
        if plans:
            raise TimeIsOver
        plans.append(plan)
        return measured(plan)

    result = PlanSearch(800, USES, KEPT, once).run(measured(Plan()), [RELEASE], first=[first])

    assert result.is_cut
    assert [outcome.plan for outcome in result.fitting] == plans == [Plan(changes=(first,))]


def test_what_the_lowest_plan_does_not_need_is_dropped() -> None:
    """Where another change does the same, as steps inside backward free gradients, too."""

    def freed(plan: Plan) -> PlanOutcome:
        peak = 900 if DELETION in plan.changes else 950 if RELEASE in plan.changes else 1000
        return PlanOutcome(plan=plan, peak_bytes=peak)

    search = PlanSearch(100, (), (), freed).run(freed(Plan()), (RELEASE, DELETION))

    assert search.lowest.plan.changes == (DELETION,)


def test_saves_of_compiled_modules_are_left_as_they_are() -> None:
    """Hooks of saved tensors break the graph of what runs inside of it; a module around it can have them."""
    inside = [replace(use, is_compiled=True) for use in USES]
    search = PlanSearch(1, inside, KEPT, measured, rounds=True, offloads=True).run(measured(Plan()), ())

    assert "offloads" not in search.tried
    assert "bfloat16 saves" not in search.tried
    assert "autocast" in search.tried
    assert [one for one in search.refused if "torch.compile" in one] == [
        f"Not possible: {kind} inside of what torch.compile compiles: hooks of saved tensors break its graphs."
        for kind in ("offloads", "bfloat16 saves")
    ]
    around = [*USES[:1], *(replace(use, path=f"{use.path}._orig_mod", is_compiled=True) for use in USES[1:9])]
    blocks = blocks_of([*around, *USES[1:9]])
    assert [(block.paths[0], block.is_compiled) for block in blocks] == [("h.0", False)]
