"""The catalogue knows the generated Backward classes, is kept between runs, and never needs torch itself."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest
from factories import graph, op
from msgspec.structs import replace

from gradinspect import catalog
from gradinspect.catalog import Catalog, Entry, Sources, load_catalog
from gradinspect.errors import GradInspectError
from gradinspect.graph import argument_name


@pytest.fixture(scope="module")
def entries() -> Mapping[str, Entry]:
    """Make the catalogue of the installed torch once."""
    return catalog.parse_catalog(catalog.find_sources(), "2.13.0").entries


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the test a cache folder of its own, and a process that has loaded nothing yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    load_catalog.cache_clear()
    yield tmp_path / "gradinspect"
    load_catalog.cache_clear()


def resolve(entry: Entry, num_places: int) -> list[str | None]:
    """Name every place of a node with so many of them."""
    record = graph(op(entry.name, *[None] * num_places), arguments={entry.name: entry.arguments})
    return [argument_name(record, record.nodes[0], position) for position in range(num_places)]


@pytest.mark.slow
def test_an_entry_tells_signature_places_formulas_and_what_is_saved(entries: dict[str, Entry]) -> None:
    """What a reader wants to know about a class is in its entry, in the order of the schema."""
    entry = entries["MaxBackward0"]

    assert entry.signature == "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"
    assert entry.arguments == ("self",)
    assert [formula.inputs for formula in entry.formulas] == [("self",)]
    assert entry.formulas[0].text.startswith("value_selecting_reduction_backward_symint(grad, dim, indices,")
    assert entry.saved == ("dim", "keepdim", "self_sym_sizes", "indices")
    assert entry.outputs == ("indices",)


def test_formulas_are_quoted_as_they_were_written(entries: dict[str, Entry]) -> None:
    """A formula speaks of `self.scalar_type()`, not of the variable that the generator saves it in."""
    formulas = entries["MulBackward0"].formulas

    assert [(formula.inputs, formula.text) for formula in formulas] == [
        (("self",), "mul_tensor_backward(grad, other, self.scalar_type())"),
        (("other",), "mul_tensor_backward(grad, self, other.scalar_type())"),
    ]


def test_arguments_without_a_derivative_have_no_place(entries: dict[str, Entry]) -> None:
    """The index of a gather is a tensor, but not one that a gradient goes to."""
    entry = entries["GatherBackward0"]

    assert entry.arguments == ("self",)
    assert entry.not_differentiable == ("index",)


def test_each_fact_of_an_entry_agrees_with_the_others(entries: dict[str, Entry]) -> None:
    """Formulas are for arguments that have a place, outputs are saved, and nothing is in two groups at once."""
    for entry in entries.values():
        places = {name.rstrip("*").partition("[")[0] for name in entry.arguments}
        inputs = [name for formula in entry.formulas for name in formula.inputs]

        assert places == set(inputs), entry.name
        assert len(inputs) == len(set(inputs)), entry.name
        assert not places & set(entry.not_differentiable), entry.name
        assert set(entry.outputs) <= set(entry.saved), entry.name
        assert all(formula.text and formula.text.isprintable() for formula in entry.formulas), entry.name


def test_a_list_takes_the_places_that_are_left(entries: dict[str, Entry]) -> None:
    """The weights of an RNN stand between single tensors."""
    names = resolve(entries["CudnnRnnBackward0"], 6)

    assert names == ["input", "weight[0]", "weight[1]", "weight[2]", "hx", "cx"]


def test_two_lists_of_one_foreach_op_are_equally_long(entries: dict[str, Entry]) -> None:
    """A foreach op pairs its lists, so half of the places belong to each."""
    names = resolve(entries["ForeachAddBackward0List"], 4)

    assert names == ["self[0]", "self[1]", "other[0]", "other[1]"]


def test_two_lists_of_different_lengths_are_told_apart(entries: dict[str, Entry]) -> None:
    """An LSTM has two hidden states, however many weights it has."""
    names = resolve(entries["LstmMpsBackward0"], 7)

    assert names == ["input", "hx[0]", "hx[1]", "params[0]", "params[1]", "params[2]", "params[3]"]


def test_two_lists_of_unknown_lengths_stay_without_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """No name is better than a wrong one."""
    monkeypatch.setattr(catalog, "KNOWN_LENGTHS", {})
    entry = catalog.parse_catalog(catalog.find_sources(), "2.13.0").entries["LstmMpsBackward0"]

    assert entry.arguments == ()
    assert resolve(entry, 7) == [None] * 7


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2], ids=["made", "from the cache"])
def test_torch_is_not_imported(tmp_path: Path, times: int) -> None:
    """The catalogue is plain text about torch, read without it."""
    code = "import sys; from gradinspect.catalog import load_catalog; load_catalog(); print('torch' in sys.modules)"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    for _ in range(times):
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300, check=True
        )

        assert done.stdout == "False\n"


def test_a_cached_catalogue_is_read_and_not_made_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run does not parse."""
    made = load_catalog()
    load_catalog.cache_clear()
    monkeypatch.setattr(catalog, "parse_catalog", None)

    assert load_catalog() == made
    assert load_catalog() is not made
    assert [file.suffix for file in cache.iterdir()] == [".msgpack"]


