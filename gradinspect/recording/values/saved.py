"""Read a node's saved attributes without side effects: NOTE [Reading saved tensors] in `torch_api.saved`."""

from collections.abc import Iterator, Sequence
from math import prod
from operator import attrgetter
from typing import Any, cast

import torch

from gradinspect.graph import Origin, SavedTensor, SavedValue, Size, TensorInfo
from gradinspect.recording.names.variables import isinstance_safely
from gradinspect.recording.values.scalar_attributes import saved_value
from gradinspect.recording.values.storages import (
    StorageEntry,
    StorageTable,
    has_inner_tensors,
    plain_tensors,
    storage_key,
)
from gradinspect.recording.values.tensors import TensorInfoTable, count_bytes, plain_size
from gradinspect.torch_api.checkpoints import checkpoint_inputs, is_checkpoint_holder
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.saved import (
    PushedHooks,
    can_read_raw,
    modified_tensor,
    raw_data,
    raw_saved,
    stale_element,
    unpack_hook,
    versions_in,
)
from gradinspect.torch_api.tensors import (
    grad_fn_here,
    grad_fn_of,
    is_leaf,
    is_leaf_here,
    is_view,
    known_version,
    version_of,
)


class SavedNames:
    """The saved attributes of one node class."""

    __slots__ = ("has_context", "is_empty", "known", "outputs", "read_values", "tensors", "values")

    def __init__(
        self,
        tensors: tuple[tuple[str, str], ...],
        values: tuple[str, ...] = (),
        outputs: frozenset[str] = frozenset(),
        *,
        has_context: bool = False,
    ) -> None:
        """Prepare to read nodes of this class.

        Args:
            tensors: (`_raw_saved_x`, `_saved_x`) for each; for custom Functions the latter is `saved_tensors`.
            values: The attributes that are not tensors.
            outputs: The tensors that are outputs of the forward op.
            has_context: Whether nodes are Python objects that may have the user's attributes.
        """
        self.tensors = tensors
        self.values = values
        self.outputs = outputs
        self.has_context = has_context
        self.is_empty = not (tensors or values or has_context)
        self.read_values = attrgetter(*values) if values else None
        self.known: dict[Any, tuple[SavedValue, ...]] = {}  # values -> their records


