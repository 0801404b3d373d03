"""What a check finds: one record for every kind of finding, and how they are chosen."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal

from msgspec.structs import replace

from gradinspect.errors import GradInspectError
from gradinspect.graph import Frame, Graph, Node, Record, frame_of
from gradinspect.methods import Shown
from gradinspect.units import format_calls, format_count

EVERY_CODE = "GI"
_TORCH = re.compile(r"\b(?:torch|Tensor|nn|F|functional)\.\w+")
_HANDED = re.compile(rf"{_TORCH.pattern}\s*(?:[,)]|$)")  # a function of torch that is not called there
_BARE_CALL = re.compile(r"(?<![\w.])[a-z_]\w*\(")
CALLED = "called"  # the role of the line that called the function of the line before it
BACKWARD = "backward"  # the role of the line that calls backward
STEP = "step"  # the role of a line where an optimizer steps
_WHERE_IT_SHOWS = ("used", "loss", BACKWARD)  # the roles of lines where one cause may come to light several times
# How far lines are from the cause, by their roles, where a finding has several; other roles are the cause itself.
_FROM_CAUSE = (
    ("shared",),
    ("added", "product"),
    ("made", "defined", "mask", "given", "chosen", "mixed", "set", "mean", "values", "scores", "term", "last"),
    ("cleared", "old"),
    ("again", "first", "new", "optimizer"),
    ("applied", "compared", "failed"),
    (
        "created", "grad", "loss", "read", "saved", "step", "taken", "used", "ran", "reduced", "freed", "attention",
        "wanted", "embedded",
    ),
    (BACKWARD,),
)  # fmt: skip
_DISTANCES = {role: distance for distance, roles in enumerate(_FROM_CAUSE, 1) for role in roles}
_DISTANCES |= {"copied": -1, "train": -1}  # what comes after a line of the right kind, and undoes it


class Place(Record, frozen=True, kw_only=True):
    """A line of the user's program, and its role in a finding."""

    role: str  # "saved", "written", "backward": one word
    file: str
    line: int
    code: str
    function: str = ""  # qualified name


class Suppression(Record, frozen=True, kw_only=True):
    """Why a finding is not reported."""

    kind: Literal["comment", "baseline"]
    place: str  # of the comment, "train.py:3"; the file of the baseline
    reason: str = ""  # as the comment says


class Finding(Record, frozen=True, kw_only=True):
    """Something that is wrong, on which lines, why, and what to do. Only a `Rule` makes one."""

    code: str  # "GI101"
    title: str
    text: str  # why
    places: tuple[Place, ...]
    remedy: str
    subjects: tuple[str, ...] = ()  # every tensor or parameter it is about
    fingerprint: str = ""  # the same in every run: NOTE [Fingerprints] in `checks.fingerprints`
    suppression: Suppression | None = None


class IgnoreComment(Record, frozen=True, kw_only=True):
    """One `# gradinspect: ignore[...]`, and the statement that it belongs to."""

    file: str
    line: int
    first: int  # lines of the statement
    last: int
    codes: tuple[str, ...]
    reason: str = ""
    has_run: bool = False  # its statement


class ProgramFile(Record, frozen=True, kw_only=True):
    """A file of the program itself that findings name or that has ignore comments."""

    name: str  # in the record
    path: str  # absolute; "" for one that is none, such as standard input
    ignores: tuple[IgnoreComment, ...] = ()
    comments: tuple[tuple[int, str], ...] = ()  # line and text of those that findings name


