"""The first answer about plans, which no run has confirmed: on sums that can be done by hand."""

from gradinspect.analyses.planning.changes import CheckpointSegments, ModuleUse, Plan, SequencePart
from gradinspect.analyses.planning.estimate import Estimate, first_estimate
from gradinspect.analyses.planning.search import PlanOutcome

USES = (
    ModuleUse(root=0, path="", class_name="GPT", saved_bytes=1000, has_parts=True),
    *(ModuleUse(root=0, path=f"h.{n}", class_name="Block", saved_bytes=100, has_parts=True) for n in range(8)),
)


def estimated(limit: int, saved: int = 900) -> Estimate | None:
    """Estimate for a peak of 1,000 bytes, of which so many are saved for backward."""
    return first_estimate(PlanOutcome(plan=Plan(), peak_bytes=1000, alive={"saved": saved}), USES, limit)


def test_as_few_modules_as_would_fit() -> None:
    """Each checkpoint takes away what its module holds."""
    found = estimated(750)

    assert found is not None
    assert found.change.paths == ("h.0", "h.1", "h.2")
    assert found.peak_bytes == 700


def test_where_nothing_would_fit_what_needs_least() -> None:
    """One module of the block is there again in backward, so that checkpoints of all free no more than of seven."""
    found = estimated(10)

    assert found is not None
    assert len(found.change.paths) == 7
    assert found.peak_bytes == 300


def test_no_more_is_freed_than_is_there() -> None:
    """Where the peak is elsewhere, as in the optimizer's step, checkpoints free nothing, and nothing is said."""
    found = estimated(10, saved=150)

    assert found is not None
    assert found.peak_bytes == 850
    assert estimated(10, saved=0) is None


def test_what_fits_needs_no_answer() -> None:
    """The plain program is within the limit."""
    assert estimated(1000) is None


def test_a_flat_sequential_is_cut_into_segments() -> None:
    """Modules without parts give their results to the next one: a checkpoint of one of them frees nothing."""
    parts = tuple(SequencePart(saved_bytes=100) for _ in range(8))
    uses = (
        ModuleUse(root=0, path="", class_name="Sequential", saved_bytes=800, has_parts=True, parts=parts),
        *(ModuleUse(root=0, path=f"{n}", class_name="ReLU", saved_bytes=100) for n in range(8)),
    )
    found = first_estimate(PlanOutcome(plan=Plan(), peak_bytes=1000, alive={"saved": 800}), uses, 750)

    assert found is not None
    assert isinstance(found.change, CheckpointSegments)
    assert found.change.starts == (0, 4)
    assert found.peak_bytes == 1000 - (800 - 400 - 100)
