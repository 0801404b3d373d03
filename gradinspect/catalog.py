"""The catalog of generated Backward classes, read from PyTorch's sources.

What comes in: `derivatives.yaml` and `native_functions.yaml`, part of `torchgen` in every torch wheel. What goes out: a
`Catalog`, from the name of a grad_fn ("AddBackward0") to its forward schema, the forward argument at each position of
`next_functions`, its formulas, and what it saves. Building it takes over a second, so it is cached in the user's cache
folder. Torch itself is not imported: torchgen is plain Python.

Source: torchgen/packaged/autograd/load_derivatives.py and gen_autograd_functions.py, torch 2.13.
"""

import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from gradinspect.errors import GradInspectError
from gradinspect.graph import Record

FORMAT = 3  # increment when the meaning of a field changes
DIGEST_BYTES = 16
Info: TypeAlias = Any  # torchgen's DifferentiabilityInfo, which has no static type here
# at::lstm checks that hx is (h0, c0), so the other positions belong to the other list (torch 2.13, RNN.cpp).
KNOWN_LENGTHS = {("_lstm_mps", "hx"): 2}


class Formula(Record, frozen=True, array_like=True):
    """The formula for the gradients of some arguments: C++, as in derivatives.yaml."""

    inputs: tuple[str, ...]
    text: str


Differentiability: TypeAlias = Literal["formula", "composite", "none"]  # of an operator; composite: composed of others


class Entry(Record, frozen=True, array_like=True):
    """One Backward class."""

    name: str  # as `grad_fn.name()` spells it
    signature: str  # "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    arguments: tuple[str, ...]  # the forward argument at each position of next_functions; "tensors*" is a list
    formulas: tuple[Formula, ...]
    not_differentiable: tuple[str, ...]  # tensor arguments without a position
    saved: tuple[str, ...]  # attributes readable from Python, without "_saved_"
    outputs: tuple[str, ...]  # the members of `saved` that are outputs of the forward op


class Catalog(Record, frozen=True, array_like=True):
    """All generated Backward classes of one torch version."""

    torch_version: str
    entries: Mapping[str, Entry]
    operators: dict[str, Differentiability] = msgspec.field(
        default_factory=dict
    )  # "threshold_backward", for all overloads and backends


class _Cached(Record, frozen=True, array_like=True):
    """A catalog as it is cached."""

    torch_version: str
    entries: dict[str, msgspec.Raw]
    operators: dict[str, Differentiability]


class _CachedEntries(Mapping[str, Entry]):
    """Entries that are read when they are asked for: to read all takes longer than to record a graph."""

    def __init__(self, packed: Mapping[str, msgspec.Raw]) -> None:
        self._packed = packed
        self._read: dict[str, Entry] = {}

    def __getitem__(self, name: str) -> Entry:
        if name not in self._read:
            self._read[name] = msgspec.msgpack.decode(self._packed[name], type=Entry)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


class Sources(NamedTuple):
    """The files that the catalog is built from."""

    derivatives: Path
    native_functions: Path
    tags: Path


@functools.cache
def load_catalog() -> Catalog:
    """Return the catalog of the installed torch, from the user's cache or newly built.

    Raises:
        GradInspectError: torch is not installed, or its sources are missing.
    """
    sources = find_sources()
    version = _torch_version()
    folder = cache_folder(sys.platform, os.environ)
    if folder is None:
        return parse_catalog(sources, version)
    file = cache_file(folder, sources, version)
    catalog = read_cached(file)
    if catalog is None:
        catalog = parse_catalog(sources, version)
        write_cached(file, catalog)
    return catalog


def find_sources() -> Sources:
    """Find the files of the installed torchgen without importing anything.

    Raises:
        GradInspectError: torchgen is missing, or its files are not where torch 2.13 has them.
    """
    spec = importlib.util.find_spec("torchgen")
    if spec is None or not spec.submodule_search_locations:
        raise GradInspectError("PyTorch is not installed.", "Install it: pip install torch")
    packaged = Path(next(iter(spec.submodule_search_locations)), "packaged")
    native = packaged / "ATen" / "native"
    sources = Sources(
        packaged / "autograd" / "derivatives.yaml", native / "native_functions.yaml", native / "tags.yaml"
    )
    for file in sources:
        if not file.is_file():
            raise GradInspectError(f'The installed PyTorch has no "{file.name}".', "Install it from a wheel.")
    return sources