class Findings(Shown, Record, frozen=True, kw_only=True):
    """What was found in one run."""

    source: str
    num_calls: int  # backward() calls that were observed
    num_grads: int = 0  # autograd.grad() calls
    findings: tuple[Finding, ...]
    rank: int = 0  # of the process; only rank 0 reports
    num_ranks: int = 1
    suppressed: tuple[Finding, ...] = ()  # found, and not reported
    notes: tuple[str, ...] = ()  # what could not be checked, and why
    files: tuple[ProgramFile, ...] = ()
    is_complete: bool = True  # False: it ended before all that the rules look at was seen
    has_failed: bool = False  # the program ended with an error or an exit code

    @property
    def headline(self) -> str:
        """How many findings there are, or that there is none."""
        if self.findings:
            return format_count(len(self.findings), "finding")
        none = "no other problems found" if self.suppressed else "no problems found"
        return f"The program failed, and {none} until then," if self.has_failed else none.capitalize()

    @property
    def scope(self) -> str:
        """What was looked at: `in 2 backward calls of train.py, on 2 ranks`."""
        ranks = f", on {self.num_ranks:,} ranks" if self.num_ranks > 1 else ""
        return f"in {format_calls(self.num_calls, self.num_grads)} of {self.source}{ranks}"

    def __len__(self) -> int:
        """Count the findings, so that `if findings:` is true if there are any."""
        return len(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        """Yield each finding."""
        return iter(self.findings)


def place_to_change(finding: Finding, own: Collection[str]) -> Place | None:
    """Return the line that wrote, detached or failed, which has to be in the program's files if any is.

    It is the one whose role says most about the cause; the others say what it did it to, and where that came to light.

    Args:
        finding: The finding.
        own: Names of the program's own files.
    """
    main = [place for place in finding.places if place.role != CALLED]
    if not main:
        return None
    place = min(main, key=lambda one: _DISTANCES.get(one.role, 0))
    return place if place.file in own else next((one for one in finding.places if one.file in own), place)


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Make one finding of those that say the same of the same lines, and differ in the losses where it shows.

    Args:
        findings: Those of one run.
    """
    groups: dict[object, list[Finding]] = {}
    for number, one in enumerate(findings):
        causes = tuple(place for place in one.places if place.role not in _WHERE_IT_SHOWS)
        key = (one.code, one.title, one.text, one.remedy, one.subjects, causes) if causes else number
        groups.setdefault(key, []).append(one)
    return tuple(_joined(group) if len(group) > 1 else group[0] for group in groups.values())


def _joined(group: Sequence[Finding]) -> Finding:
    places = dict.fromkeys(place for one in group for place in one.places)
    return replace(group[0], places=tuple(sorted(places, key=_causes_first)))


def _causes_first(place: Place) -> tuple[int, str, int]:
    shows = place.role in _WHERE_IT_SHOWS
    return (_WHERE_IT_SHOWS.index(place.role), place.file, place.line) if shows else (-1, "", 0)


def place_of(role: str, frame: Frame | None, called: Frame | None = None) -> tuple[Place, ...]:
    """Give a line its role, and the line that called its function; nothing where the line is not known."""
    if frame is None:
        return ()
    line = Place(role=role, file=frame.file, line=frame.line, code=frame.code, function=frame.function)
    return (line, *place_of(CALLED, called))


def caller_of_helper(frame: Frame | None, caller: Frame | None, backward: Frame | None) -> Frame | None:
    """Return the line that called a helper function; None if the function is not one.

    A function that calls backward itself is the training loop, and `forward` says enough by its own line.
    """
    if frame is None or caller is None or caller.is_library:
        return None
    name = frame.function.rpartition(".")[2]
    is_loop = backward is not None and (backward.file, backward.function) == (frame.file, frame.function)
    is_same = (caller.file, caller.function) == (frame.file, frame.function)
    return None if is_loop or is_same or name == "forward" or name.startswith("<") else caller


def line_that_names(frame: Frame | None, called: Frame | None) -> tuple[Frame | None, Frame | None]:
    """Return the line to change and the line that called its function, of a line and its caller.

    `forward_with(torch.round, x)` chooses the operator; `return fn(x)` in there only runs it.
    """
    if frame is None or called is None:
        return frame, called
    _, call, arguments = called.code.partition(f"{frame.function.rpartition('.')[2]}(")
    is_handed = call and _HANDED.search(arguments) and _BARE_CALL.search(frame.code) and not _TORCH.search(frame.code)
    return (called, None) if is_handed else (frame, called)


def caller_in(graph: Graph, node: Node, backward: Frame | None) -> Frame | None:
    """Return the line that called the helper function which made a node."""
    frame = frame_of(graph, node)
    caller = None if frame is None or frame.caller is None else graph.frames[frame.caller]
    return caller_of_helper(frame, caller, backward)


def line_of(frame: Frame | None) -> str:
    """Write a line as `train.py:33`, or that it is not known."""
    return "an unknown line" if frame is None else f"{frame.file}:{frame.line}"


def selected(findings: Sequence[Finding], only: Sequence[str], skip: Sequence[str]) -> tuple[Finding, ...]:
    """Keep the requested findings; what several calls show on the same lines counts once.

    So does what an earlier call shows on some of the lines: one list then, and three of them later. A code also stands
    for all those that begin with it: GI1.
    """
    unique: dict[tuple[str, tuple[Place, ...]], Finding] = {}
    for finding in findings:
        unique.setdefault((finding.code, finding.places), finding)
    return tuple(
        finding
        for finding in unique.values()
        if finding.code.startswith(tuple(only) or EVERY_CODE)
        and not (skip and finding.code.startswith(tuple(skip)))
        and not any(_is_part(finding, other) for other in unique.values())
    )


def _is_part(finding: Finding, other: Finding) -> bool:
    """Return whether another finding says the same, of more lines."""
    is_less = finding.code == other.code and set(finding.places) < set(other.places)
    return is_less and bool(finding.subjects) and set(finding.subjects) <= set(other.subjects)


def check_codes(given: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Read codes as the user wrote them: `GI101`, `gi1`, `GI101,GI4`.

    Raises:
        GradInspectError: No known code begins like this, or there is none in a text.
    """
    empty = next((text for text in given if not text.strip(" ,")), None)
    if empty is not None:
        raise GradInspectError(f"There is no code in '{empty}'.", "Write them as GI101,GI4.")
    codes = [code.strip().upper() for text in given for code in text.split(",") if code.strip()]
    for code in codes:
        if not code.startswith(EVERY_CODE) or not any(one.startswith(code) for one in known):
            raise GradInspectError(f"No rule has the code '{code}'.", f"Closest matches: {_most_alike(code, known)}.")
    return tuple(codes)


def _most_alike(code: str, known: Sequence[str]) -> str:
    """List the codes that have the longest beginning in common with one that there is not."""
    beginnings = (code[:length] for length in range(len(code), -1, -1))
    begin = next(text for text in beginnings if any(one.startswith(text) for one in known))
    return listed([one for one in known if one.startswith(begin)])


def listed(names: Sequence[str], most: int = 4) -> str:
    """Write names as a sentence does, and count those there is no room for."""
    shown = list(names[:most])
    rest = len(names) - len(shown)
    if rest:
        shown.append(f"{rest:,} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
