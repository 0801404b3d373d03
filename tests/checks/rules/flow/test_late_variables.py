"""Functions that share the variable of a loop, as findings."""

from gradinspect.checks.facts.values import LateVariable
from gradinspect.checks.rules.flow.late_variables import late_findings
from gradinspect.graph import Frame

MADE = Frame(file="train.py", line=3, code="fns = [lambda x: x * ws[i] for i in range(3)]")


def test_the_line_of_the_functions_is_named() -> None:
    """With the variable that each has to keep."""
    (found,) = late_findings(LateVariable(variable="i", count=3, names=("ws[0]", "ws[1]"), made=MADE))

    assert found.text.startswith("The 3 functions that train.py:3 makes look i up when they are called")
    assert found.text.endswith("No gradient reaches ws[0] and ws[1].")
    assert found.remedy == "At train.py:3, keep the value for each function, as a default: i=i."
    assert found.subjects == ("ws[0]", "ws[1]")
