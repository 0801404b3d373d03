"""What a user may name, and what is said when it is not there."""

from pathlib import Path

import pytest

from gradinspect.errors import GradInspectError
from gradinspect.source import CaptureFile, Expression, InputSpec, Script, parse_input, parse_source


def test_each_kind_of_source_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script, an expression in a script or a module, and a capture file."""
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "run.json", "run.json.gz"):
        Path(name).touch()

    assert parse_source("train.py") == Script(Path("train.py"))
    assert parse_source("train.py:model(x)") == Expression("train.py", "model(x)")
    assert parse_source("pkg.mod:build()[1:2]") == Expression("pkg.mod", "build()[1:2]")
    assert parse_source("run.json") == CaptureFile(Path("run.json"))
    assert parse_source("run.json.gz") == CaptureFile(Path("run.json.gz"))


def test_a_missing_script_suggests_its_neighbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A typing slip costs one look."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()

    with pytest.raises(GradInspectError, match=r"The file 'trian.py' does not exist\. Did you mean 'train.py'\?"):
        parse_source("trian.py")


@pytest.mark.parametrize("address", ["https://example.com/train.py", "file:///tmp/train.py", "s3://runs/run.json"])
def test_an_address_is_no_file(address: str) -> None:
    """Nor an expression in a module that is called as its protocol."""
    with pytest.raises(
        GradInspectError, match=f"^'{address}' is an address, not a file. Download it, and give the file"
    ):
        parse_source(address)


@pytest.mark.parametrize("target", ["train.py", "nowhere.py"])
def test_a_link_that_leads_nowhere_is_no_suggestion(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither for itself nor for a name like its own."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").symlink_to(target)

    with pytest.raises(GradInspectError, match=r"'train.py' is a link that leads to no file\."):
        parse_source("train.py")
    with pytest.raises(GradInspectError, match=r"The file 'trian.py' does not exist\. Give"):
        parse_source("trian.py")


@pytest.mark.parametrize("name", ["gan.py", "raises.py", "notes.txt"])
def test_what_all_scripts_end_with_makes_none_alike(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is called otherwise is not suggested."""
    monkeypatch.chdir(tmp_path)
    Path(name).touch()

    with pytest.raises(GradInspectError, match="Give a script"):
        parse_source("trian.py")


@pytest.mark.parametrize("text", ["2x3x8x8", "2x128:int64", "mask=2x128:bool", ":float64", "7", "{batch}x3"])
def test_an_input_is_written_as_it_is_read(text: str) -> None:
    """So that a command can be pasted."""
    assert str(parse_input(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2x3x8x8", InputSpec(shape=(2, 3, 8, 8))),
        ("2x128:int64", InputSpec(shape=(2, 128), dtype="int64")),
        ("mask=2x128:bool", InputSpec(shape=(2, 128), dtype="bool", name="mask")),
        (":float64", InputSpec(shape=(), dtype="float64")),
        ("7", InputSpec(shape=(7,))),
    ],
)
def test_inputs_are_read(text: str, expected: InputSpec) -> None:
    """Shape, dtype and keyword, each optional where it can be."""
    assert expected == parse_input(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2x", "The input '2x' has an empty size"),
        ("", "The input '' is not a shape"),
        ("2,3", "The input '2,3' is not a shape"),
        ("2x3:flaot32", "unknown dtype 'flaot32'. Did you mean float32?"),
    ],
)
def test_wrong_inputs_are_quoted(text: str, message: str) -> None:
    """The sentence holds the wrong thing."""
    with pytest.raises(GradInspectError) as caught:
        parse_input(text)

    assert message in str(caught.value)


def test_a_size_that_is_searched_for_has_a_name() -> None:
    """Its number is put in its place; an x in its name separates nothing."""
    spec = parse_input("mask={max_len}x3x{max_len}:bool")

    assert spec.shape == (1, 3, 1)
    assert spec.with_size("other", 7) == spec
    assert spec.with_size("max_len", 7) == InputSpec(
        shape=(7, 3, 7), dtype="bool", name="mask", size_names=("", "", "")
    )
