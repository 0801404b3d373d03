"""Python is parsed whatever other threads do."""

import ast
import threading
from typing import Any

import pytest

from gradinspect.syntax import parse, parse_expression, source_lines


def test_a_failure_that_another_thread_caused_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython 3.11 says SystemError if another thread has parsed in between."""
    results: list[Any] = [SystemError("AST constructor recursion depth mismatch"), ast.parse("x = 1")]

    def parsed(_source: str) -> ast.Module:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result  # type: ignore[no-any-return]

    monkeypatch.setattr(ast, "parse", parsed)

    assert ast.unparse(parse("x = 1")) == "x = 1"
    assert results == []


def test_it_ends_where_it_always_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is that of Python."""

    def failing(_source: str) -> ast.Module:
        raise SystemError("broken")

    monkeypatch.setattr(ast, "parse", failing)

    with pytest.raises(SystemError, match="broken"):
        parse("x = 1")


def test_many_threads_parse_at_once() -> None:
    """Each gets its tree."""
    source = "\n".join(f"x{number} = [y for y in range({number}) if y]" for number in range(100))
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(len(parse(source).body))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [100] * 8


def test_an_expression_is_no_statement() -> None:
    """Its value is returned."""
    assert ast.unparse(parse_expression("a + b[1]")) == "a + b[1]"
    with pytest.raises(SyntaxError):
        parse_expression("a = 1")


def test_lines_are_those_that_python_counts() -> None:
    """Not those of `str.splitlines`, which also ends a line at a page break and at U+2028."""
    source = "a = 1\r\n\x0cb = '\u2028\x85'\rc = 3\n"
    lines = source_lines(source)

    assert lines == ["a = 1", "\x0cb = '\u2028\x85'", "c = 3"]
    assert [one.lineno for one in ast.parse(source).body] == [1, 2, 3]
    assert len(source.splitlines()) > 3
