"""Plans on the terminal."""

import pytest
from inline_snapshot import snapshot
from msgspec.structs import replace

from gradinspect.analyses.memory.step import AliveRow, Origin
from gradinspect.analyses.planning.changes import (
    Checkpoint,
    DeleteVariable,
    HalfSaves,
    NamedPlace,
    Plan,
    ReleaseGradients,
)
from gradinspect.analyses.planning.estimate import Estimate
from gradinspect.analyses.planning.report import PlanReport, lowest_sentence, peak_of
from gradinspect.analyses.planning.search import FoundPlans, PlanOutcome
from gradinspect.analyses.planning.trial import Trial
from gradinspect.renderers.terminal.memory.plan import PlanPage

PLAIN = PlanOutcome(plan=Plan(), peak_bytes=4096, backward_bytes=3072, flops=100)
BEST = PlanOutcome(
    plan=Plan(changes=(Checkpoint(root=0, paths=("h.0", "h.1"), class_name="Block", num_alike=4),)),
    peak_bytes=2048,
    backward_bytes=1024,
    flops=116,
    at=Origin(step=2, phase="backward", node="MmBackward0", module="lm_head", line="model.py:88"),
)


def test_the_accelerator_of_a_peak_is_named() -> None:
    """Another one may be the fullest under a plan; the CPU needs no name."""
    other = replace(BEST, on="cuda:1")
    search = FoundPlans(limit=3000, plain=replace(PLAIN, on="cuda:0"), fitting=(other,), lowest=other, num_runs=2)
    roots = (NamedPlace(name="net", after="train.py:12", code="net = GPT()", indent=0),)
    report = PlanReport(
        source="train.py", torch_version="2.13", search=search, roots=roots, notes=(), not_counted=("x",)
    )
    text = " ".join(" ".join(line.plain for line in PlanPage(width=80).lines(report)).split())

    assert text.startswith("It fits with a change: peak 2.0 KiB on cuda:1 instead of 4.0 KiB on cuda:0, limit 2.9 KiB")
    assert lowest_sentence(report).startswith("No plan tried goes below 2.0 KiB on cuda:1, the limit is 2.9 KiB: ")
    assert peak_of(replace(BEST, on="cpu"), 2**20) == "2.0 KiB"


def page(limit: int, *, measured: int | None = None, bit_equal: bool | None = True) -> str:
    """Write the page of a plan that may have been tried."""
    trial = None if measured is None else Trial(
        plain_peak_bytes=4096, measured_peak_bytes=measured, plain_seconds=(1.0, 1.0), seconds=(1.25, 1.5),
        bit_equal=bit_equal, num_compared=7, num_different=0 if bit_equal else 2, difference=1e-7,
    )  # fmt: skip
    search = FoundPlans(
        limit=limit, plain=PLAIN, fitting=(BEST,) if limit >= BEST.peak_bytes else (), lowest=BEST, num_runs=5
    )
    roots = (NamedPlace(name="self.net", after="train.py:12", code="self.net = GPT()", indent=8),)
    report = PlanReport(
        source="train.py", torch_version="2.13", search=search, roots=roots, notes=(), not_counted=("x",), trial=trial
    )
    return "\n".join(line.plain for line in PlanPage(width=80).lines(report))


def test_a_plan_that_fits_comes_with_its_code() -> None:
    """First what to do, with what it saves and costs; last the code, at the indentation of where it is pasted."""
    text = page(3000, measured=2048)

    assert text.startswith("It fits with a change: peak 2.0 KiB instead of 4.0 KiB, limit 2.9 KiB, train.py\n")
    assert (
        "\nsaves  2.0 KiB of the peak, 50%; 2.0 KiB less is alive as backward begins\n"
        "costs  16% more FLOPs; gradients stay bit-equal\ntried  peak 2.0 KiB"
    ) in text
    assert (
        "\nwhat to do\n  1  checkpoint h.0-1 Block ×2 of 4: paste the code below after train.py:12,\n"
        "     self.net = GPT()\n"
    ) in text
    assert "\ncode to paste after train.py:12\n\n        def checkpoint_modules(model, paths):\n" in text
    assert text.endswith('        checkpoint_modules(self.net, ["h.0", "h.1"])')
    assert "       a step took 1.25 to 1.5 s, a plain one 1 s, on this machine\n" in text
    assert "       7 gradients compared, all bit-equal to those of the plain run\n" in text


