"""What PyTorch's own sources say about each generated Backward class.

What comes in: `derivatives.yaml` and `native_functions.yaml`, which every torch wheel carries inside `torchgen`. What
goes out: a `Catalog`, from the name of a grad_fn ("AddBackward0") to its forward schema, the forward argument at each
place of `next_functions`, its formulas, and what it saves. Making it takes over a second, so it is kept in the user's
cache folder. Torch itself is not imported: torchgen is plain Python.

Source: torchgen/packaged/autograd/load_derivatives.py and gen_autograd_functions.py, torch 2.13.
"""

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import secrets
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from gradinspect.errors import GradInspectError
from gradinspect.graph import Record

FORMAT = 3  # raise it when the meaning of a field changes
DIGEST_BYTES = 16
Info: TypeAlias = Any  # torchgen's DifferentiabilityInfo, which has no static type here
# at::lstm checks that hx is (h0, c0), so the rest of the places belongs to the other list (torch 2.13, RNN.cpp).
KNOWN_LENGTHS = {("_lstm_mps", "hx"): 2}


class Formula(Record, frozen=True, array_like=True):
    """How the gradients of some arguments are computed: C++, as written in derivatives.yaml."""

    inputs: tuple[str, ...]
    text: str


Differentiability: TypeAlias = Literal["formula", "composite", "none"]  # of an operator: made of others, or not at all


class Entry(Record, frozen=True, array_like=True):
    """One Backward class."""

    name: str  # as `grad_fn.name()` spells it
    signature: str  # "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    arguments: tuple[str, ...]  # the forward argument at each place of next_functions; "tensors*" is a list
    formulas: tuple[Formula, ...]
    not_differentiable: tuple[str, ...]  # tensor arguments that have no place
    saved: tuple[str, ...]  # attributes that Python can read, without "_saved_"
    outputs: tuple[str, ...]  # those of `saved` that are outputs of the forward op


class Catalog(Record, frozen=True, array_like=True):
    """All generated Backward classes of one torch."""

    torch_version: str
    entries: dict[str, Entry]
    operators: dict[str, Differentiability] = msgspec.field(
        default_factory=dict
    )  # "threshold_backward", all overloads and backends taken together


class Sources(NamedTuple):
    """The files that the catalogue is made from."""

    derivatives: Path
    native_functions: Path
    tags: Path


@functools.cache
def load_catalog() -> Catalog:
    """Return the catalogue of the installed torch: from the user's cache, or freshly made and left there.

    Raises:
        GradInspectError: There is no torch, or it has no sources to read.
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
    """Find the files inside the installed torchgen without importing anything.

    Raises:
        GradInspectError: There is no torchgen, or its files are not where torch 2.13 has them.
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
    """Return where this user's caches belong, or None when there is no such place."""
    named = Path(environment.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():  # the XDG specification has a relative path ignored
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
    """Name the file of one build: two of them may call themselves the same version, as nightly and local builds do."""
    digest = hashlib.blake2b(f"{FORMAT} {version}".encode(), digest_size=8)
    for file in sources:
        digest.update(file.read_bytes())
    return folder / f"catalog-{version}-{digest.hexdigest()}.msgpack"


def read_cached(file: Path) -> Catalog | None:
    """Read a catalogue back; None when there is none, or only a damaged one: whatever is wrong, it is made again."""
    try:
        content = file.read_bytes()
        digest, packed = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
        return msgspec.msgpack.decode(packed, type=Catalog) if digest == _digest(packed) else None
    except Exception:
        return None


def _digest(packed: bytes) -> bytes:
    """Tell a byte that has changed on the disk: it may leave a catalogue that can be read, and is wrong."""
    return hashlib.blake2b(packed, digest_size=DIGEST_BYTES).digest()


def write_cached(file: Path, catalog: Catalog) -> None:
    """Leave a catalogue for the next run. A cache that cannot be written is no reason to stop."""
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
    """Make the catalogue with the code that torch's own build uses."""
    # Imported here, because a catalogue from the cache needs none of it.
    from torchgen.api.autograd import match_differentiability_info  # noqa: PLC0415
    from torchgen.gen import parse_native_yaml  # noqa: PLC0415
    from torchgen.packaged.autograd.load_derivatives import load_derivatives  # noqa: PLC0415

    paths = [str(file) for file in sources]
    infos, _ = load_derivatives(*paths)
    entries = {entry.name: entry for entry in _entries(infos, is_readable=True)}
    # NOTE [Derived foreach classes]
    # The build derives most _foreach_* classes from the plain op's. It does so after it made the Python types, so they
    # are bare CppFunction objects that show no saved attribute. The matching adds them to the dict it is given.
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
    """Tell of each operator of torch whether autograd can go through it, and how."""
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
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _entries(infos: Mapping[Any, Mapping[str, Info]], *, is_readable: bool) -> Iterable[Entry]:
    for by_dispatch_key in infos.values():
        for info in by_dispatch_key.values():
            if info.op is not None:  # None when no argument has a derivative
                yield _entry(info, is_readable=is_readable)


def _entry(info: Info, *, is_readable: bool) -> Entry:
    places = [binding.name for binding in info.args_with_derivatives]
    saved = _readable_attributes(info) if is_readable else ()
    # An output that is saved whole; what is only asked for its sizes goes by another name.
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
    """Name the places of `next_functions`: each argument with a derivative has one, in the order of the schema.

    An optional tensor that is not given has its place. Two lists of one op are as long as each other in `_foreach_*`
    only; in other ops the places stay without names unless the lengths are known.

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

    Some saved values have none, like TensorOptions. Only the generator knows which, so it is asked for the bindings.
    """
    from torchgen.packaged.autograd.gen_autograd_functions import (  # noqa: PLC0415
        PY_FUNCTION_PROPS_AND_GETTERS,
        process_function,
    )

    return tuple(re.findall(r'"_saved_(\w+)"', process_function(info, PY_FUNCTION_PROPS_AND_GETTERS)))
