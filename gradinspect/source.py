"""The SOURCE argument: a script, a module, an expression, or a capture file. Imports no torch."""

import difflib
import os
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from gradinspect.errors import GradInspectError

CAPTURE_SUFFIXES = (".json", ".json.gz")
FLOAT_DTYPES = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128")
INTEGER_DTYPES = ("int64", "int32", "int16", "int8", "uint8")
DTYPES = (*FLOAT_DTYPES, *INTEGER_DTYPES, "bool")
_INPUT = re.compile(r"(?:(?P<name>[A-Za-z_]\w*)=)?(?P<shape>(?:[0-9x]|\{[A-Za-z_]\w*\})*)(?::(?P<dtype>\w+))?")


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_TIMES = re.compile(r"x(?![^{]*\})")  # between two sizes, not in the name of one
STDIN = Path("-")
MAX_INPUT = 1000  # characters of a shape
MAX_DIGITS = 18  # of one of its sizes


@dataclass(frozen=True)
class Script:
    """A file to run like `python file`: also a folder, a zip file, or `-` for standard input."""

    path: Path
    numbers: tuple[tuple[str, int], ...] = ()  # names that the script sets to a number, and the number to set them to


@dataclass(frozen=True)
class Module:
    """A module to run like `python -m name`."""

    name: str


@dataclass(frozen=True)
class Expression:
    """An expression in the namespace of an imported module or script."""

    module: str  # "pkg.mod", or the path of a script
    text: str


@dataclass(frozen=True)
class CaptureFile:
    """A graph that was saved earlier."""

    path: Path


Program: TypeAlias = Script | Module | Expression
Source: TypeAlias = Program | CaptureFile
ReadSource: TypeAlias = Callable[[str], Sequence[str] | None]  # file name in the record -> lines


@dataclass(frozen=True, kw_only=True)
class InputSpec:
    """One generated input: `mask=2x128:bool`."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    name: str | None = None  # keyword; positional if None
    size_names: tuple[str, ...] = ()  # of sizes that are searched for, in the places of `{batch}`; "" for the others

    def __str__(self) -> str:
        """Write it as the command line takes it."""
        names = self.size_names or ("",) * len(self.shape)
        sizes = (f"{{{name}}}" if name else str(size) for name, size in zip(names, self.shape, strict=True))
        name = "" if self.name is None else f"{self.name}="
        return f"{name}{'x'.join(sizes)}" + ("" if self.dtype == "float32" and self.shape else f":{self.dtype}")

    def with_size(self, name: str, size: int) -> "InputSpec":
        """Put a number in the place of a name."""
        if name not in self.size_names:
            return self
        named = zip(self.shape, self.size_names, strict=True)
        shape = tuple(size if of == name else old for old, of in named)
        return replace(self, shape=shape, size_names=tuple("" if of == name else of for of in self.size_names))


def parse_source(text: str) -> Source:
    """Parse SOURCE.

    Raises:
        GradInspectError: The file does not exist.
    """
    if text == str(STDIN):
        return Script(STDIN)
    if _ADDRESS.match(text):
        raise GradInspectError(f"'{text}' is an address, not a file.", "Download it, and give the file.")
    if text.endswith(CAPTURE_SUFFIXES):
        return CaptureFile(_existing(Path(text)))
    file, colon, expression = text.partition(":")
    if colon and file and expression and not os.path.exists(text):  # noqa: PTH110  # Path.exists raises for a name that is too long
        if file.endswith(".py"):
            _existing(Path(file))
        return Expression(file, expression)
    return Script(_existing(Path(text)))


def source_words(source: Source) -> tuple[str, ...]:
    """Write a source as words of a command line."""
    match source:
        case Module(name):
            return ("-m", name)
        case Expression(module, text):
            return (f"{module}:{text}",)
        case CaptureFile(path) | Script(path):
            return (str(path),)


def looks_like_source(text: str) -> bool:
    """Return whether a word of a command line names a program or a capture file, even one that does not exist."""
    is_name = text.endswith((".py", ".ipynb", *CAPTURE_SUFFIXES)) or ":" in text or os.sep in text
    return not text.startswith("-") and (is_name or os.path.exists(text))  # noqa: PTH110  # as above


def first_folder(source: Source) -> str:
    """Return the first folder of a program's import path."""
    if isinstance(source, Script):
        if source.path == STDIN:
            return ""
        return str(source.path.absolute() if has_main_inside(source.path) else source.path.resolve().parent)
    if isinstance(source, Expression) and source.module.endswith(".py"):
        return str(Path(source.module).resolve().parent)
    return str(Path.cwd())


