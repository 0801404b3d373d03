"""What TorchDynamo has compiled in this process, where it broke graphs, and why it compiled again.

NOTE [Notes of TorchDynamo]
It counts its graphs, lists the breaks of those, and keeps figures of its last 64 compilations; reading them changes
nothing. A function with a break in a loop is not compiled at all: then only the figures have the reason. The module
with them is never imported by us: a program that compiles has imported it.
Source: torch/_dynamo/utils.py, convert_frame.py, output_graph.py, torch 2.13.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_UTILS = "torch._dynamo.utils"
_COMMENT = re.compile(r"^[!\d]*\d+/\d+: |\s{2,}#.*$")  # which compilation it was, and the line of a guard
_NAMED = re.compile(  # what an explanation says that Dynamo does not trace
    r"Explanation: .*?\b(?:operator|function|method|callable|builtin) (?:`|`?<(?:bound )?(?:function|method) )"
    r"([\w.<>]+)"
)
_ADDRESS = re.compile(r"0x[0-9a-f]+|(?<![\d.])\d{9,}\b")
_MISSING = {  # name of an error -> what in its text is missing, and the sentence about it
    "InvalidBackend": (r"Invalid backend: '([^'\n]+)'", "torch.compile has no backend '{}' here: install it."),
    "InvalidCxxCompiler": (
        r"'([^'\n]+)'\)",
        "inductor found no C++ compiler '{}': install one, such as g++, or name another in CXX.",
    ),
    "CppCompileError": (
        r"Command:\s+(\S+)",
        "The C++ compiler '{}' could not compile what inductor wrote; what it said stands above.",
    ),
    "ImportError": (
        r"(?:No module named '|Please install )([^'\s]+)",
        "The backend of torch.compile needs '{}', which is not installed: install it.",
    ),
    "TritonMissing": (r"(triton)", "inductor found no working '{}', which this device needs: install it."),
}
BUCKETS = (
    "one graph for each bucket of gradients of DistributedDataParallel; torch._dynamo.config.optimize_ddp = False "
    "makes one of all"
)
_PLAIN = {  # what a reason begins with, a name within TorchDynamo -> what it means
    "generic_jump": "branch on the value of a tensor",
    "step_unsupported": "the last place where the graph could end before what cannot be traced",
    "DDPOptimizer": BUCKETS,
}


def is_of_compiler(error: BaseException) -> bool:
    """Return whether torch.compile failed, and not the program: its backend is not there, or has no C++ compiler."""
    return str(type(error).__module__).startswith(("torch._dynamo.", "torch._inductor."))


def what_is_missing(error: BaseException) -> str | None:
    """Say in a sentence what torch.compile does not find on this machine; None: it failed for another reason.

    Names in it are those of the program and its environment: not escaped.

    Source: torch/_inductor/exc.py, torch/_dynamo/exc.py, torch 2.13.
    """
    kind = type(getattr(error, "inner_exception", error)).__name__
    found = _MISSING.get("ImportError" if kind == "ModuleNotFoundError" else kind)
    if found is None:
        return None
    pattern, sentence = found
    match = re.search(pattern, str(error))
    return sentence.format(match[1]) if match is not None else None


class CodeLine(NamedTuple):
    """A line of a file."""

    file: str
    line: int


class Break(NamedTuple):
    """The end of a graph before that of its function."""

    reason: str
    stack: tuple[CodeLine, ...]  # outermost first
    is_skipped: bool  # nothing of the function is compiled


class RecompiledFunction(NamedTuple):
    """A function that is compiled again."""

    function: str
    place: CodeLine | None  # where it begins
    reason: str
    gives_up: bool  # it was compiled too often


def num_compiled_graphs() -> int:
    """Return how many graphs TorchDynamo has captured in this process."""
    counters = getattr(sys.modules.get(_UTILS), "counters", None)
    return int(counters["stats"]["unique_graphs"]) if counters is not None and "stats" in counters else 0


def graph_breaks() -> Iterator[Break]:
    """Yield why graphs ended before their function did, in that order; then the functions that are not compiled.

    A stack has no line of TorchDynamo itself, which calls what is compiled by functions of its own.
    """
    module = sys.modules.get(_UTILS)
    own = str(Path(str(getattr(module, "__file__", ""))).parent)
    for one in getattr(module, "graph_break_reasons", ()):
        lines = (CodeLine(str(frame.filename), int(frame.lineno or 0)) for frame in one.user_stack)
        stack = tuple(line for line in lines if not line.file.startswith(own))
        yield Break(_sentence(one.reason), stack, is_skipped=False)
    for one in _figures():
        if one.fail_type is not None and one.recompile_reason is None and one.fail_user_frame_filename:
            stack = (CodeLine(str(one.fail_user_frame_filename), int(one.fail_user_frame_lineno or 0)),)
            yield Break(_sentence(one.fail_reason), stack, is_skipped=True)


def recompiles() -> Iterator[RecompiledFunction]:
    """Yield which functions were compiled again, and which guard did not hold."""
    functions: dict[str, tuple[str, CodeLine]] = {}
    for one in _figures():
        number = str(one.compile_id).rpartition("/")[0]
        if one.co_name and one.co_filename:
            functions[number] = (str(one.co_name), CodeLine(str(one.co_filename), int(one.co_firstlineno or 0)))
        if one.recompile_reason is not None:
            name, place = functions.get(number, ("", None))
            yield RecompiledFunction(resumed(name), place, _sentence(one.recompile_reason), one.fail_type is not None)


def has_forgotten() -> bool:
    """Return whether there were more compilations than TorchDynamo keeps figures of."""
    kept = getattr(sys.modules.get(_UTILS), "_compilation_metrics", ())
    return len(kept) == getattr(kept, "maxlen", None)


def _figures() -> list[Any]:
    found: Any = getattr(sys.modules.get(_UTILS), "get_compilation_metrics", list)()
    return list(found)


def _sentence(reason: object) -> str:
    """Return the first line of a reason, without what differs from run to run, and what could not be traced."""
    whole = str(reason).strip()
    text = _COMMENT.sub("", _COMMENT.sub("", whole.partition("\n")[0]))
    named = _NAMED.search(whole)
    name = "" if named is None or named[1] in text else f": {named[1].strip('.')}"
    return _ADDRESS.sub("...", _PLAIN.get(text.partition(" ")[0], text)).strip() + name


def resumed(name: str) -> str:
    """Name a function, also where it goes on after a break: `torch_dynamo_resume_in_forward_at_6`."""
    found = re.fullmatch(r"torch_dynamo_resume_in_(.+)_at_\d+", name)
    return name if found is None else found[1]