def test_what_changes_the_meaning_of_the_figures_is_above_them() -> None:
    """As what the step is, if the program makes none; what is not counted is below."""
    search = FoundPlans(limit=3000, plain=PLAIN, fitting=(BEST,), lowest=BEST, num_runs=5)
    report = PlanReport(
        source="a.py", torch_version="2.13", search=search, notes=("It is made up.",), not_counted=("x",),
        roots=(NamedPlace(name="net", after="a.py:12", code="net = GPT()", indent=0),),
    )  # fmt: skip
    lines = [line.plain for line in PlanPage(width=80).lines(report)]

    assert lines[1] == "  It is made up."
    assert lines.count("  It is made up.") == 1
    assert lines.index("Not counted: x.") > lines.index("what to do")


def test_where_nothing_fits_the_first_line_says_why() -> None:
    """What runs at the lowest peak, and where; the code of that plan is there all the same."""
    text = page(1000)

    assert text.startswith(
        "No plan tried goes below 2.0 KiB, the limit is 1000 B: the gradient of lm_head,\nmodel.py:88.\n"
    )
    assert "\nwhat comes closest\nsaves  2.0 KiB of the peak, 50%" in text
    assert 'checkpoint_modules(self.net, ["h.0", "h.1"])' in text
    assert "what to do" not in text


def test_a_search_that_was_cut_short_claims_no_more_than_it_has_tried() -> None:
    """And where nothing fits, what is there at the lowest peak is listed, the largest first, and the largest tensor."""
    made = Origin(step=2, phase="forward", op="aten.mm.default", line="model.py:80")
    largest = AliveRow(kind="saved", name="", num_bytes=1024, num_storages=1, made=made)
    lowest = replace(BEST, alive={"parameter": 512, "saved": 1536}, largest=largest)
    search = FoundPlans(limit=1000, plain=PLAIN, fitting=(), lowest=lowest, num_runs=5, is_cut=True)
    roots = (NamedPlace(name="net", after="train.py:12", code="net = GPT()", indent=0),)
    report = PlanReport(source="train.py", torch_version="2.13", search=search, roots=roots, notes=(), not_counted=())
    text = " ".join(" ".join(line.plain for line in PlanPage(width=80).lines(report)).split())

    assert text.startswith(
        "No plan was found in time; the lowest peak is 2.0 KiB, the limit is 1000 B: the gradient of lm_head, "
        "model.py:88"
    )
    assert (
        "At that moment there are: saved for backward 1.5 KiB, parameters 512 B. The largest tensor of the step: "
        "1.0 KiB, made by aten.mm.default, model.py:80. 4 plans tried in the time"
    ) in text
    assert "Tried: " not in text


@pytest.mark.parametrize(
    ("tried", "said"),
    [(("checkpoints", "deletions"), "Tried: checkpoints, deletions. Not"), ((), "There was nothing to try. Not")],
)
def test_what_was_tried_is_listed_where_nothing_fits(tried: tuple[str, ...], said: str) -> None:
    """And nothing else: what a program does not have was not tried."""
    search = FoundPlans(limit=1000, plain=PLAIN, fitting=(), lowest=PLAIN, num_runs=1, tried=tried)
    report = PlanReport(source="train.py", torch_version="2.13", search=search, roots=(), notes=(), not_counted=())
    text = " ".join(" ".join(line.plain for line in PlanPage(width=80).lines(report)).split())

    assert said in text