def has_main_inside(path: Path) -> bool:
    """Return whether a path is a folder or a zip file, whose `__main__.py` runs."""
    return path.is_dir() or (path.suffix not in {".py", ".pyc"} and path.is_file() and zipfile.is_zipfile(path))


def parse_input(text: str) -> InputSpec:
    """Parse `2x3x224x224`, `2x128:int64`, `mask=2x128:bool`, or `:float64` for a scalar tensor.

    Raises:
        GradInspectError: It has another form.
    """
    found = _INPUT.fullmatch(text) if len(text) <= MAX_INPUT else None
    if found is None or not (found["shape"] or found["dtype"]):
        raise GradInspectError(
            f"The input '{text}' is not a shape.", "Write it as 2x3x224x224, 2x128:int64 or mask=2x128:bool."
        )
    sizes = _TIMES.split(found["shape"]) if found["shape"] else []
    if not all(sizes):
        raise GradInspectError(f"The input '{text}' has an empty size.", "Write a number on both sides of each x.")
    dtype = found["dtype"] or "float32"
    if dtype not in DTYPES:
        near = difflib.get_close_matches(dtype, DTYPES, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Supported dtypes: {', '.join(DTYPES)}."
        raise GradInspectError(f"The input '{text}' has an unknown dtype '{dtype}'.", hint)
    large = next((size for size in sizes if len(size.lstrip("0")) > MAX_DIGITS and not size.startswith("{")), None)
    if large is not None:
        raise GradInspectError(f"The input '{text}' has a size of {len(large)} digits.", "No tensor is that large.")
    names = tuple(size.strip("{}") if size.startswith("{") else "" for size in sizes)
    shape = tuple(1 if name else int(size) for size, name in zip(sizes, names, strict=True))
    return InputSpec(shape=shape, dtype=dtype, name=found["name"], size_names=names if any(names) else ())


def _existing(path: Path) -> Path:
    try:
        if path.is_file() or (path.is_dir() and any((path / f"__main__.{end}").is_file() for end in ("py", "pyc"))):
            return path
        if path.is_dir():
            raise GradInspectError(f"'{path}' is a directory.", "Give a script in it, or run a module with -m.")
        if path.exists():
            raise GradInspectError(f"'{path}' is a device or a pipe.", "Give a file, or - for standard input.")
        if path.is_symlink():
            raise GradInspectError(f"'{path}' is a link that leads to no file.", "Give the file itself.")
        folder = path.parent
        names = [entry.name for entry in folder.iterdir() if entry.exists()] if folder.is_dir() else []
    except OSError as error:  # the name is too long, or a folder is not readable
        raise GradInspectError(f"'{path}' cannot be read: {error.strerror}.", "Check its name.") from None
    except ValueError:
        raise GradInspectError(f"'{path}' cannot be read: no file can have this name.", "Check its name.") from None
    near = _similar(path, names)
    hint = f"Did you mean '{folder / near}'?" if near else "Give a script, pkg.mod:expression, or a capture file."
    raise GradInspectError(f"The file '{path}' does not exist.", hint)


def _similar(path: Path, names: Sequence[str]) -> str | None:
    """Return the file with the name most like that of a path; a common suffix does not count."""
    by_stem = {name.removesuffix(path.suffix): name for name in names}
    near = difflib.get_close_matches(path.name.removesuffix(path.suffix), by_stem, n=1, cutoff=0.7)
    return by_stem[near[0]] if near else None
