"""What a pyproject.toml says of `check`."""

from pathlib import Path

import pytest

from gradinspect.checks.settings import Settings, read_settings, selection_of
from gradinspect.checks.verdict import Selection
from gradinspect.errors import GradInspectError


def project(folder: Path, text: str) -> Path:
    """Write a pyproject.toml."""
    file = folder / "pyproject.toml"
    file.write_text(text)
    return file


def test_the_nearest_file_with_a_table_of_ours_counts(tmp_path: Path) -> None:
    """Those without are passed over; paths in it are relative to its folder; without any, nothing is set."""
    inner = tmp_path / "src" / "deep"
    inner.mkdir(parents=True)
    outer = project(tmp_path, '[tool.gradinspect]\nselect = ["GI1"]\nskip = []\nsteps = 4\nbaseline = "known.json"\n')
    project(tmp_path / "src", "[tool.other]\nx = 1\n")
    from_outer = read_settings(inner)
    nearer = project(inner, '[tool.gradinspect]\nskip = ["GI2", "GI3"]\n')

    assert from_outer == Settings(file=outer, select=("GI1",), steps=4, baseline=tmp_path / "known.json")
    assert read_settings(inner) == Settings(file=nearer, skip=("GI2", "GI3"))
    assert read_settings(tmp_path / "gone" / "deeper").file == outer


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('tool.gradinspect = "x"', "'[tool.gradinspect]' in '{file}' is not a table. Write its keys below a line"),
        ("[tool.gradinspect]\nselct = []", "'selct' in [tool.gradinspect] of '{file}' is not a known key. "
         "Closest match: select."),
        ("[tool.gradinspect]\nzzz = 1", "Known keys: select, skip, steps, baseline."),
        ('[tool.gradinspect]\nselect = "GI1"', "must be a list of codes, not 'GI1'. Correct it."),
        ("[tool.gradinspect]\nskip = [1]", "must be a list of codes, not [1]."),
        ("[tool.gradinspect]\nsteps = 0", "'steps' in [tool.gradinspect] of '{file}' must be a whole number of at "
         "least 1, not 0."),
        ("[tool.gradinspect]\nsteps = true", "must be a whole number of at least 1, not True."),
        ("[tool.gradinspect]\nsteps = 1.5", "must be a whole number of at least 1, not 1.5."),
        ('[tool.gradinspect]\nbaseline = ""', "must be the name of a file, not ''."),
        ('[tool.gradinspect]\nbaseline = "a\\u0000b"', "must be the name of a file"),
        ("[tool.gradinspect]\nbaseline = 3", "must be the name of a file, not 3."),
        ("[tool.gradinspect", "'{file}' is not valid TOML: "),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_file(text: str, sentence: str, tmp_path: Path) -> None:
    """One sentence with the key, what it must be, and what it is."""
    file = project(tmp_path, text)
    with pytest.raises(GradInspectError) as raised:
        read_settings(tmp_path)

    assert sentence.format(file=file) in str(raised.value)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a = " + b"[" * 5000])
def test_a_file_that_is_no_text_or_too_deep_is_an_error(content: bytes, tmp_path: Path) -> None:
    """Of ours, in one sentence."""
    (tmp_path / "pyproject.toml").write_bytes(content)

    with pytest.raises(GradInspectError, match="is not valid TOML"):
        read_settings(tmp_path)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """A folder of that name."""
    (tmp_path / "pyproject.toml").mkdir()

    with pytest.raises(GradInspectError, match="cannot be read"):
        read_settings(tmp_path)


def test_the_command_line_sets_select_and_skip_aside_and_adds_to_skip() -> None:
    """As NOTE [Which pyproject.toml] says; codes are read in any case, several in one word."""
    settings = Settings(file=Path("p.toml"), select=("GI1",), skip=("gi102",))

    assert selection_of(settings) == Selection(("GI1",), ("GI102",))
    assert selection_of(settings, skip=["GI101,gi4"]) == Selection(("GI1",), ("GI102", "GI101", "GI4"))
    assert selection_of(settings, ["GI3"], ["GI301"], gradcheck=True) == Selection(("GI3",), ("GI301",), gradcheck=True)


def test_an_unknown_code_is_named_with_where_it_stands() -> None:
    """In the file, or on the command line."""
    file = Path("p.toml")
    for key, settings in (
        ("select", Settings(file=file, select=("GI99",))),
        ("skip", Settings(file=file, skip=("GI99",))),
    ):
        with pytest.raises(GradInspectError, match=f"'{key}' in 'p.toml': No rule has the code 'GI99'"):
            selection_of(settings)
    with pytest.raises(GradInspectError, match=r"^No rule has the code 'GI99'"):
        selection_of(Settings(), skip=["GI99"])
