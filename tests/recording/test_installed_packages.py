"""Which files belong to installed packages, wherever these were put."""

import importlib
from pathlib import Path

import pytest

from gradinspect.recording.frames import is_own_file, short_file_name
from gradinspect.recording.installed_packages import folder_of_packages, package_of


def install(folder: Path, name: str, *files: str) -> None:
    """Put files into a folder as `pip install --target` does, with a list of them."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("", encoding="utf-8")
    lines = [f"{file},sha256=x,0\n" for file in (*files, f"{info.name}/RECORD")]
    (info / "RECORD").write_text("".join(lines), encoding="utf-8")


@pytest.mark.parametrize(
    ("module", "file", "package"),
    [
        ("einopz.layers.torch", "einopz/layers/torch.py", "einopz"),
        ("spaced.part.inner", "spaced/part/inner.py", "spaced"),  # without an __init__.py
        ("single", "single.py", "single.py"),
        ("train", "train.py", None),
        ("own.model", "own/model.py", None),
        ("singleton", "singleton.py", None),
        ("einopz_more", "einopz_more/__init__.py", None),
    ],
)
def test_packages_in_any_folder(
    module: str, file: str, package: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an installer has listed is a package's, what lies beside it is the program's."""
    install(tmp_path, "Einopz", "einopz/__init__.py", "einopz/layers/__init__.py", "einopz/layers/torch.py")
    install(tmp_path, "others", "spaced/part/inner.py", "single.py")
    (tmp_path / "nothing-1.0.dist-info").mkdir()  # lists nothing
    for name in ("train.py", "own/__init__.py", "own/model.py", "singleton.py", "einopz_more/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    path = str(importlib.import_module(module).__file__)

    assert path == str(tmp_path / file)
    assert package_of(path) == package
    assert is_own_file(path) == (package is None)
    assert short_file_name(path, tmp_path / "elsewhere") == (file if package else "/".join(Path(path).parts[-2:]))


def test_a_folder_that_nobody_imports_from_is_not_read(tmp_path: Path) -> None:
    """A file in it is the program's own, as one that was run by its name."""
    install(tmp_path, "lone", "lone/x.py")

    assert folder_of_packages(str(tmp_path / "lone" / "x.py")) is None


@pytest.mark.parametrize("file", ["", "x.py", "<stdin>", "/", "/x.py", "a/b.py", "\udc80/x.py", "/\udc80/x.py"])
def test_names_that_are_no_path_of_a_package(file: str) -> None:
    """They are the program's own."""
    assert package_of(file) is None


def test_what_imports_was_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known of where packages are then, and nothing fails."""
    monkeypatch.setattr("sys.path_importer_cache", None)

    assert folder_of_packages(str(tmp_path / "some.py")) is None
