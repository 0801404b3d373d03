"""What torch.compile does not find on a machine, and what it cannot trace."""

from collections.abc import Iterator

import pytest
import torch
from torch._dynamo.exc import BackendCompilerFailed
from torch._dynamo.utils import graph_break_reasons
from torch._inductor import config
from torch._inductor.exc import CppCompileError, InductorError, InvalidCxxCompiler, TritonMissing

from gradinspect.torch_api.compilations import graph_breaks, what_is_missing


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


class Counting(torch.nn.Module):
    """Calls what torch.compile does not trace, each in another way."""

    @torch.compiler.disable  # type: ignore[untyped-decorator]  # torch is not followed
    def count(self, x: torch.Tensor) -> torch.Tensor:
        """Is not compiled."""
        return x * 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Break the graph at each line."""
        open("/dev/null").close()  # noqa: PTH123  # a builtin function
        x = self.count(x)
        torch._dynamo.graph_break()
        return x + 1 if x.sum() > 0 else x


@pytest.fixture
def no_breaks() -> Iterator[None]:
    """Start without breaks that other tests have made, and leave none."""
    torch._dynamo.reset()
    before = list(graph_break_reasons)
    graph_break_reasons.clear()
    yield
    torch._dynamo.reset()
    graph_break_reasons[:] = before


@pytest.mark.usefixtures("no_breaks")
def test_a_break_names_what_could_not_be_traced() -> None:
    """An explanation has its name; nothing is added where the first line has it, or where there is none."""
    torch.compile(Counting(), backend="eager")(torch.randn(3))
    reasons = [one.reason for one in graph_breaks() if not one.is_skipped]

    assert reasons == [
        "Failed to trace builtin operator: open",
        "Unsupported method call: close",
        "Skip inlining `torch.compiler.disable()`d function: Counting.count",
        "Call to `torch._dynamo.graph_break()`",
        "branch on the value of a tensor",
    ]


@pytest.mark.usefixtures("no_breaks")
def test_a_graph_that_ends_before_what_breaks_it_is_explained() -> None:
    """It goes on in eager behind the last statement at which that is possible."""

    def doubled(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y = torch.sin(y)
        torch._dynamo.step_unsupported()
        return y + 1

    torch.compile(doubled, backend="eager")(torch.randn(3) + 1)
    reasons = [one.reason for one in graph_breaks() if not one.is_skipped]

    assert reasons == ["the last place where the graph could end before what cannot be traced"]
