"""Which functions torch.compile is kept away from, and how often they are looked for."""

from types import CodeType, ModuleType

import pytest

from gradinspect.torch_api import dynamo


def module(name: str, source: str) -> ModuleType:
    """Make a module of a package that is not ours."""
    made = ModuleType(name)
    exec(source, vars(made))  # noqa: S102  # as an import does
    return made


def test_what_is_imported_later_is_skipped_and_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package gets another name with each module of it that is imported, also deep inside."""
    skipped: list[str] = []

    def skip(code: CodeType, *, with_callees: bool) -> None:
        skipped.append(code.co_name)

    monkeypatch.setattr(dynamo, "_skip", skip)
    package, inner = (
        module("package", "def first(): pass"),
        module("package.inner", "class Kind:\n def method(self): 0"),
    )
    package.inner = inner  # type: ignore[attr-defined]  # as an import does

    dynamo.never_compiled(package)
    assert skipped == ["first", "method"]

    dynamo.never_compiled(package)
    assert skipped == ["first", "method"]

    inner.later = module("package.inner.later", "def last(): pass")  # type: ignore[attr-defined]  # as above
    dynamo.never_compiled(package)
    assert skipped == ["first", "method", "last"]
