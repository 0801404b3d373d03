"""Keep our imports and those of the user's program separate, in one process.

A script may be next to files with the names of modules that we use: secrets.py, rich.py, html.py. `import secrets` in
the script must import the script's file, as with `python script.py`, while we keep ours.

NOTE [Two sets of modules]
Before the program starts, all modules that Python does not load at startup are removed from `sys.modules` and set
aside. `SetAsideFinder`, a finder, comes first when the program imports one of those names. It asks the other finders
where the import leads: if that is the file of the module set aside, the program gets this module, because nothing may
be loaded twice; else it gets its own. While our code runs in the middle of the program, `import` in its thread leads to
our modules; other threads go on with the program's modules, path, finders and builtins. The modules of all threads are
exchanged only to load more of a package that the program has not loaded, or has another one of.

This file imports only what Python has loaded at startup, and is loaded before all of ours but `__init__`,
`methods` and `own_builtins`.
"""

import builtins
import os
import sys
from _thread import RLock, get_ident  # of which `threading`, which may be a file of the user's, is made

from gradinspect.own_builtins import OWN

TYPE_CHECKING = False  # `typing` may be a file of the user's
if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def _names_at_startup() -> frozenset[str]:
    """List the modules that Python loads at startup; `site` comes last."""
    names = list(sys.modules)
    last = "site" if "site" in names else "__main__"  # python -S
    return frozenset(names[: names.index(last) + 1])


_MODULE = type(sys)
_MAIN_OF_CHILDREN = (
    "__mp_main__"  # multiprocessing names the main module so, in spawned processes and where it is loaded
)
_LIST = list  # the class, since the name may be replaced
_FILES = sys.modules["_frozen_importlib_external"].PathFinder
_FUNCTIONS = (type(_names_at_startup), type(len))
_IMPORT = __import__
_OURS = f"{__name__.partition('.')[0]}."  # our patches may be in other modules
STARTUP_NAMES = _names_at_startup()
PATH_AT_START = tuple(sys.path)
_THE_BUILTINS = builtins.__dict__
_BUILTINS = OWN


