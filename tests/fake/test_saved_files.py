"""A program saves fake tensors and loads them again, and no file of its folder is changed."""

import io
import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from runs import gradinspect
from torch import nn

from gradinspect.fake.mode import FakeRun

SAVES = """
import gc, io, os, shutil, torch
gc.disable()
model = torch.nn.Linear(300, 3)
optimizer = torch.optim.Adam(model.parameters())
for step in range(4):
    optimizer.zero_grad()
    model(torch.randn(2, 300)).sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, "new.tmp")
    os.replace("new.tmp", "model.pt")
    shutil.copyfile("model.pt", "best.pt")
    loaded = torch.load("best.pt", map_location="cpu")
    model.load_state_dict(loaded["model"])
    assert step == loaded["step"]
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    copied = torch.load(file, weights_only=False)
    del loaded, copied
"""


@pytest.mark.slow
def test_files_of_a_training_loop_are_left_alone(tmp_path: Path) -> None:
    """The peak is that of the real program, in which the files are written."""
    program = tmp_path / "train.py"
    program.write_text(SAVES)
    (tmp_path / "model.pt").write_bytes(b"trained for days")
    fake = _peak(tmp_path)

    assert (tmp_path / "model.pt").read_bytes() == b"trained for days"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.pt", "train.py"]
    assert _peak(tmp_path, "--real") == fake


def _peak(folder: Path, *options: str) -> int:
    done = gradinspect("fit", "train.py", *options, "--format", "json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout)["peak_bytes"])


def test_an_object_comes_back_with_what_it_shared(tmp_path: Path) -> None:
    """Parameters stay parameters, tied ones stay tied, and views show the same memory."""
    with FakeRun(None):
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        model[1].weight = model[0].weight
        base = torch.zeros(6, 4)
        given = {"model": model, "base": base, "row": base[2], "empty": torch.empty(0, 3), "none": None}
        for file in (tmp_path / "saved.pt", str(tmp_path / "again.pt"), io.BytesIO(b"earlier")):
            at = file.seek(0, 2) if isinstance(file, io.BytesIO) else 0
            torch.save(given, file)
            if isinstance(file, io.BytesIO):
                file.seek(at)
            found = torch.load(file, weights_only=False)

            assert isinstance(found["model"][0].weight, nn.Parameter)
            assert found["model"][0].weight is found["model"][1].weight is not model[0].weight
            assert found["row"]._base is None  # as a real one that was loaded
            assert found["base"].untyped_storage()._cdata == found["row"].untyped_storage()._cdata
            assert [tuple(found[name].shape) for name in ("base", "row", "empty")] == [(6, 4), (4,), (0, 3)]
            assert found["row"].storage_offset() == 8
            assert tuple(torch.cat([found["base"], found["row"].expand(2, 4)]).shape) == (8, 4)

    assert not [*tmp_path.iterdir()]


def test_values_that_are_real_are_written(tmp_path: Path) -> None:
    """What holds no fake tensor is saved and loaded by torch; a file of another program is read as before."""
    saved, others = tmp_path / "saved.pt", tmp_path / "others.pt"
    torch.save({"weight": torch.arange(3.0)}, others)
    with FakeRun(None):
        torch.save({"epoch": 3}, saved)

        assert torch.load(saved) == {"epoch": 3}
        assert tuple(torch.load(others)["weight"].shape) == (3,)
        assert torch.load(_written({"epoch": 4})) == {"epoch": 4}
    assert torch.load(saved) == {"epoch": 3}


def _written(value: object) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def test_saved_files_are_moved_and_copied(tmp_path: Path) -> None:
    """They are found under their new name, in a folder under their own, and elsewhere files are moved as ever."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "notes").write_text("here")
    with FakeRun(None):
        torch.save(torch.zeros(5), tmp_path / "first.pt")
        shutil.copy(tmp_path / "first.pt", tmp_path / "kept")
        (tmp_path / "first.pt").rename(tmp_path / "second.pt")
        os.replace(tmp_path / "notes", tmp_path / "kept" / "notes")  # noqa: PTH105  # as programs do

        assert tuple(torch.load(tmp_path / "kept" / "first.pt").shape) == (5,)
        assert tuple(torch.load(tmp_path / "second.pt").shape) == (5,)
        with pytest.raises(FileNotFoundError):
            torch.load(tmp_path / "first.pt")
    assert (tmp_path / "kept" / "notes").read_text() == "here"


def test_what_cannot_be_pickled_fails_as_it_does_on_real_tensors(tmp_path: Path) -> None:
    """The program's own error reaches the program."""
    with FakeRun(None), pytest.raises((AttributeError, TypeError)):
        torch.save({"weight": torch.zeros(2), "function": lambda: None}, tmp_path / "saved.pt")