class SavedReader:
    """Reads the saved attributes of the nodes of one graph."""

    def __init__(
        self,
        storages: StorageTable,
        infos: TensorInfoTable,
        numbers: dict[Any, int],
        identities: Sequence[int] = (),
        hooks: PushedHooks | None = None,
    ) -> None:
        """Share the tables of one capture.

        Args:
            storages: Numbers the storages.
            infos: Describes tensors.
            numbers: Live node -> its id in the record.
            identities: For each node its thread and number.
            hooks: Knows where no hook can be, if torch does not say.
        """
        self._storages = storages
        self._infos = infos
        self._numbers = numbers
        self._identities = identities
        self._hooks = hooks
        self._is_in_model = False
        self._can_read_raw = can_read_raw()
        self._leaves: dict[tuple[int, str, int | None], tuple[torch.Tensor, SavedValue]] = {}
        self._absent: dict[tuple[str, int | None, bool], SavedValue] = {}

    def read(self, node: Any, names: SavedNames, *, is_in_model: bool = False) -> tuple[SavedValue, ...]:
        """Record everything that a node saves. Runs no hook, never raises.

        Args:
            node: The live node.
            names: The attributes of its class.
            is_in_model: Whether a module made it.
        """
        self._is_in_model = is_in_model
        found: list[SavedValue] = []
        for raw_name, name in names.tensors:
            try:
                raw = getattr(node, raw_name)
            except RuntimeError:  # a freed list raises
                found.append(SavedValue(name=name, kind="tensor", status="freed"))
                continue
            is_output = name in names.outputs
            if type(raw) is list or type(raw) is tuple:
                found.extend(self._read_list(node, name, raw, is_output))
            else:
                found.append(self._read_tensor(node, name, raw, is_output))
        if names.values:
            found.extend(self._read_values(node, names))
        if names.has_context:
            found.extend(self._read_context(node))
        return tuple(found)

    def _read_values(self, node: Any, names: SavedNames) -> Sequence[SavedValue]:
        """Record the attributes that are not tensors; nodes with equal values share the records."""
        try:
            values = names.read_values(node)  # type: ignore[misc]  # set if there are values
            key = (values, *map(type, values)) if type(values) is tuple else (values, type(values))
            known = names.known.get(key)
        except Exception:  # an attribute cannot be read or hashed
            return [self._read_value(node, name) for name in names.values]
        if known is None:
            known = tuple([self._read_value(node, name) for name in names.values])
            if not any(value == 0 and isinstance(value, float) for value in key):  # 0.0 and -0.0 are the same key
                names.known[key] = known
        return known

    def _read_value(self, node: Any, name: str) -> SavedValue:
        try:
            value = getattr(node, name)
        except Exception:  # recorded as unreadable
            return SavedValue(name=name, kind="object", status="unreadable")
        if isinstance(value, torch.Tensor):
            return self._strange_value(name, None, value, is_output=False)
        return saved_value(name, value)

    def _read_list(self, node: Any, name: str, raws: Any, is_output: bool) -> Iterator[SavedValue]:
        if not raws:
            yield SavedValue(name=name, kind="tuple", value=())
        outputs = _outputs_among(node, name, raws) if name == "saved_tensors" else frozenset()
        for index, raw in enumerate(raws):
            yield self._read_tensor(node, name, raw, is_output or index in outputs, index)

    def _read_tensor(self, node: Any, name: str, raw: Any, is_output: bool, index: int | None = None) -> SavedValue:
        if not self._can_read_raw:
            return self._read_unhooked(node, name, is_output, index)
        data = raw_data(raw)
        hook = unpack_hook(raw)
        if hook is not None:
            return self._packed_value(name, index, data, hook)
        if data is None:
            return self._absent_value(node, name, index)
        try:
            version = version_of(data)
        except Exception:  # inference tensors have no version, and a subclass may have a property that fails
            stale = None if ops.is_inference(data) else _stale_versions(node, name, raw, index)
            return self._strange_value(name, index, data, is_output=is_output, versions=stale)
        versions = _stale_versions(node, name, raw, index) if version else None
        if versions is not None:
            return self._strange_value(name, index, data, is_output=is_output, versions=versions)
        return self._live_value(name, index, data, version, is_output)

    def _read_unhooked(self, node: Any, name: str, is_output: bool, index: int | None) -> SavedValue:
        """Read a value as the engine does, if it cannot have a hook: NOTE [Where no hook can be]."""
        if self._hooks is None or not self._hooks.is_free(self._identities[self._numbers[node]]):
            return SavedValue(name=name, index=index, kind="tensor", status="unreadable")
        try:
            tensor = getattr(node, name) if index is None else getattr(node, name)[index]
        except RuntimeError as error:
            return _refused_value(name, index, error)
        if tensor is None:
            return SavedValue(name=name, index=index, kind="none")
        version = known_version(tensor)
        if version is None:
            return self._strange_value(name, index, tensor, is_output=is_output)
        return self._live_value(name, index, tensor, version, is_output)

    def _absent_value(self, node: Any, name: str, index: int | None) -> SavedValue:
        """Distinguish a value freed by backward from one that was never set; no hook is left to run."""
        try:
            getattr(node, name)
            is_freed = False
        except RuntimeError:
            is_freed = True
        key = (name, index, is_freed)
        value = self._absent.get(key)
        if value is None:
            value = SavedValue(
                name=name, index=index, kind="tensor" if is_freed else "none", status="freed" if is_freed else None
            )
            self._absent[key] = value
        return value

    def _live_value(
        self, name: str, index: int | None, tensor: torch.Tensor, version: int, is_output: bool
    ) -> SavedValue:
        if id(type(tensor)) in self._infos.plain_types:
            try:
                return self._plain_value(name, index, tensor, version, is_output)
            except (RuntimeError, NotImplementedError, TypeError):  # sparse, nested, symbolic, wrapped by functorch
                pass
        return self._strange_value(name, index, tensor, is_output=is_output)

    def _plain_value(
        self, name: str, index: int | None, tensor: torch.Tensor, version: int, is_output: bool
    ) -> SavedValue:
        """Record a plain dense tensor: the common case, which must be fast."""
        maker = None if version and is_view(tensor) else grad_fn_here(tensor)
        origin: Origin
        is_number = not tensor.ndim  # `2.0 * x` saves one of its own in each node: nothing is gained by keeping it
        if maker is not None:
            made_by, origin = self._numbers.get(maker), "output" if is_output else "activation"
        else:
            key = (id(tensor), name, index)
            if not is_number and key in self._leaves:  # a parameter saved by many nodes is the same object each time
                return self._leaves[key][1]
            made_by, origin = None, self._unmade_origin(tensor, version, is_output)
        storage = self._storages.look_up(tensor, origin)
        record = SavedTensor(
            info=self._infos.of_plain_tensor(tensor),
            num_bytes=tensor.nbytes,
            storage=storage.number,
            strides=None if ops.is_contiguous(tensor) else ops.stride(tensor),
            storage_offset=ops.storage_offset(tensor),
            version=version,
            made_by=made_by,
        )
        if origin != "input":
            return SavedValue(name=name, index=index, kind="tensor", tensor=record, status="live", origin=origin)
        value = SavedValue(
            name=name,
            index=index,
            kind="tensor",
            tensor=record,
            status="live",
            origin=origin if storage.name is None else storage.origin,
            origin_name=storage.name,
        )
        if not is_number:
            self._leaves[key] = (tensor, value)
        return value

    def _origin_of(self, tensor: torch.Tensor, version: int, is_output: bool) -> tuple[int | None, Origin]:
        """Find the node whose forward made a tensor, and the tensor's origin.

        Reading the grad_fn of a view whose base was modified since creates a new node, so it is not read.
        """
        maker = None if version and is_view(tensor) else grad_fn_here(tensor)
        if maker is None:
            return None, self._unmade_origin(tensor, version, is_output)
        return self._numbers.get(maker), "output" if is_output else "activation"

    def _unmade_origin(self, tensor: torch.Tensor, version: int, is_output: bool) -> Origin:
        """Return the origin of a tensor that no node made, as far as it is known."""
        if is_output:
            return "output"
        return "activation" if version and is_view(tensor) and not is_leaf_here(tensor) else self._leaf_origin(tensor)

    def _leaf_origin(self, tensor: torch.Tensor) -> Origin:
        """Return the origin of a leaf: from outside the model, or made in it, such as a dropout mask."""
        if not self._is_in_model or tensor.requires_grad:
            return "input"
        key = storage_key(tensor)
        return "input" if key is None or self._storages.is_from_outside(key) else "activation"

    def _strange_value(
        self,
        name: str,
        index: int | None,
        tensor: torch.Tensor,
        *,
        is_output: bool,
        versions: tuple[int, int] | None = None,
    ) -> SavedValue:
        """Record any tensor: slower, but without assumptions."""
        try:
            version = known_version(tensor)
            made_by, origin = self._origin_of(tensor, version or 0, is_output)
            storage = self._storage_of(tensor, origin)
            strides, offset = _strides_of(tensor)
            record = SavedTensor(
                info=self._infos.of_tensor(tensor),
                num_bytes=count_bytes(tensor),
                storage=None if storage is None else storage.number,
                strides=strides,
                storage_offset=offset,
                version=version,
                expected_version=None if versions is None else versions[1],
                made_by=made_by,
            )
            held = () if storage is not None else self._storages.numbers_within(tensor)
        except Exception:  # an inspector does not fail on what it inspects
            return SavedValue(name=name, index=index, kind="tensor", status="unreadable")
        is_known = storage is not None and storage.name is not None and origin == "input"
        return SavedValue(
            name=name,
            index=index,
            kind="tensor",
            tensor=record,
            status="live" if versions is None else "modified",
            origin=storage.origin if storage is not None and is_known else origin,
            origin_name=storage.name if storage is not None and is_known else None,
            held_storages=held,
        )

    def _storage_of(self, tensor: torch.Tensor, origin: Origin) -> StorageEntry | None:
        """Find the storage; None for tensors composed of others: sparse ones and wrapper subclasses."""
        if id(type(tensor)) not in self._infos.plain_types and has_inner_tensors(tensor):
            return None
        try:
            return self._storages.look_up(tensor, origin)
        except (RuntimeError, NotImplementedError):
            return None

    def _packed_value(self, name: str, index: int | None, data: object, hook: Any) -> SavedValue:
        is_checkpointed = is_checkpoint_holder(data)
        return SavedValue(
            name=name,
            index=index,
            kind="tensor",
            status="checkpointed" if is_checkpointed else "packed",
            packed_as=f"{type(data).__module__}.{type(data).__qualname__}".removeprefix("builtins."),
            held_storages=self._storages.numbers_within(checkpoint_inputs(hook) if is_checkpointed else data),
            unpack_hook=getattr(hook, "__qualname__", None) or type(hook).__qualname__,
        )

    def _read_context(self, node: Any) -> Iterator[SavedValue]:
        """Record the attributes of a custom Function's ctx: its options, and what the user stored."""
        yield self._read_value(node, "needs_input_grad")
        for name, value in vars(node).items():
            if isinstance_safely(value, (torch.Tensor,)):
                yield self._strange_value(f"ctx.{name}", None, cast("torch.Tensor", value), is_output=False)
                continue
            yield saved_value(f"ctx.{name}", value)
            if isinstance_safely(value, (list, tuple, dict)):
                tensors = list(plain_tensors(value))
                for index, tensor in enumerate(tensors):
                    yield self._strange_value(f"ctx.{name}", index, tensor, is_output=False)


