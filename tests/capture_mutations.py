"""Damaged and hostile capture files, and what each verb may answer to one.

A mutation keeps a capture valid, or nearly so, or breaks its bytes. Whatever it does, a verb that reads captures ends
with 0, 1 or 2, says at most one sentence on stderr and never a traceback, and writes no character that a terminal
obeys; a file in a format that others read is one that they can read.
"""

import contextlib
import gzip
import io
import json
import random
import signal
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from factories import gradient_stats, residual_blocks, saved
from msgspec.structs import replace

from gradinspect.errors import GradInspectError
from gradinspect.graph import (
    Frame,
    Gradients,
    Graph,
    Hook,
    NodeGradients,
    Root,
    SavedValue,
    Storage,
)
from gradinspect.renderers.formats import FORMATS
from gradinspect.renderers.picture.dot.text import WORD_JOINER
from gradinspect.storage import encode_graph, read_graph
from gradinspect.units import is_harmless

MAX_DEPTH = 10_000  # of nested lists
MAX_SECONDS = 30.0  # of one verb on one small file, on a busy machine
TEXTS = (
    "", " ", "\x1b]52;c;aGk=\x07", "\x1b[2J\x9b31m", "\u202eevil\u2066", "</script><script>alert(1)</script>", "]]>",
    "]", "=cmd|' /C calc'!A0", "@x", "\t=1", "a\r\nb\x00c", "|`*_[x](javascript:x)", '"; label="x', "\\N\\G\\",
    "<b>&amp;&#0;", "[red]x[/]", "{{x}}%0A::error::", "1\ufe0f", "重み" * 40, "x" * 3000, "a." * 500,
    "../../../../etc/passwd", "/dev/zero", "\ud800", "h.0.attn", "AccumulateGrad", "#0",
    "\U000e0041\u200b\xad", "\uffff\ufffe",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 7, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**30, 10**400, 0.5, -0.0, 1e308, 1e-320, 1e400,
)  # fmt: skip
OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None] * 50,
    {"a": 1},
    [1] * 500,
    "nan",
    "inf",
    "-inf",
    "live",
    "tensor",
)
READERS = (
    ["trace"], ["trace", "--full"], ["trace", "--fold-shapes", "--depth", "1"], ["trace", "--format", "json"],
    ["trace", "--format", "markdown"], ["trace", "--around", "#0"], ["trace", "--path-to", "shared"],
    ["trace", "--where", "class~*Backward0"], ["trace", "--where", "bytes>=1"],
    ["find", "bytes>=1 or status=modified"], ["find", "class~*", "--format", "json", "--budget", "900"],
    ["saved"], ["saved", "--sort", "bytes"], ["saved", "--format", "csv"], ["saved", "--format", "json"],
    ["saved", "--format", "markdown"], ["saved", "--module", "h.*"],
    ["memory"], ["memory", "--full"], ["memory", "--by", "line"], ["memory", "--by", "operator"],
    ["memory", "--by", "storage", "--top", "3"], ["memory", "--format", "csv"], ["memory", "--format", "json"],
    ["memory", "--by", "line", "--format", "csv"],
    ["grads"], ["grads", "--by", "node"], ["grads", "--format", "csv"], ["grads", "--format", "json"],
    ["step"], ["check"], ["memory", "--iterations", "2"], ["grads", "--steps", "2"],
)  # fmt: skip
DRAWINGS: tuple[list[str], ...] = (
    [], ["--full"], ["--saved", "--none"], ["--color-by", "grad"], ["--color-by", "bytes"], ["--color-by", "module"],
    ["--color-by", "dtype", "--theme", "dark"], ["--depth", "0"], ["--fold-shapes"], ["--link", "vscode://file/{path}:{line}"],
    ["--link", "https://x/{file}#L{line}", "--direction", "LR"], ["--around", "#1"],
)  # fmt: skip
PICTURE_SUFFIXES = ("svg", "png", "pdf")  # these take long: one of them for each file
DATA_SUFFIXES = tuple(row.suffix[1:] for row in FORMATS if row.suffix[1:] not in PICTURE_SUFFIXES)


class Slow(BaseException):
    """A verb took too long. No `except Exception` may hide it."""


