"""How much each module's forward has made that backward holds."""

from collections import defaultdict
from collections.abc import Callable, Iterator, MutableMapping

from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from gradinspect.analyses.planning.changes import ModuleUse, NamedPlace, SequencePart
from gradinspect.analyses.selection.name_patterns import containing_paths
from gradinspect.analyses.structure.call_names import without_wrappers
from gradinspect.observers.memory.device_ledgers import DeviceLedgers
from gradinspect.observers.planning.outermost_modules import OutermostModules
from gradinspect.observers.planning.unrepeatable import Unrepeatable
from gradinspect.recording.modules import called_around
from gradinspect.recording.names.names import module_paths
from gradinspect.runner.run import Run
from gradinspect.torch_api.modules import compiled_module, own_buffers, own_children


class ModuleUses:
    """Sums it up at a backward call; the last one counts."""

    def __init__(self, run: Run, modules: OutermostModules) -> None:
        """Start with nothing."""
        self.uses: tuple[ModuleUse, ...] = ()
        self._run = run
        self._modules = modules
        self.unrepeatable = Unrepeatable()
        self._compiled: MutableMapping[nn.Module, None] = WeakIdKeyDictionary()  # those that run in compiled code

    @property
    def roots(self) -> tuple[NamedPlace, ...]:
        """The outermost modules."""
        return self._modules.roots(self._run.base_folder)

    @property
    def is_compiled_whole(self) -> bool:
        """Whether an outermost module runs in compiled code: one node of backward then returns all of its gradients."""
        return any(use.is_compiled and not without_wrappers(use.path) for use in self.uses)

    def attach(self, note: Callable[[Exception], object]) -> None:
        """Watch calls of modules as long as something is recorded.

        Args:
            note: Called with an error of ours.
        """
        self.unrepeatable.attach(self._run.recorder, note)
        self._run.recorder.before_modules(self._entered, note)

    def _entered(self, module: nn.Module, _args: object) -> None:
        if self._run.recorder.is_in_compiled:
            self._compiled[module] = None

    def note(self, ledgers: DeviceLedgers) -> None:
        """Add up what is alive: backward is about to start."""
        saved: dict[int, int] = defaultdict(int)  # number that the recorder gave a module -> bytes that its calls made
        recorder = self._run.recorder
        for allocation in ledgers.alive():
            call = allocation.maker.call
            if allocation.purpose.kind == "saved" and call is not None:
                for number in called_around(recorder, call):
                    saved[number] += allocation.num_bytes
        by_module = {id(recorder.modules[number]()): size for number, size in saved.items()}
        called = {id(module) for reference in recorder.modules if (module := reference()) is not None}
        self.uses = tuple(
            use
            for number, root in self._modules.alive()
            for use, module in self._uses_in(number, root, by_module)
            if id(module) in called
        )

    def _uses_in(self, number: int, root: nn.Module, saved: dict[int, int]) -> list[tuple[ModuleUse, nn.Module]]:
        paths, writes_input = module_paths(root), self.unrepeatable.writes_input
        prefix_of = self._modules.prefixes_of(number)
        keeps = {
            outer
            for path, module in paths
            if own_buffers(module).get("num_batches_tracked") is not None
            for outer in containing_paths(path)
        }
        return [
            (
                ModuleUse(
                    root=number,
                    path=path,
                    prefix=prefix_of(path),
                    class_name=type(inner).__name__,
                    saved_bytes=saved.get(id(module), saved.get(id(inner), 0)),
                    has_parts=bool(own_children(module)),
                    keeps_statistics=path in keeps,
                    writes_input=writes_input(module),
                    unrepeatable=self.unrepeatable.reason(module),
                    is_compiled=module in self._compiled,
                    parts=tuple(
                        SequencePart(
                            saved_bytes=saved.get(id(part), 0), writes_input=self.unrepeatable.writes_input(part)
                        )
                        for part in _parts(module)
                    ),
                ),
                module,
            )
            for path, module in paths
            for inner in (compiled_module(module) or module,)
        ]


def _parts(module: nn.Module) -> Iterator[nn.Module]:
    """Yield the modules of a Sequential that runs them as torch does."""
    is_plain = type(module).forward is nn.Sequential.forward and "forward" not in vars(module)
    for part in own_children(module).values() if is_plain else ():
        if part is not None:
            yield part
