"""The table of options on how to run a program."""

import inspect

from gradinspect.cli.options import request
from gradinspect.cli.verbs import VERBS


def test_each_row_is_about_an_option_and_verbs_that_exist() -> None:
    """A misspelled one would take nothing away."""
    rows = request._OPTIONS
    parameters = inspect.signature(request._read_request).parameters

    assert set(parameters) - {"context", "source"} == set(rows)
    assert {verb for row in rows.values() for verb in row.not_of} <= set(VERBS)
