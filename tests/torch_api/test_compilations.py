"""What torch.compile does not find on a machine."""

import pytest
import torch
from torch._dynamo.exc import BackendCompilerFailed
from torch._inductor import config
from torch._inductor.exc import CppCompileError, InductorError, InvalidCxxCompiler, TritonMissing

from gradinspect.torch_api.compilations import what_is_missing


def test_a_compiler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also inside of the error of the backend; the name comes from the environment."""
    monkeypatch.setattr(config.cpp, "cxx", (None, "/nowhere/g++"))
    error = InvalidCxxCompiler()
    said = "inductor found no C++ compiler '/nowhere/g++': install one, such as g++, or name another in CXX."

    assert what_is_missing(error) == said
    assert what_is_missing(InductorError(error, None)) == said
    assert what_is_missing(BackendCompilerFailed(torch.compile, error, None)) == said


def test_each_thing_that_can_be_missing_has_a_sentence() -> None:
    """A compiler that cannot compile, and the one for GPUs."""
    failed = what_is_missing(InductorError(CppCompileError(["g++-12", "a.cpp"], "omp.h: not found"), None))

    assert failed == "The C++ compiler 'g++-12' could not compile what inductor wrote; what it said stands above."
    for error in (ModuleNotFoundError("No module named 'onnx'"), ImportError("Please install onnx to use it.")):
        assert "needs 'onnx'" in str(what_is_missing(BackendCompilerFailed(torch.compile, error, None)))
    assert what_is_missing(BackendCompilerFailed(torch.compile, ImportError("cannot"), None)) is None
    assert "no working 'triton'" in str(what_is_missing(TritonMissing(None)))


def test_other_failures_miss_nothing() -> None:
    """An error in what is compiled, with such words in it, too."""
    assert what_is_missing(RuntimeError("Invalid backend: 'x'")) is None
    assert what_is_missing(InductorError(ValueError("No working C++ compiler"), None)) is None
