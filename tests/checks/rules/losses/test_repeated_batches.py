"""What is said of a batch that is drawn again and again, on facts made by hand."""

import pytest

from gradinspect.checks.facts.values import RepeatedBatch
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame


@pytest.mark.parametrize(
    ("code", "loader"),
    [("x, y = next(iter(self.loader))", "self.loader"), ("x = next(iter(make_loader(3)))", "the loader")],
)
def test_the_loader_and_its_line_are_named(code: str, loader: str) -> None:
    """With how many batches are never seen."""
    (finding,) = findings_on(RepeatedBatch(num_times=6, num_batches=40, drawn=Frame(file="a.py", line=3, code=code)))

    assert finding.code == "GI389"
    assert finding.text.startswith(f"a.py:3 begins {loader} anew each time: in each of 6 times it drew the first of 40")
    assert finding.remedy.startswith(f"Go through all of {loader} instead of a.py:3")