def own_search_path(path: "Iterable[str]") -> list[str]:
    """Put the folders of Python and of packages before those that the user put first."""
    added = {os.path.abspath(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder}  # noqa: PTH100
    folders = list(path)
    first = folders[:1] if not sys.flags.safe_path else []  # the folder of the started script, or the current one
    last = [*first, *(folder for folder in folders[len(first) :] if os.path.abspath(folder) in added)]  # noqa: PTH100
    return [*(folder for folder in folders if folder not in last), *last]


class OwnSearchPath:
    """Import our own modules from where they are installed. Use it as a context manager."""

    def __enter__(self) -> None:
        """Search the user's folders last."""
        self._path, self._own = sys.path, own_search_path(sys.path)
        sys.path = self._own

    def __exit__(self, *_error: object) -> None:
        """Restore the search path, unless a program has set its own."""
        if sys.path is self._own:
            sys.path = self._path


class SetAsideFinder:
    """Finds modules that were set aside. NOTE [Two sets of modules]."""

    def __init__(self) -> None:
        """Start empty."""
        self.aside: dict[str, ModuleType] = {}
        self.groups: dict[str, tuple[str, ...]] = {}  # modules known to be loaded together with a name, in that order
        self._known: dict[str, ModuleType] = {}  # all modules set aside

    def hide(self, visible: "Iterable[str]") -> None:
        """Set aside all modules except some."""
        kept = {*visible, "__main__"}
        for name in list(sys.modules):
            if name not in kept and not name.startswith("encodings.") and sys.modules[name] is not None:  # None: barred
                module = self.aside.setdefault(name, sys.modules.pop(name))
                self._known[name] = module

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "ModuleSpec | None":
        """Return the module set aside if the import leads to the same file."""
        module = self.aside.get(name)
        if module is None or target is not None:  # a reload must load
            return None
        original: ModuleSpec | None = getattr(module, "__spec__", None)
        package = name.rpartition(".")[0]
        if not package or sys.modules.get(package) is not self._known.get(package):
            found = self._found_by_others(name, path, is_asked_in_turn=True)
            if found is None or original is None or not _is_same_place(found, original):
                return found
        return _Returned(self, module, original).spec_of(name)

    def restore(self, name: str) -> None:
        """Make a module visible, with those loaded together with it, because some look themselves up."""
        todo = [name]
        while todo:
            current = todo.pop()
            self._show(current)
            if current == "multiprocessing":
                self._show(_MAIN_OF_CHILDREN)
            if current in self.groups:
                for other in self.groups[current]:
                    self._show(other)
            else:
                todo += [other for other in self._loaded_with(current) if self._is_reachable(other)]

    def _show(self, name: str) -> None:
        module = self.aside.pop(name, None)
        if name == _MAIN_OF_CHILDREN:  # the started one, by whose name they send what its classes have made
            module = sys.modules.get("__main__", module)
        if module is not None:
            sys.modules.setdefault(name, module)

    def _loaded_with(self, name: str) -> "list[str]":
        """List the modules that a module references, directly or through functions and classes."""
        inside = f"{name}."
        found = set()
        for value in list(vars(sys.modules[name]).values()) if name in sys.modules else ():
            kind = type(value)  # isinstance would trigger warnings of some objects
            if issubclass(kind, _MODULE):
                other = value.__dict__.get("__name__")
                found.add(
                    "" if str(other).startswith(inside) else other
                )  # outside modules may have been loaded by anything
            elif issubclass(kind, type):
                found.add(value.__dict__.get("__module__"))
            elif kind is _FUNCTIONS[0] or kind is _FUNCTIONS[1]:
                found.add(value.__module__)
        return [
            other for other in found if type(other) is str and other in self.aside and not f"{other}.".startswith(_OURS)
        ]

    def _is_reachable(self, name: str) -> bool:
        """Return whether importing a module set aside would lead to it, without another module in the way."""
        top = name.partition(".")[0]
        module = self.aside.get(top)
        if module is None:
            return sys.modules.get(top) is self._known.get(top)
        found, original = self._found_by_others(top, None), getattr(module, "__spec__", None)
        return found is not None and original is not None and _is_same_place(found, original)

    def _found_by_others(self, name: str, path: "Any", *, is_asked_in_turn: bool = False) -> "ModuleSpec | None":
        """Ask the other finders; in an import, which asks all in turn, those before this one have found nothing."""
        lists = [one.finders if one.__class__ is _ReplacedFinders else (one,) for one in sys.meta_path]
        finders = [finder for finders in lists for finder in finders]
        if is_asked_in_turn:
            finders = finders[next((place for place, finder in enumerate(finders) if finder is self), 0) :]
        return _found_by([finder for finder in finders if finder is not self], name, path)


class _Returned:
    """The loader of a module that is already loaded."""

    def __init__(self, finder: SetAsideFinder, module: "ModuleType", spec: "ModuleSpec | None") -> None:
        self._finder = finder
        self._module = module
        self._spec = spec

    def spec_of(self, name: str) -> "ModuleSpec":
        """Return the spec of the module."""
        spec: ModuleSpec = type(sys.__spec__)(name, self)  # type: ignore[arg-type]  # it implements the protocol
        if self._spec is not None:
            spec.origin, spec.cached = self._spec.origin, self._spec.cached
            spec.has_location = self._spec.has_location
            spec.submodule_search_locations = self._spec.submodule_search_locations
        return spec

    def __getattr__(self, name: str) -> "Any":
        """Delegate to the real loader, for example to read the source."""
        return getattr(getattr(self._spec, "loader", None), name)

    def create_module(self, _spec: "ModuleSpec") -> "ModuleType":
        return self._module

    def exec_module(self, module: "ModuleType") -> None:
        name = module.__spec__.name if module.__spec__ is not None else module.__name__
        try:  # noqa: SIM105  # contextlib may be a file of the user's
            module.__spec__ = self._spec
        except AttributeError:  # of a module that takes no other attributes, as torch's settings
            pass
        self._finder.restore(name)


def _is_same_place(found: "ModuleSpec", original: "ModuleSpec") -> bool:
    if found.origin is not None and original.origin is not None:
        return found.origin == original.origin or _real(found.origin) == _real(original.origin)
    places = found.submodule_search_locations, original.submodule_search_locations
    return None not in places and list(places[0] or ()) == list(places[1] or ())


def _real(file: str) -> str:
    return os.path.realpath(file)


class OwnBuiltins:
    """Call builtins as they were before the program, which may have replaced some. Use it as a context manager.

    Other threads of the program call its own functions meanwhile. Calls none of them itself.
    """

    __slots__ = ("_thread",)

    def __enter__(self) -> None:
        """Put back what the program replaced, for this thread."""
        with _switch.lock:
            here = self._thread = get_ident()
            _switch.threads[here] = _switch.threads.get(here, 0) + 1
            for name, value in _BUILTINS.items():
                theirs = _THE_BUILTINS.get(name, _MISSING)
                if theirs is not value and theirs is not _switch.shown.get(name, value):
                    _switch.theirs[name] = theirs
                    _switch.shown[name] = _THE_BUILTINS[name] = _for_each_thread(value, theirs)

    def __exit__(self, *_error: object) -> None:
        """Let the program have its own again."""
        with _switch.lock:
            here = self._thread  # which a thread that ends the process may not be
            _switch.threads[here] -= 1
            if not _switch.threads[here]:
                del _switch.threads[here]
            if not _switch.threads:
                _switch.give_back()


class _Switch:
    """The threads that run our own code, and the builtins that the program has replaced."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.threads: dict[int, int] = {}  # how often, one inside the other
        self.importing: dict[int, int] = {}  # those whose import statements lead to our modules
        self.theirs: dict[str, Any] = {}
        self.shown: dict[str, Any] = {}  # what stands in for them

    def give_back(self) -> None:
        """Let the program have its own."""
        for name, theirs in self.theirs.items():
            if _THE_BUILTINS.get(name, _MISSING) is not self.shown[name]:  # another thread has replaced it again
                continue
            if theirs is _MISSING:
                del _THE_BUILTINS[name]
            else:
                _THE_BUILTINS[name] = theirs
        self.theirs, self.shown = {}, {}

    def forked(self) -> None:
        """Forget the threads that a child process does not have; one of them may have held the lock."""
        self.lock, here = RLock(), get_ident()
        for threads in (self.threads, self.importing):
            for thread in [one for one in threads if one != here]:
                del threads[thread]
        if not self.threads:
            self.give_back()


_switch = _Switch()
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_switch.forked)
_MISSING = object()
_METHOD = type(_switch.forked)


def _for_each_thread(ours: "Any", theirs: "Any") -> "Any":
    """Stand in for a function of the program; a class is one for all threads."""
    is_called = ours.__class__ in _FUNCTIONS or ours.__class__ is _METHOD
    return _ForEachThread(ours, theirs) if is_called and theirs is not _MISSING else ours


class _ForEachThread:
    """A function that is another one in our threads. It is looked up, so that no traceback shows a line of ours."""

    __slots__ = ("_ours", "_theirs")

    def __init__(self, ours: "Any", theirs: "Any") -> None:
        self._ours, self._theirs = ours, theirs

    @property
    def __call__(self) -> "Any":
        return self._ours if get_ident() in _switch.threads else self._theirs


class Imports:
    """The import state (loaded modules, search path, finders), once for us and once for the program.

    It includes the builtins, because a program may replace what our functions call.

    Created before the program runs, while everything is ours.
    """

    def __init__(self) -> None:
        """Store the current state."""
        self._ours = _Machinery(sys.path, list(sys.meta_path), list(sys.path_hooks))
        self._modules = _without_main()
        self._finder = SetAsideFinder()
        self._finders = _Finders(_OwnThreadsFinder(self._ours))
        self._builtins = OwnBuiltins()
        self._num_takes = 0  # by several threads, or one inside the other
        self._replaced: dict[str, ModuleType | None] = {}  # the program's modules meanwhile; None: it is not loaded
        self._theirs: _Machinery | None = None  # when the program has ended

    def start_program(self, first_folder: str | None) -> None:
        """Set up the state in which Python starts a program.

        Args:
            first_folder: The first folder of the program's search path; None: unchanged.
        """
        self._modules = {**_without_main(), **self._modules}
        path = list(PATH_AT_START)
        if first_folder is not None and not sys.flags.safe_path:
            path[:1] = [first_folder]
        sys.path = path
        self._finder.hide(STARTUP_NAMES)
        sys.meta_path.insert(0, self._finder)
        _BUILTINS["__import__"] = self._import

    def import_as_program(self, name: str, first_folder: str | None) -> None:
        """Import a package as the program would, with the program's files first on the search path.

        Raises:
            BaseException: Anything the import raises.
        """
        path = sys.path
        self.start_program(first_folder)
        try:
            __import__(name)
            inside = [other for other in self._finder.aside if other.startswith(f"{name}.")]
            self._finder.groups[name] = tuple(_after_startup([*sys.modules, *inside]))
        finally:
            sys.meta_path.remove(self._finder)
            sys.path = path
            self._finder.aside.update({name: sys.modules[name] for name in _after_startup([*sys.modules])})
            sys.modules.update({**self._finder.aside, **self._modules})

    def restored(self) -> "RestoredImports":
        """Switch to our builtins and imports temporarily, in the middle of the program, in this thread."""
        return RestoredImports(self)

    def begin(self, thread: int) -> None:
        """Let this thread import our modules, on our search path."""
        with _switch.lock:
            _switch.importing[thread] = _switch.importing.get(thread, 0) + 1
            self._finders.take()

    def end(self, thread: int) -> None:
        """Let it import the program's again."""
        with _switch.lock:
            self._finders.give()
            _switch.importing[thread] -= 1
            if not _switch.importing[thread]:
                del _switch.importing[thread]

    def _import(
        self,
        name: str,
        globals: "Any" = None,  # noqa: A002  # as in `__import__`
        locals: "Any" = None,  # noqa: A002
        fromlist: "Any" = (),
        level: int = 0,
    ) -> "Any":
        """Do what `__import__` does."""
        if get_ident() not in _switch.importing:
            return _IMPORT(name, globals, locals, fromlist, level)
        whole = _absolute(name, globals, level)
        module, top = self._modules.get(whole), whole.partition(".")[0]
        if module is not None and all(hasattr(module, one) for one in fromlist or ()):
            return module if fromlist else self._modules[top]
        if sys.modules.get(top) is self._modules.get(top):
            return _IMPORT(name, globals, locals, fromlist, level)
        self.take()
        try:
            return _IMPORT(name, globals, locals, fromlist, level)
        finally:
            self.give()

    def restore(self) -> None:
        """Switch to our import state for good."""
        self._builtins.__enter__()
        self.take()
        self._theirs = _current()
        _make_current(self._ours)

    def hand_back(self) -> None:
        """Switch to the program's import state for its last handlers."""
        if self._theirs is not None:
            _make_current(self._theirs)
            self._theirs = None
            self.give()
            self._builtins.__exit__()
            self._sort_modules()

    def _sort_modules(self) -> None:
        """Sort the modules by load order, because Python clears them in reverse at exit."""
        for name in [*self._modules, *(name for name in sys.modules if name not in self._modules)]:
            if name in sys.modules:
                sys.modules[name] = sys.modules.pop(name)

    def take(self) -> None:
        """Switch to our modules, and let our threads import on our search path."""
        with _switch.lock:
            self._num_takes += 1
            if self._num_takes > 1:
                return
            modules = sys.modules
            for name, module in self._modules.items():  # thousands, of which the program has replaced few, if any
                loaded = modules.get(name)
                if loaded is not module:
                    self._replaced[name] = loaded
                    modules[name] = module
            self._finders.take()

    def give(self) -> None:
        """Switch back to the program's state."""
        with _switch.lock:
            self._num_takes -= 1
            if self._num_takes:
                return
            for name, module in self._replaced.items():
                if module is None:
                    self._finder.aside.setdefault(name, sys.modules.pop(name, self._modules[name]))
                else:
                    sys.modules[name] = module
            self._replaced = {}
            self._finders.give()


class _Finders:
    """The program's finders, and for a while ours before them. No list is shortened: a thread may be going along it."""

    def __init__(self, first: "_OwnThreadsFinder") -> None:
        self._first = first
        self._num_takes = 0
        self._theirs: Any = None
        self._others: list[Any] = []
        self._shown: list[Any] = []

    def take(self) -> None:
        """Show another list, with ours."""
        self._num_takes += 1
        if self._num_takes == 1:
            self._theirs = sys.meta_path
            self._others = list(self._theirs) if self._theirs.__class__ is _LIST else [_ReplacedFinders(self._theirs)]
            self._shown = [self._first, *self._others]
            sys.meta_path = self._shown

    def give(self) -> None:
        """Show theirs, with what an import has changed."""
        self._num_takes -= 1
        if not self._num_takes and sys.meta_path is self._shown:
            sys.meta_path = self._theirs
            others = [finder for finder in self._shown if finder is not self._first]
            if self._theirs.__class__ is _LIST and [*map(id, others)] != [*map(id, self._others)]:
                self._theirs[:] = others


class RestoredImports:
    """Our import state in the middle of the program. Use it as a context manager."""

    def __init__(self, imports: Imports) -> None:
        """Store the imports."""
        self._imports = imports
        self._builtins = OwnBuiltins()
        self._thread = get_ident()

    def __enter__(self) -> None:
        """Switch to our state."""
        self._builtins.__enter__()
        self._imports.begin(self._thread)

    def __exit__(self, *_error: object) -> None:
        """Switch back."""
        self._imports.end(self._thread)
        self._builtins.__exit__()


def _absolute(name: str, namespace: "Any", level: int) -> str:
    """Return the absolute name of what an import statement names; "" if it is not known."""
    package = namespace.get("__package__") if level and namespace else None
    if package is None:
        return "" if level else name
    base = package.rsplit(".", level - 1)[0]
    return f"{base}.{name}" if name else base


class _OwnThreadsFinder:
    """Finds what our own code imports while the program runs; other threads go on with the program's finders."""

    def __init__(self, ours: "_Machinery") -> None:
        self._ours = ours

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "ModuleSpec | None":
        """Return what our finders find.

        Raises:
            ModuleNotFoundError: They find nothing: the program's must not be asked.
        """
        if get_ident() not in _switch.threads:
            return None
        spec = _found_by(self._ours.meta_path, name, path, target, self._ours.path)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return spec


class _ReplacedFinders:
    """The finders of a program that has replaced the list of them; they are asked in the thread that imports."""

    def __init__(self, finders: "Any") -> None:
        self.finders = finders

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "ModuleSpec | None":
        """Return what they find."""
        return _found_by(self.finders, name, path, target)


def _found_by(
    finders: "Any", name: str, path: "Any", target: "Any" = None, top_path: "Any" = None
) -> "ModuleSpec | None":
    """Ask finders in their order; Python's own one for files searches `top_path` instead of `sys.path`, if given."""
    for finder in list(finders):
        find = getattr(finder, "find_spec", None)
        is_of_files = finder is _FILES and path is None
        spec: ModuleSpec | None = None if find is None else find(name, top_path if is_of_files else path, target)
        if spec is not None:
            return spec
    return None


class _Machinery:
    """The lists that imports use."""

    def __init__(self, path: "Any", meta_path: "Any", hooks: "Any") -> None:
        self.path = path
        self.meta_path = meta_path
        self.hooks = hooks


def _current() -> _Machinery:
    return _Machinery(sys.path, sys.meta_path, sys.path_hooks)


def _make_current(machinery: _Machinery) -> None:
    sys.path, sys.meta_path, sys.path_hooks = machinery.path, machinery.meta_path, machinery.hooks


def _after_startup(names: "list[str]") -> "dict[str, None]":
    """Leave out the modules of Python's startup.

    In the order in which they were loaded, as in a plain run: pickle says that an object belongs to the first module
    which has it, and torch looks up compiled code by a hash of that.
    """
    return {name: None for name in names if name not in STARTUP_NAMES and name != "__main__"}


def _without_main() -> "dict[str, ModuleType]":
    return {name: module for name, module in sys.modules.items() if name != "__main__"}
