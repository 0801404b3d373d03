"""The last step of padded rows, as a finding."""

import pytest

from gradinspect.checks.facts.values import PaddedEnds
from gradinspect.checks.rules.axes.padded_ends import padded_ends_findings
from gradinspect.graph import Frame

RAN = Frame(file="read.py", line=3, code="out, _ = self.rnn(x)")
USED = Frame(file="read.py", line=4, code="return self.head(out[:, -1])")


@pytest.mark.parametrize(
    ("is_batch_first", "taken"),
    [(True, "out[torch.arange(len(out)), lengths - 1]"), (False, "out[lengths - 1, torch.arange(out.shape[1])]")],
)
def test_what_to_take_instead_is_written_for_the_axes_of_the_rnn(is_batch_first: bool, taken: str) -> None:
    """With how many rows it is about."""
    (found,) = padded_ends_findings(
        PaddedEnds(
            op="GRU", padding=0, is_batch_first=is_batch_first, num_padded=1200, num_rows=1600, ran=RAN, used=USED
        )
    )

    assert "1,200 of 1,600 rows that GRU got at read.py:3 end in padding, token 0." in found.text
    assert found.remedy.startswith(f"At read.py:4, take the step of the last token of each row: {taken}, where")
    assert [(place.role, place.line) for place in found.places] == [("ran", 3), ("taken", 4)]


def test_one_line_is_one_place() -> None:
    """`return self.head(self.rnn(x)[0][:, -1])`."""
    fact = PaddedEnds(op="GRU", padding=0, is_batch_first=True, num_padded=2, num_rows=4, ran=USED, used=USED)

    assert [place.role for found in padded_ends_findings(fact) for place in found.places] == ["taken"]