@pytest.mark.slow
@pytest.mark.parametrize("damage", [b"", b"\xc1", msgspec.msgpack.encode(["2.13.0"]), None])
def test_a_damaged_cache_is_made_again(cache: Path, damage: bytes | None) -> None:
    """An empty, foreign or cut file is replaced without a word."""
    made = load_catalog()
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] if damage is None else damage)
    load_catalog.cache_clear()

    assert load_catalog() == made
    assert file.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where the folder should be is no reason to fail."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    load_catalog.cache_clear()
    try:
        assert "AddBackward0" in load_catalog().entries
    finally:
        load_catalog.cache_clear()

    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """The half-made file goes when it cannot get its name."""
    target = tmp_path / "catalog.msgpack"
    target.mkdir()

    catalog.write_cached(target, Catalog(torch_version="2.13.0", entries={}))

    assert list(tmp_path.iterdir()) == [target]


def test_a_rebuilt_torch_of_the_same_version_has_another_file(tmp_path: Path) -> None:
    """A local build changes the sources and keeps the version."""
    sources = Sources(*(Path(shutil.copy(file, tmp_path)) for file in catalog.find_sources()))
    before = catalog.cache_file(tmp_path, sources, "2.13.0")
    sources.derivatives.write_bytes(sources.derivatives.read_bytes() + b"\n# changed\n")

    assert catalog.cache_file(tmp_path, sources, "2.13.0") != before
    assert catalog.cache_file(tmp_path, sources, "2.14.0").name.startswith("catalog-2.14.0-")


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "/home/ada/.cache/gradinspect"),
        ("linux", {"XDG_CACHE_HOME": "/scratch"}, "/scratch/gradinspect"),
        ("linux", {"XDG_CACHE_HOME": "scratch"}, "/home/ada/.cache/gradinspect"),
        ("linux", {"LOCALAPPDATA": "/local"}, "/home/ada/.cache/gradinspect"),
        ("darwin", {}, "/home/ada/Library/Caches/gradinspect"),
        ("darwin", {"XDG_CACHE_HOME": "/scratch"}, "/scratch/gradinspect"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/gradinspect/Cache"),
        ("win32", {}, "/home/ada/.cache/gradinspect"),
    ],
)
def test_the_cache_is_where_the_platform_keeps_caches(
    platform: str, environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XDG_CACHE_HOME wins where it is an absolute path; each platform has its own place otherwise."""
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ada"))

    assert catalog.cache_folder(platform, environment) == Path(expected)


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container the user may have no home at all: the catalogue is made each time."""

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    load_catalog.cache_clear()

    assert catalog.cache_folder("linux", {}) is None
    assert "AddBackward0" in load_catalog().entries
    load_catalog.cache_clear()


def test_without_torch_the_user_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to read where torchgen is not installed."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    with pytest.raises(GradInspectError, match="PyTorch is not installed") as caught:
        catalog.find_sources()

    assert caught.value.hint == "Install it: pip install torch"


def test_a_torch_without_its_sources_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some distributions leave the packaged files out."""

    class Spec:
        submodule_search_locations = (str(tmp_path),)

    monkeypatch.setattr("importlib.util.find_spec", lambda _name: Spec)

    with pytest.raises(GradInspectError, match=r'has no "derivatives\.yaml"'):
        catalog.find_sources()


def test_an_entry_is_read_from_the_cache_when_it_is_asked_for(tmp_path: Path) -> None:
    """Once; all of them are those that were made."""
    file = tmp_path / "catalog.msgpack"
    one = Entry("AddBackward0", "add(Tensor self) -> Tensor", ("self",), (), (), (), ())
    other = replace(one, name="MulBackward0")
    catalog.write_cached(file, Catalog(torch_version="2.13.0", entries={entry.name: entry for entry in (one, other)}))
    read = catalog.read_cached(file)

    assert read is not None
    assert type(read.entries) is not dict
    assert read.entries["AddBackward0"] is read.entries["AddBackward0"]
    assert ("AddBackward0" in read.entries, "DivBackward0" in read.entries, len(read.entries)) == (True, False, 2)
    assert list(read.entries.values()) == [one, other]


def test_one_changed_byte_is_noticed(tmp_path: Path) -> None:
    """A catalogue that was damaged on the disk is made again, also where what is left can be read."""
    file = tmp_path / "catalog.msgpack"
    whole = Catalog(torch_version="2.13.0", entries={}, operators={"mul": "formula"})
    catalog.write_cached(file, whole)
    content = file.read_bytes()

    assert whole == catalog.read_cached(file)

    for position in range(len(content)):
        file.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        assert catalog.read_cached(file) is None
