"""Cells of notebooks as files."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from gradinspect.recording.notebook_cells import cell_name

CELL = "/tmp/ipykernel_123/456.py"  # noqa: S108  # as IPython names it


def ipython(format_code_name: Any) -> SimpleNamespace:
    """Make an IPython whose compiler names cells."""
    compiler = SimpleNamespace(format_code_name=format_code_name)
    return SimpleNamespace(get_ipython=lambda: SimpleNamespace(compile=compiler))


@pytest.mark.parametrize(
    ("file", "format_code_name", "name"),
    [
        ("<cell 3>", None, "cell 3"),
        ("<cell 3> ", None, None),
        (CELL, lambda file: ("Cell", "In[7]" if file == CELL else "In[0]"), "cell 7"),
        ("<ipython-input-1-abc>", lambda _: ("Cell", "In[12]"), "cell 12"),
        (CELL, lambda _: ("File", "no number"), None),
        (CELL, lambda _: None, None),  # a file that IPython does not know
        ("/home/me/train.py", lambda _: ("Cell", "In[7]"), None),
    ],
)
def test_a_cell_has_its_number(
    file: str, format_code_name: Any, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours by their own names, and those that IPython knows; other files are none."""
    monkeypatch.setitem(sys.modules, "IPython", ipython(format_code_name))

    assert cell_name(file) == name


def test_without_ipython_its_files_are_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not imported for that."""
    monkeypatch.delitem(sys.modules, "IPython", raising=False)

    assert cell_name(CELL) is None
    assert "IPython" not in sys.modules