def cache_folder(platform: str, environment: Mapping[str, str]) -> Path | None:
    """Return the user's cache folder, or None if there is none."""
    named = Path(environment.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():  # the XDG specification says to ignore relative paths
        return named / "gradinspect"
    local = Path(environment.get("LOCALAPPDATA", ""))
    if platform == "win32" and local.is_absolute():
        return local / "gradinspect" / "Cache"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home.joinpath(*(("Library", "Caches") if platform == "darwin" else (".cache",)), "gradinspect")


def cache_file(folder: Path, sources: Sources, version: str) -> Path:
    """Name the file of one build; nightly and local builds may share a version."""
    digest = hashlib.blake2b(f"{FORMAT} {version}".encode(), digest_size=8)
    for file in sources:
        digest.update(file.read_bytes())
    return folder / f"catalog-{version}-{digest.hexdigest()}.msgpack"


def read_cached(file: Path) -> Catalog | None:
    """Read a cached catalog; None if it is missing or damaged, so that it is rebuilt."""
    try:
        content = file.read_bytes()
        digest, packed = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
        if digest != _digest(packed):
            return None
        found = msgspec.msgpack.decode(packed, type=_Cached)
    except Exception:
        return None
    return Catalog(found.torch_version, _CachedEntries(found.entries), found.operators)


def _digest(packed: bytes) -> bytes:
    """Return a checksum: a flipped byte may leave a readable but wrong catalog."""
    return hashlib.blake2b(packed, digest_size=DIGEST_BYTES).digest()


def write_cached(file: Path, catalog: Catalog) -> None:
    """Cache a catalog for the next run; a cache that cannot be written is ignored."""
    temporary = file.with_name(f"{file.name}.{secrets.token_hex(8)}.tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            packed = msgspec.msgpack.encode(catalog)
            temporary.write_bytes(_digest(packed) + packed)
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError:
        return


def parse_catalog(sources: Sources, version: str) -> Catalog:
    """Build the catalog with the code of torch's own build."""
    # ruff: noqa: PLC0415  # a cached catalog needs none of it
    from torchgen.api.autograd import match_differentiability_info
    from torchgen.gen import parse_native_yaml
    from torchgen.packaged.autograd.load_derivatives import load_derivatives

    paths = [str(file) for file in sources]
    infos, _ = load_derivatives(*paths)
    entries = {entry.name: entry for entry in _entries(infos, is_readable=True)}
    # NOTE [Derived foreach classes]
    # The build derives most _foreach_* classes from the plain op's, after making the Python types, so they are bare
    # CppFunction objects without saved attributes. The matching adds them to the dict it is given.
    with_foreach = dict(infos)
    functions = parse_native_yaml(*paths[1:]).native_functions
    match_differentiability_info(functions, with_foreach)
    derived = {schema: found for schema, found in with_foreach.items() if schema not in infos}
    entries |= {entry.name: entry for entry in _entries(derived, is_readable=False)}
    operators = _operators(functions, entries.values())
    return Catalog(torch_version=version, entries=dict(sorted(entries.items())), operators=operators)


def operator_of(signature: str) -> str:
    """Return the name of a schema's operator, without its overload: `mul` of `mul.Tensor(Tensor self, ...)`."""
    return signature.partition("(")[0].partition(".")[0]


def _operators(functions: Iterable[Any], entries: Iterable[Entry]) -> dict[str, Differentiability]:
    """Map each operator to whether and how it is differentiable."""
    found: dict[str, Differentiability] = {}
    for function in functions:
        name = str(function.func.name.name)
        if function.has_composite_implicit_autograd_kernel:
            found[name] = "composite"
        else:
            found.setdefault(name, "none")
    found |= {operator_of(entry.signature): "formula" for entry in entries}
    return dict(sorted(found.items()))


def _torch_version() -> str:
    """Read torch's version from its own file: what pip has kept of it is read twenty times slower."""
    spec = importlib.util.find_spec("torch")
    folders = None if spec is None else spec.submodule_search_locations
    for folder in folders or ():
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = Path(folder, "version.py").read_text()
            if found := re.search(r"""^__version__ = ['"]([\w.+-]+)['"]$""", text, re.MULTILINE):
                return found[1]
    return "unknown"


def _entries(infos: Mapping[Any, Mapping[str, Info]], *, is_readable: bool) -> Iterable[Entry]:
    for by_dispatch_key in infos.values():
        for info in by_dispatch_key.values():
            if info.op is not None:  # None if no argument has a derivative
                yield _entry(info, is_readable=is_readable)


def _entry(info: Info, *, is_readable: bool) -> Entry:
    places = [binding.name for binding in info.args_with_derivatives]
    saved = _readable_attributes(info) if is_readable else ()
    # Outputs saved as a whole; those saved only for their sizes have another name.
    outputs = {str(output.nctype.name) for output in info.all_saved_outputs if output.expr == str(output.nctype.name)}
    formulas = (
        Formula(
            inputs=tuple(sorted(derivative.var_names, key=places.index)),
            text=" ".join((derivative.original_formula if is_readable else derivative.formula).split()),
        )
        for derivative in info.derivatives
    )
    return Entry(
        name=info.op,
        signature=str(info.func.func),
        arguments=_arguments(info),
        formulas=tuple(sorted(formulas, key=lambda formula: places.index(formula.inputs[0]))),
        not_differentiable=tuple(info.non_differentiable_arg_names),
        saved=saved,
        outputs=tuple(name for name in saved if name in outputs),
    )


def _arguments(info: Info) -> tuple[str, ...]:
    """Name the positions of `next_functions`: each argument with a derivative has one, in schema order.

    An optional tensor has a position even if it is not given. Only in `_foreach_*` ops are two lists equally long; in
    other ops their positions stay unnamed unless the lengths are known.

    Source: `collect_next_edges` in torch/csrc/autograd/function.h, torch 2.13.
    """
    op = str(info.func.func.name.name)
    arguments: list[str] = []
    for binding in info.args_with_derivatives:
        length = KNOWN_LENGTHS.get((op, binding.name))
        if length is not None:
            arguments += (f"{binding.name}[{index}]" for index in range(length))
        else:
            arguments.append(f"{binding.name}*" if binding.argument.type.is_list_like() else binding.name)
    num_lists = sum(name.endswith("*") for name in arguments)
    return tuple(arguments) if num_lists < 2 or op.startswith("_foreach_") else ()


def _readable_attributes(info: Info) -> tuple[str, ...]:
    """List the `_saved_*` attributes of a class.

    Some saved values have none, such as TensorOptions. Only the generator knows which, so its bindings are used.
    """
    from torchgen.packaged.autograd.gen_autograd_functions import (
        PY_FUNCTION_PROPS_AND_GETTERS,
        process_function,
    )

    return tuple(re.findall(r'"_saved_(\w+)"', process_function(info, PY_FUNCTION_PROPS_AND_GETTERS)))