def base_graph() -> Graph:
    """Make a graph that has something of everything."""
    blocks = residual_blocks(5)
    values = (
        saved("_saved_self", 4, 20, storage=0),
        saved("_saved_weight", 3, storage=1, origin="parameter"),
        saved("_saved_old", 2, storage=2, status="modified"),
        SavedValue(name="_saved_sizes", kind="tuple", value=(1, 2.5, "x", None, True)),
        SavedValue(name="_saved_alpha", kind="int", value=-100),
        SavedValue(name="saved_tensors", index=1, kind="tensor", status="packed", packed_as="tuple", unpack_hook="h",
                   held_storages=(1, 2)),
        SavedValue(name="ctx.scale", kind="float", value=2.0),
    )  # fmt: skip
    first = replace(
        blocks.nodes[0], saved=values, frame=2, hooks=(Hook(kind="pre", name="model.clip"),), sequence_nr=12
    )
    last = len(blocks.nodes) - 1
    ran = tuple(
        NodeGradients(node=number, order=number, incoming=(gradient_stats(1.0),),
                      outgoing=tuple(gradient_stats(0.5, zeros=3) for _ in node.next_edges))
        for number, node in enumerate(blocks.nodes)
    )  # fmt: skip
    others = (replace(node, frame=number % 3) for number, node in enumerate(blocks.nodes[1:-1]))
    return replace(
        blocks,
        nodes=(first, *others, leaf_of(blocks)),
        storages=(Storage(num_bytes=320), Storage(num_bytes=12, origin="parameter", name="shared"),
                  Storage(num_bytes=8)),
        frames=(Frame(file="train.py", line=8, code="loss.backward()"),
                Frame(file="src/model.py", line=21, function="forward", code="x = f(x)", caller=0),
                Frame(file="src/model.py", line=30, function="loss", code="return g(x)", caller=1)),
        roots=(Root(node=0, name="loss", info=blocks.nodes[0].forward_outputs[0]), Root(node=3, output_nr=1)),
        captured_at=replace(blocks.captured_at, frame=0),
        warnings=("a hook could not be read",),
        gradients=Gradients(nodes=ran, weight_norms={last: 2.0}, update_norms={last: 0.1}, loss=0.25),
    )  # fmt: skip


def leaf_of(blocks: Graph) -> Any:
    """Give the leaf other names and a storage."""
    node = blocks.nodes[-1]
    assert node.leaf is not None
    return replace(node, leaf=replace(node.leaf, aliases=("tied",), storage=1))