def test_what_was_measured_has_the_last_word() -> None:
    """Scratch memory of kernels may be more than what was left."""
    text = page(2048, measured=2100)

    assert text.startswith("It should fit with a change, but what was measured does not: limit 2.0 KiB,\n")
    assert "52 B above the limit" in text
    assert "--fit 1996" in text


def test_gradients_that_differ_are_counted() -> None:
    """And where two plain runs differ, nothing is claimed."""
    differ = " ".join(page(3000, measured=2048, bit_equal=False).split())

    assert "2 of 7 gradients differ from those of the plain run, all together by about" in differ
    assert "gradients cannot be compared: two plain runs differ" in page(3000, measured=2048, bit_equal=None)


def table(*plans: PlanOutcome) -> str:
    """Write the rows of plans that fit."""
    search = FoundPlans(limit=3000, plain=PLAIN, fitting=plans, lowest=plans[-1], num_runs=5)
    report = PlanReport(
        source="a.py", torch_version="2.13", search=search, roots=(NamedPlace(name="net"),), notes=(), not_counted=()
    )
    text = "\n".join(line.plain for line in PlanPage(width=80).lines(report))
    return text[text.index("        peak ") :].partition("\n\n")[0] if "        peak " in text else ""


def test_what_all_plans_change_is_said_once() -> None:
    """And a plan that changes nothing more says so; a single plan, which is above the table, is not listed again."""
    release = ReleaseGradients(line="train.py:9", code="opt.zero_grad()")
    half = HalfSaves(root=0, paths=("head",), class_name="Linear", num_alike=1)
    plans = [replace(BEST, plan=Plan(changes=(release, *changes))) for changes in ((), BEST.plan.changes, (half,))]

    assert table(plans[1]) == ""
    assert table(*plans) == snapshot("""\
        peak   FLOPs  changes  gradients  plan
     4.0 KiB   ×1.00        0             no change
                                          each of these: free gradients right
                                          after the optimizer's step
     2.0 KiB   ×1.16        1  bit-equal  nothing more
     2.0 KiB   ×1.16        3  bit-equal  checkpoint h.0-1 Block ×2 of 4
     2.0 KiB   ×1.16        2  bfloat16   hold what head Linear saves as
                                          bfloat16\
""")


def test_a_long_line_of_the_program_is_cut() -> None:
    """Its place and what to write stay whole."""
    long = DeleteVariable(name="out", file="train.py", line=12, indent=4, code=f"loss = f({'out, ' * 99})", num_bytes=9)
    plan = replace(BEST, plan=Plan(changes=(long,)))
    search = FoundPlans(limit=3000, plain=PLAIN, fitting=(plan,), lowest=plan, num_runs=5)
    report = PlanReport(source="a.py", torch_version="2.13", search=search, roots=(), notes=(), not_counted=())
    lines = [line.plain for line in PlanPage(width=80).lines(report)]
    step = lines[lines.index("what to do") + 1 :][:2]

    assert step[0].startswith("  1  train.py:12, loss = f(out, out")
    assert step[1].endswith("write del out after it")


def test_where_no_plan_was_tried_in_time_the_estimate_is_there() -> None:
    """A short budget has an answer, too; once a plan was run, it is the answer."""

    def page_after(num_runs: int) -> str:
        search = FoundPlans(limit=3000, plain=PLAIN, fitting=(), lowest=PLAIN, num_runs=num_runs, is_cut=True)
        (change,) = BEST.plan.changes
        assert isinstance(change, Checkpoint)
        report = PlanReport(
            source="a.py", torch_version="2.13", search=search, roots=(), notes=(), not_counted=(),
            first=Estimate(change, 2048),
        )  # fmt: skip
        return " ".join(" ".join(line.plain for line in PlanPage(width=80).lines(report)).split())

    said = "An estimate, not run: 2.0 KiB with a change, checkpoint h.0-1 Block x2 of 4."

    assert f"with more, a better one may be found. {said}" in page_after(1)
    assert said not in page_after(2)