def raw_tensor(live: Any, value: SavedValue) -> torch.Tensor | None:
    """Fetch a recorded tensor from its live node; None if it was freed or is behind hooks.

    NOTE [Reading saved tensors] in `torch_api.saved`.
    """
    if value.status not in {"live", "modified"}:
        return None
    try:
        if not can_read_raw():
            return _engine_tensor(live, value)
        raw = raw_saved(live, value.name, value.index)
        data = raw_data(raw)
        return data if isinstance(data, torch.Tensor) and unpack_hook(raw) is None else None
    except (AttributeError, RuntimeError, IndexError):
        return None


def _refused_value(name: str, index: int | None, error: RuntimeError) -> SavedValue:
    """Record a value that the engine would reject, as far as its error describes it."""
    versions, looks = versions_in(error), modified_tensor(error)
    if versions is None:
        return SavedValue(name=name, index=index, kind="tensor", status="freed")
    if looks is None:
        return SavedValue(name=name, index=index, kind="tensor", status="modified")
    shape, dtype, device = looks
    num_bytes = prod(shape) * getattr(torch, dtype).itemsize
    info = TensorInfo(shape=shape, dtype=dtype, device=device)
    record = SavedTensor(info=info, num_bytes=num_bytes, version=versions[0], expected_version=versions[1])
    return SavedValue(name=name, index=index, kind="tensor", tensor=record, status="modified")


