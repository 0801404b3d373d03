"""The package speaks the field's English: docs/contributing/terms.md, last table."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TERMS = (ROOT / "docs" / "contributing" / "terms.md").read_text()
SUFFIXES = {".py", ".js", ".html", ".css", ".tcss"}
OLD_OPTION = {"gradinspect/cli/verbs.py": "colour"}  # `--colour-by` is accepted: its file may name it

# Never right in a string, docstring, comment or identifier. What a pattern is, and a word of the table that shows it.
NEVER = {
    r"starv(e|ing)": "starv",
    r"tandem": "tandem",
    r"\bus(ed|es)[ -]up\b": "used up",
    r"\bis no (size|address|terminal|leaf|tensor|scalar|file|notebook|cell|python)\b": "is no size",
    r"colour": "colour",
    r"neighbour": "neighbour",
    r"behaviour": "behaviour",
    r"labelled": "labelled",
    r"catalogue": "catalogue",
    r"\b(one|a) (line|row|column) a (line|call|node|row|module|parameter|group|class)\b": "one a line",
    r"\bone a line\b": "one a line",
    r"\bleave (it|them) out\b": "leave it out",
    r"\bleft in peace\b": "left in peace",
    r"\b(himself|herself)\b": "himself",
    r"\bunnoticed\b": "unnoticed",
    r'"""Tell\b': "Tell whether",
    r"\bafter no backward call\b": "after no backward call",
    r"\bmistakes? of ours\b": "a mistake of ours",
    r"\blets?[ _]go\b": "let go",
    r"\bso many\b": "so many",
    r"\bwhoever\b": "whoever",
    r"\bshall\b": "shall",
    r"\bin peace\b": "in peace",
    r"\b(tells?|told|hears?) of\b": "tells of",
    r"\bknow (of )?(none|nothing)\b": "Know none",
    r"\bwithout a word\b": "without a word",
    r"\bin vain\b|in_vain": "in vain",
    r"\bgiv(es?|en|ing) out\b": "given out",
    r"\bfor ever\b": "for ever",
}


def found(pattern: str, name: str, text: str) -> list[str]:
    """List the lines of a file that a pattern is in, without an old name that must stay."""
    allowed = OLD_OPTION.get(name)
    if not re.search(pattern, text, re.IGNORECASE) or (allowed is not None and re.search(pattern, allowed)):
        return []
    return [f"{name}: {line.strip()}" for line in text.splitlines() if re.search(pattern, line, re.IGNORECASE)]


@cache
def texts() -> dict[str, str]:
    """Read each file of the package."""
    files = [path for path in sorted((ROOT / "gradinspect").rglob("*")) if path.suffix in SUFFIXES]
    return {str(path.relative_to(ROOT)): path.read_text() for path in files}


@pytest.mark.parametrize("pattern", NEVER)
def test_words_that_are_never_right(pattern: str) -> None:
    """No file of the package has one, in any case."""
    hits = [hit for name, text in texts().items() for hit in found(pattern, name, text)]

    assert len(texts()) > 200
    assert hits == []


@pytest.mark.parametrize("word", sorted(set(NEVER.values())))
def test_the_table_lists_each_word(word: str) -> None:
    """Whoever meets this test finds in the table what to say instead."""
    assert word in TERMS.partition("## Never")[2]


@pytest.mark.parametrize(
    "line",
    [
        "It starves the weights.",
        "One line a call.",
        "'1XB' is no size.",
        "the neighbours",
        "def let_go(self) -> None:",
        "Stop after so many steps.",
        "used-up graphs",
        "failed with SyntaxError after no backward call",
        "Keep a mistake of ours from the program.",
        "It is no file.",
        "Is told of each call.",
        "def waited_in_vain(self) -> None:",
        "What the allocator has given out since its start.",
        "It would wait for ever.",
    ],
)
def test_a_word_is_seen(line: str) -> None:
    """The patterns match sentences that were in the package once."""
    assert any(found(pattern, "x.py", line) for pattern in NEVER)