def mutated(number: int) -> bytes:
    """Make the capture file of a number: the same bytes for the same number."""
    draw = random.Random(number)  # noqa: S311  # no secret
    document = json.loads(encode_graph(base_graph(), compressed=False))
    for _ in range(draw.choice((1, 1, 2, 5))):
        draw.choice((_change_text, _change_text, _change_value, _change_number, _change_shape_of_list))(draw, document)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(MAX_DEPTH)  # buried twice, a list is deeper than Python's own limit
    try:
        content = json.dumps(document).encode(errors="surrogatepass")
    finally:
        sys.setrecursionlimit(limit)
    kind = draw.randrange(10)
    if kind == 0:
        content = _damage(draw, content)
    elif kind == 1:
        content = _damage(draw, gzip.compress(content))
    elif kind == 2:
        content = gzip.compress(content)
    return content


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container with each of its keys."""
    waiting = [value]
    while waiting:
        container = waiting.pop()
        for key in container if isinstance(container, dict) else range(len(container)):
            yield container, key
            if isinstance(container[key], dict | list):
                waiting.append(container[key])


def _change_text(draw: random.Random, document: Any) -> None:
    """Put a hostile text in place of one, which keeps most captures valid."""
    found = [
        (c, k)
        for c, k in _places(document)
        if isinstance(c[k], str) and k not in ("format", "kind", "status", "origin")
    ]
    container, key = draw.choice(found)
    before = container[key]
    container[key] = draw.choice(TEXTS)
    if draw.random() < 0.3:  # everywhere
        for other, place in found:
            if other[place] == before:
                other[place] = container[key]


def _change_number(draw: random.Random, document: Any) -> None:
    found = [(c, k) for c, k in _places(document) if type(c[k]) in (int, float)]
    container, key = draw.choice(found)
    container[key] = draw.choice(NUMBERS)


def _change_value(draw: random.Random, document: Any) -> None:
    container, key = draw.choice(list(_places(document)))
    if isinstance(container, dict) and draw.random() < 0.3:
        del container[key]
    elif isinstance(container, dict) and draw.random() < 0.1:
        container[draw.choice(TEXTS)] = draw.choice(OTHERS)
    else:
        container[key] = draw.choice((*TEXTS, *NUMBERS, *OTHERS))


def _change_shape_of_list(draw: random.Random, document: Any) -> None:
    """Repeat, drop, swap or bury what is in a list."""
    lists = [c[k] for c, k in _places(document) if isinstance(c[k], list) and c[k]]
    chosen = draw.choice(lists)
    match draw.randrange(5):
        case 0:
            chosen.extend(chosen[-1:] * draw.choice((1, 3, 1000)))
        case 1:
            del chosen[draw.randrange(len(chosen)) :]
        case 2:
            draw.shuffle(chosen)
        case 3:
            chosen.insert(0, chosen[-1])
        case _:
            deep: Any = chosen[0]
            for _ in range(draw.choice((2, 50, 900))):
                deep = [deep]
            chosen[0] = deep


def _damage(draw: random.Random, content: bytes) -> bytes:
    place = draw.randrange(len(content))
    match draw.randrange(4):
        case 0:
            return content[:place]
        case 1:
            return content[:place] + draw.randbytes(3) + content[place + draw.randrange(4) :]
        case 2:
            return content[:place] + content[place:] * 2
        case _:
            return draw.randbytes(draw.randrange(40)) + content


def commands(number: int) -> Iterator[list[str]]:
    """Yield what to run on the file of a number: every verb, and of the many ways to draw one."""
    yield from (list(words) for words in READERS)
    yield from (["export", "-o", f"out.{suffix}", "--force"] for suffix in DATA_SUFFIXES)
    drawing = DRAWINGS[number % len(DRAWINGS)]
    for suffix in (PICTURE_SUFFIXES[number // len(DRAWINGS) % len(PICTURE_SUFFIXES)], "dot", "html"):
        yield ["export", "-o", f"out.{suffix}", "--force", *drawing]


def problems(content: bytes, number: int) -> list[str]:
    """Run every verb on a capture file in the current folder, and say what none may do."""
    Path("run.json").write_bytes(content)
    found = []
    try:
        read_graph("run.json")
        chosen = list(commands(number))
    except GradInspectError:  # whatever the options are, each verb reads the file first
        chosen = [list(words) for words in {words[0]: words for words in READERS}.values()]
    for words in chosen:
        found += [f"{number}: {' '.join(words)}: {problem}" for problem in run(words[0], "run.json", *words[1:])]
    return found + [f"{number}: explain: {problem}" for problem in run("explain", "run.json#0")]


def run(*words: str) -> list[str]:
    """Run one command in this process, and judge its exit code, what it says and what it writes."""
    from gradinspect.cli import main  # other tests set the environment that this reads

    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            with _in_time():
                code: object = main(list(words))
        except Slow:
            return [f"took more than {MAX_SECONDS:.0f} s"]
        except (Exception, SystemExit) as error:  # this is what we look for
            return [f"ended in {type(error).__name__}: {str(error)[:200]}"]
    said, told = (_text_of(stream) for stream in (out, err))
    found = [] if code in (0, 1, 2) else [f"exit code {code}"]
    found += _hidden("stdout", said) + _hidden("stderr", told)
    if code == 2 and not (told.startswith("gradinspect: ") and told.count("\n") == 1 and len(told) < 2000):
        found.append(f"not one sentence: {told[:200]!r}")
    if code == 0 and "-o" in words:
        found += _problems_of_file(Path(words[words.index("-o") + 1]))
    return found


def _text_of(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode()  # type: ignore[attr-defined, no-any-return]  # a BytesIO


def _hidden(name: str, text: str) -> list[str]:
    """Find characters that a terminal or an editor would obey or hide."""
    lines = text.replace("\r\n", "\n").split("\n")
    return [f"{name} has {line[:200]!r}" for line in lines if not is_harmless(line)][:1]


def _problems_of_file(path: Path) -> list[str]:
    content = path.read_bytes()
    match path.suffix:
        case ".gz":
            content = gzip.decompress(content)
        case ".png" | ".pdf":
            return [] if content[:4] in (b"\x89PNG", b"%PDF") else [f"{path} is no picture"]
    text = content.decode()
    read: dict[str, Callable[[str], object]] = {".json": json.loads, ".gz": json.loads, ".svg": ET.fromstring}
    try:
        read.get(path.suffix, str)(text)
    except (ValueError, ET.ParseError) as error:
        return [f"{path} cannot be read: {error}"]
    if path.suffix in {".dot", ".svg"}:  # what Graphviz and our tooltips for it put between words
        text = text.replace("\xa0", " ").replace(WORD_JOINER, "")
    return _hidden(str(path), text)


@contextlib.contextmanager
def _in_time() -> Iterator[None]:
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_number: int, _frame: object) -> None:
        raise Slow

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
