"""Probes for torch's private names, and what is lost without each.

NOTE [Private names]
Some of what we need of torch is private, so any release may rename it. Every such name is declared with a probe:
`private("torch._C._current_graph_task_id", ...)`. Versions are never compared; a name exists or it does not. Without an
essential name the command ends with an error; without any other, only its feature is lost, and `missing_sentences`
says so once in the report.
"""

import importlib
from dataclasses import dataclass
from typing import Any, Final

import torch

from gradinspect.errors import GradInspectError
from gradinspect.torch_api.patching.silence import Silence

MISSING: Final = object()
EVERY_TRIED: Final = "2.8 to 2.15"


@dataclass(frozen=True, kw_only=True, eq=False)
class Private:
    """One private name of torch."""

    path: str  # "torch._C._current_graph_task_id"
    gives: str  # what is lost without it: "hooks of nodes are not shown"
    versions: str  # the tested releases that have it
    is_essential: bool  # nothing works without it
    only_for: str | None  # the only command or option that needs it
    is_rare: bool  # report its absence only if it was needed
    value: Any  # MISSING if this torch does not have it
    is_former: bool = False  # the value is that of its earlier name

    @property
    def is_there(self) -> bool:
        """Whether this torch has it."""
        return self.value is not MISSING

    @property
    def sentence(self) -> str:
        """The message that it is missing, and what is lost."""
        return f"{self._absence}, so {self.gives} (torch {self.versions} has it)."

    @property
    def _absence(self) -> str:
        return f"torch {torch.__version__} has no '{self.path}'"

    def required(self, by: str | None = None) -> Any:
        """Return the value.

        Args:
            by: What needs it, if not `only_for`.

        Raises:
            GradInspectError: This torch does not have it.
        """
        if not self.is_there:
            by = by or self.only_for
            reason = f", which {by} needs." if by else ", without which a graph cannot be read."
            raise GradInspectError(f"{self._absence}{reason}", f"Use another torch: {self.versions} has it.")
        return self.value

    def note_missed(self) -> None:
        """Record that it was needed, so that the report mentions it."""
        _missed.add(self.path)

    def or_else(self, fallback: Any) -> Any:
        """Return the value, or a fallback that loses only this feature."""
        return self.value if self.is_there else fallback

    def or_refuse(self) -> Any:
        """Return the value, or a function that raises the error when called."""

        def refuse(*_args: object, **_kwargs: object) -> Any:
            return self.required()

        return self.or_else(refuse)


def look_up(path: str) -> Any:
    """Look up a dotted name: modules first, then attributes. MISSING if any step fails.

    A colon precedes an attribute that only instances have: one that `__init__` sets.
    """
    path, _, attribute = path.partition(":")
    if attribute:
        code = getattr(look_up(f"{path}.__init__"), "__code__", None)
        return attribute if code is not None and attribute in code.co_names else MISSING
    parts = path.split(".")
    found: Any = MISSING
    with Silence():  # deprecated names still count
        for place, part in enumerate(parts):
            try:
                found = importlib.import_module(part) if place == 0 else _step(found, parts[: place + 1])
            except (ImportError, AttributeError):
                return MISSING
    return found


def private(  # noqa: PLR0913  # facts about one name
    path: str,
    gives: str = "",
    *,
    versions: str = EVERY_TRIED,
    is_essential: bool = False,
    only_for: str | None = None,
    is_rare: bool = False,
    formerly: str | None = None,
) -> Private:
    """Declare a private name and look it up.

    Args:
        path: Its dotted name.
        gives: What is lost without it: the end of a sentence that starts with "torch has no ..., so".
        versions: The tested releases that have it.
        is_essential: Nothing works without it.
        only_for: The only command or option that needs it, and fails without it.
        is_rare: Report its absence only if it was needed.
        formerly: Its name in earlier releases.
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
    """List all declared names, sorted by path."""
    return tuple(_declared[path] for path in sorted(_declared))


def missing_sentences() -> tuple[str, ...]:
    """List what is lost with this torch, one sentence per feature."""
    lost: dict[str, Private] = {}
    for name in declared():
        is_told_elsewhere = name.is_essential or name.only_for or (name.is_rare and name.path not in _missed)
        if not name.is_there and not is_told_elsewhere:
            lost.setdefault(name.gives, name)
    return tuple(name.sentence for name in lost.values())


def require_essentials() -> None:
    """Check that this torch can be read at all.

    Raises:
        GradInspectError: An essential name is missing.
    """
    for name in declared():
        if name.is_essential:
            name.required()


def _step(owner: Any, parts: list[str]) -> Any:
    """Return the attribute, importing it if it is a submodule."""
    if hasattr(owner, parts[-1]):
        return getattr(owner, parts[-1])
    return importlib.import_module(".".join(parts))


_missed: set[str] = set()
_declared: dict[str, Private] = {}
