"""What is noted of whole programs, in this process: each is a mistake of another kind."""

import math
import runpy
import shutil
import warnings
from pathlib import Path

import pytest

from gradinspect.api.live.checking import check_once
from gradinspect.checks.evidence import watch_window
from gradinspect.checks.findings import Findings

pytestmark = pytest.mark.slow

BROKEN = Path(__file__).parents[2] / "check_programs" / "broken"
PROGRAMS = {
    "hidden_state": [
        "GI101 saved=10 written=10 backward=11 h (saved at version 0, now 3) h (saved at version 1, now 3) h "
        "(saved at version 2, now 3)"
    ],
    "gan": [
        "GI102 saved=13 written=18 backward=20 D.0.weight (saved at version 1, now 2) D.2.weight (saved at "
        "version 1, now 2)"
    ],
    "data_write": ["GI103 saved=6 written=7 backward=8 w"],
    "numpy_shared": ["GI103 saved=11 shared=12 backward=15 h"],
    "fused_step": ["GI103 saved=11 written=13 backward=14 2.weight"],
    "frozen_norm": ["GI103 saved=10 written=12 backward=13 running_mean running_var"],
    "checkpoint_branch": ["GI104 decision=15 first=16 again=17 backward=21"],
    "cut_no_grad": [
        "GI301 read=13 detached=12 used=17 backward=19 step=20 body.0.weight body.0.bias body.2.weight body.2.bias"
    ],
    "cut_reentrant": ["GI301 read=11 detached=11 used=12 backward=14 step=15 block.0.weight block.0.bias"],
    "cut_hypernet": ["GI301 read=11 detached=11 used=12 backward=14 step=15 hyper.weight hyper.bias"],
    "refused_frozen": ["GI302 made=11 frozen=10 backward=12 0.weight 0.bias 2.weight 2.bias"],
    "refused_accuracy": ["GI302 read=9 detached=9 used=10 backward=11 weight bias"],
    "unused_head": ["GI303 read=12 last=12 backward=15 step=16 optimizer=8 classes.weight classes.bias"],
    "unread_layer": ["GI304 made=10 backward=23 step=24 optimizer=19 fc2.weight fc2.bias"],
    "nonleaf_scaled": ["GI305 made=6 backward=8 read=9 w"],
    "constant_weighted": ["GI306 detached=11 used=12 backward=14"],
    "dropped_clamp": ["GI307 called=15 backward=28", "GI307 called=17 backward=28"],
    "unheld_dict": [
        "GI361 optimizer=28 made=11 backward=32 Sequential.0.weight Sequential.0.bias Sequential.2.weight "
        "Sequential.2.bias Sequential#2.0.weight Sequential#2.0.bias Sequential#2.2.weight Sequential#2.2.bias"
    ],
    "unheld_encoder": ["GI361 optimizer=9 backward=14 encoder.0.weight encoder.0.bias"],
    "added_in_closure": ["GI362 backward=14 step=20 weight bias"],
    "cleared_between": ["GI363 backward=12 cleared=13 step=14 0.weight 0.bias 2.weight 2.bias"],
    "cleared_zeros": [
        "GI363 backward=13 cleared=15 step=16 net.weight_ih_l0 net.weight_hh_l0 net.bias_ih_l0 net.bias_hh_l0 "
        "out.weight out.bias"
    ],
    "clip_before": ["GI364 clipped=15 backward=16 step=17"],
    "never_stepped_critic": ["GI365 optimizer=9 backward=14 cleared=13"],
    "scheduled_first": ["GI367 scheduler=11 step=16"],
    "scaled_step": ["GI369 backward=13 step=14 0.weight 0.bias 2.weight 2.bias"],
    "eval_baseline": ["GI371 eval=20 backward=31 step=32 dropout"],
    "tied_wrapped": ["GI375 shared=13 step=26 table.weight scores.weight"],
    "frozen_and_moving": ["GI376 frozen=11 step=15 trunk.weight trunk.bias"],
    "nan_then_weights": [
        "GI501 made=12 backward=15 model.bias model.weight",
        "GI363 cleared=14 backward=18 step=16 other.bias model.bias other.weight model.weight",
    ],
    "slip_columns": ["GI701 broadcast=12 reduced=12 backward=15", "GI701 broadcast=13 reduced=13 backward=15"],
    "grown_losses": ["GI801 stored=15 backward=13 losses[*]"],
    "unheld_lazy": ["GI361 optimizer=22 added=16 backward=25 0.proj.weight 0.proj.bias"],
    "pretrained_frozen": [
        "GI379 frozen=31 copied=32 optimizer=33 step=38 encoder.0.weight encoder.0.bias encoder.2.weight encoder.2.bias"
    ],
    "pretrained_rate_zero": ["GI368 optimizer=29 step=34"],
    "made_anew": ["GI366 optimizer=11 step=15"],
    "loaded_prefix": ["GI373 loaded=12"],
    "shared_blocks": ["GI372 made=11 backward=26 layers"],
    "hook_loses_features": ["GI803 hooked=17 backward=20"],
    "cut_item": ["GI301 read=11 detached=11 used=12 backward=15 step=16 gate.weight gate.bias"],
    "second_bptt": ["GI401 old=10 new=10 freed=12 backward=12 TanhBackward0 AddmmBackward0"],
    "grown_gradients": ["GI801 made=13 backward=13"],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mistake_is_found_with_its_lines(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every finding, with all of its lines and all tensors that it is about."""
    found = checked(name, tmp_path, monkeypatch)

    assert [
        " ".join((one.code, *(f"{place.role}={place.line}" for place in one.places), *one.subjects))
        for one in found.findings
    ] == PROGRAMS[name]
    assert (found.source, found.rank, found.num_ranks) == (f"{name}.py", 0, 1)
    assert f"{name}.py" in [file.name for file in found.files]


def checked(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Findings:
    """Check a program in a folder of its own."""
    script = folder / f"{name}.py"
    shutil.copy(BROKEN / script.name, script)
    monkeypatch.chdir(folder)
    # what is found does not depend on what else the process holds
    for limit in ("MOST_SECONDS", "MOST_WAITING"):
        monkeypatch.setattr(watch_window, limit, math.inf)

    def run() -> bool:
        try:
            runpy.run_path(str(script), run_name="__main__")
        except RuntimeError:  # as backward does that the findings say will fail
            return False
        return True

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the program does
        found = check_once(run, script.name)
    assert found is not None
    return found