def _engine_tensor(live: Any, value: SavedValue) -> torch.Tensor | None:
    """Fetch a tensor as the engine does; its record says that it has no hook and is unmodified."""
    if value.status != "live" or value.tensor is None:
        return None
    found = getattr(live, value.name)
    found = found if value.index is None else found[value.index]
    return found if isinstance(found, torch.Tensor) else None


def _strides_of(tensor: torch.Tensor) -> tuple[tuple[Size, ...] | None, int]:
    """Return the strides of a non-contiguous tensor, and its offset, if it has them."""
    try:
        strides = None if ops.is_contiguous(tensor) else tuple(plain_size(stride) for stride in ops.stride(tensor))
        offset = ops.storage_offset(tensor)
    except (RuntimeError, NotImplementedError):
        return None, 0
    return strides, offset if type(offset) is int else 0


def _stale_versions(node: Any, name: str, raw: Any, index: int | None) -> tuple[int, int] | None:
    """Return (current, expected) version if the engine would reject this saved tensor, else None."""
    try:
        getattr(node, name)
    except RuntimeError as error:
        versions = versions_in(error)
        return versions if versions is None or index is None else stale_element(raw, versions)
    return None


def _outputs_among(node: Any, name: str, raws: Any) -> frozenset[int]:
    """Find the saved tensors of a custom Function that are its own outputs: unpacked, they point back to the node."""
    if not can_read_raw() or any(unpack_hook(raw) is not None for raw in raws):
        return frozenset()
    try:
        tensors = getattr(node, name)
    except RuntimeError:
        return frozenset()
    return frozenset(
        index
        for index, tensor in enumerate(tensors)
        if tensor is not None and not is_leaf(tensor) and not is_view(tensor) and grad_fn_of(tensor) is node
    )
