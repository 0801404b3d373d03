"""Which of torch's private names this torch has, and what is lost where one is gone.

NOTE [Private names]
What we need of torch is partly private, so any release may rename it. Every such name is declared here with a probe:
`private("torch._C._current_graph_task_id", ...)`. Versions are never compared; the name is there or it is not. An
essential name that is gone ends the command with one sentence; any other takes only what it gave with it, and
`missing_sentences` says so once in the report.
"""

import importlib
import warnings
from dataclasses import dataclass
from typing import Any, Final

import torch

from gradinspect.errors import GradInspectError

MISSING: Final = object()
EVERY_TRIED: Final = "2.8 to 2.15"


@dataclass(frozen=True, kw_only=True, eq=False)
class Private:
    """One private name of torch."""

    path: str  # "torch._C._current_graph_task_id"
    gives: str  # what is lost without it: "hooks of nodes are not shown"
    versions: str  # the releases that have it, of those that were tried
    is_essential: bool  # nothing at all works without it
    only_for: str | None  # the one command or option that cannot do without it
    is_rare: bool  # its absence is said only once somebody has missed it
    value: Any  # MISSING where this torch has no such name
    is_former: bool = False  # the value is that of the name that earlier releases had instead

    @property
    def is_there(self) -> bool:
        """Whether this torch has it."""
        return self.value is not MISSING

    @property
    def sentence(self) -> str:
        """Say that it is missing, and what that takes away."""
        return f"{self._absence}, so {self.gives} (torch {self.versions} has it)."

    @property
    def _absence(self) -> str:
        return f"torch {torch.__version__} has no '{self.path}'"

    def required(self, by: str | None = None) -> Any:
        """Return the value.

        Args:
            by: What cannot go on without it, where that is not `only_for`.

        Raises:
            GradInspectError: This torch has no such name.
        """
        if not self.is_there:
            by = by or self.only_for
            reason = f", which {by} needs." if by else ", without which a graph cannot be read."
            raise GradInspectError(f"{self._absence}{reason}", f"Use another torch: {self.versions} has it.")
        return self.value

    def note_missed(self) -> None:
        """Remember that something was lost without it, so that the report says so."""
        _missed.add(self.path)

    def or_else(self, fallback: Any) -> Any:
        """Return the value, or a stand-in that gives up only what this name gave."""
        return self.value if self.is_there else fallback

    def or_refuse(self) -> Any:
        """Return the value, or a function that raises the sentence when it is called."""

        def refuse(*_args: object, **_kwargs: object) -> Any:
            return self.required()

        return self.or_else(refuse)


def look_up(path: str) -> Any:
    """Find a dotted name: a module as far as it is one, then attributes. MISSING where any step fails.

    After a colon stands an attribute that only instances of a class have: one that its `__init__` sets.
    """
    path, _, attribute = path.partition(":")
    if attribute:
        code = getattr(look_up(f"{path}.__init__"), "__code__", None)
        return attribute if code is not None and attribute in code.co_names else MISSING
    parts = path.split(".")
    found: Any = MISSING
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a deprecated name is still a name
        for place, part in enumerate(parts):
            try:
                found = importlib.import_module(part) if place == 0 else _step(found, parts[: place + 1])
            except (ImportError, AttributeError):
                return MISSING
    return found


def private(  # noqa: PLR0913  # each is a fact about one name
    path: str,
    gives: str = "",
    *,
    versions: str = EVERY_TRIED,
    is_essential: bool = False,
    only_for: str | None = None,
    is_rare: bool = False,
    formerly: str | None = None,
) -> Private:
    """Declare a private name and look for it.

    Args:
        path: Its dotted name.
        gives: What is lost without it: the end of a sentence that begins "torch has no ..., so".
        versions: The releases that have it, of those that were tried.
        is_essential: Nothing at all works without it.
        only_for: The one command or option that ends with a sentence without it; nothing else is lost.
        is_rare: Its absence is said only once somebody has missed it.
        formerly: What earlier releases had in its place.
    """
    known = _declared.get(path)
    if known is None:
        value = look_up(path)
        is_former = value is MISSING and formerly is not None
        known = _declared[path] = Private(
            path=path,
            gives=gives,
            versions=versions,
            is_essential=is_essential,
            only_for=only_for,
            is_rare=is_rare,
            value=look_up(formerly) if is_former and formerly is not None else value,
            is_former=is_former,
        )
    return known


def declared() -> tuple[Private, ...]:
    """List every name that was declared so far, in the order of its path."""
    return tuple(_declared[path] for path in sorted(_declared))


def missing_sentences() -> tuple[str, ...]:
    """Say what this torch does not give, one sentence for each thing that is lost."""
    lost: dict[str, Private] = {}
    for name in declared():
        is_told_elsewhere = name.is_essential or name.only_for or (name.is_rare and name.path not in _missed)
        if not name.is_there and not is_told_elsewhere:
            lost.setdefault(name.gives, name)
    return tuple(name.sentence for name in lost.values())


def require_essentials() -> None:
    """Check that this torch can be read at all.

    Raises:
        GradInspectError: A name is gone that everything rests on.
    """
    for name in declared():
        if name.is_essential:
            name.required()


def _step(owner: Any, parts: list[str]) -> Any:
    """Take the attribute, or import the submodule that nobody has imported yet."""
    if hasattr(owner, parts[-1]):
        return getattr(owner, parts[-1])
    return importlib.import_module(".".join(parts))


_missed: set[str] = set()
_declared: dict[str, Private] = {}
