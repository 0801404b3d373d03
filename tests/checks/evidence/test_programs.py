"""What is noted of whole programs, in this process: each is a mistake of another kind."""

import runpy
import shutil
import warnings
from pathlib import Path

import pytest
from check_expectations import declared_findings

from gradinspect.live.checking import check_once

BROKEN = Path(__file__).parents[2] / "check_programs" / "broken"
PROGRAMS = (
    "hidden_state", "gan", "data_write", "numpy_shared", "fused_step", "frozen_norm", "checkpoint_branch",
    "cut_no_grad", "cut_reentrant", "cut_hypernet", "refused_frozen", "refused_accuracy", "unused_head",
    "unread_layer", "nonleaf_scaled", "constant_weighted", "dropped_clamp", "unheld_dict", "unheld_encoder",
    "added_in_closure", "cleared_between", "cleared_zeros", "clip_before", "never_stepped_critic", "scheduled_first",
    "scaled_step", "eval_loaded", "tied_wrapped", "frozen_and_moving", "nan_then_weights", "slip_columns",
    "grown_losses", "grown_gradients",
)  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mistake_is_found_with_its_lines(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finding that a program declares, with every line it names, and no other finding."""
    script = tmp_path / f"{name}.py"
    shutil.copy(BROKEN / script.name, script)
    monkeypatch.chdir(tmp_path)

    def run() -> bool:
        try:
            runpy.run_path(str(script), run_name="__main__")
        except RuntimeError:  # as backward does that the findings say will fail
            return False
        return True

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the program does
        found = check_once(run, script.name)
    findings = () if found is None else found.findings
    declared = declared_findings(script)
    lines = [{f"{place.role}={place.line}" for place in finding.places} for finding in findings]

    assert [finding.code for finding in findings] == [code for code, _ in declared]
    assert all(expected <= seen for (_, expected), seen in zip(declared, lines, strict=True))
