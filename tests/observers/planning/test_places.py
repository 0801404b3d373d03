"""Where code that needs a model can be pasted."""

from pathlib import Path

import pytest

from gradinspect.observers.planning.places import Called, place_of, ready_after

SCRIPT = """\
def train(model):
    for _ in range(3):
        model(1)
class Trainer:
    def run(self):
        self.net = build()
        self.net(1)
    def evaluate(self):
        self.net(2)
model = build()
if parallel:
    model = wrap(model)
other = 1
for _ in range(3):
    with context:
        model(1)
    made = build()
    made(1)
"""


@pytest.mark.parametrize(
    ("line", "name", "after"),
    [(16, "model", (11, 12, 0)), (7, "self.net", (6, 6, 8)), (9, "self.net", (6, 6, 8)), (18, "made", (17, 17, 4)),
     (3, "model", None)],
    ids=["after a branch that may not run", "in a method", "in another method", "in the loop that makes it",
         "an argument"],
)  # fmt: skip
def test_a_model_is_ready_after_the_last_statement_that_assigns_it(
    line: int, name: str, after: tuple[int, int, int] | None, tmp_path: Path
) -> None:
    """In a block that the call is in too: its first and last line, and its indentation."""
    (tmp_path / "train.py").write_text(SCRIPT)
    found = ready_after(Called(str(tmp_path / "train.py"), line, name))

    assert after == (None if found is None else (found.lineno, found.end_lineno, found.col_offset))


def test_code_is_pasted_at_the_indentation_of_the_line(tmp_path: Path) -> None:
    """Not of the statement: a line may hold several, the one that makes the model behind others."""
    file = tmp_path / "train.py"
    file.write_text("def main():\n    seed(0); net = build(); opt = make(net)\n    net(1)\n")
    place = place_of([Called(str(file), 3, "net")], tmp_path, "model")

    assert (place.after, place.indent) == ("train.py:2", 4)
