"""Keep our imports and those of the user's program separate, in one process.

A script may be next to files with the names of modules that we use: secrets.py, rich.py, html.py. `import secrets` in
the script must import the script's file, as with `python script.py`, while we keep ours.

NOTE [Two sets of modules]
Before the program starts, all modules that Python does not load at startup are removed from `sys.modules` and set
aside. `HandBack`, a finder, comes first when the program imports one of those names. It asks the other finders where
the import leads: if that is the file of the module set aside, the program gets this module, because nothing may be
loaded twice; else it gets its own. While our code runs, our modules are restored, and its thread imports along our
search path; the other threads of the program go on with the program's path, finders and builtins.

This file imports only what Python has loaded at startup, and is loaded before all of ours but `__init__` and `methods`.
"""

import builtins
import os
import sys
from _thread import RLock, get_ident  # of which `threading`, which may be a file of the user's, is made

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
_LIST = list  # the class, since the name may be replaced
_FILES = sys.modules["_frozen_importlib_external"].PathFinder
_FUNCTIONS = (type(_names_at_startup), type(len))
_OURS = f"{__name__.partition('.')[0]}."  # our patches may be in other modules
STARTUP_NAMES = _names_at_startup()
PATH_AT_START = tuple(sys.path)
_THE_BUILTINS = builtins.__dict__
_BUILTINS = dict(_THE_BUILTINS)


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


class HandBack:
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
            found = self._found_by_others(name, path)
            if found is None or original is None or not _is_same_place(found, original):
                return found
        return _Returned(self, module, original).spec_of(name)

    def restore(self, name: str) -> None:
        """Make a module visible, with those loaded together with it, because some look themselves up."""
        todo = [name]
        while todo:
            current = todo.pop()
            self._show(current)
            if current in self.groups:
                for other in self.groups[current]:
                    self._show(other)
            else:
                todo += [other for other in self._loaded_with(current) if self._is_reachable(other)]

    def _show(self, name: str) -> None:
        module = self.aside.pop(name, None)
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

    def _found_by_others(self, name: str, path: "Any") -> "ModuleSpec | None":
        return _found_by([finder for finder in sys.meta_path if finder is not self], name, path)


class _Returned:
    """The loader of a module that is already loaded."""

    def __init__(self, finder: HandBack, module: "ModuleType", spec: "ModuleSpec | None") -> None:
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
        """Take what was replaced back, for this thread."""
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
            if _switch.threads:
                return
            for name, theirs in _switch.theirs.items():
                if _THE_BUILTINS.get(name, _MISSING) is not _switch.shown[name]:  # another thread has replaced it again
                    continue
                if theirs is _MISSING:
                    del _THE_BUILTINS[name]
                else:
                    _THE_BUILTINS[name] = theirs
            _switch.theirs, _switch.shown = {}, {}


class _Switch:
    """The threads that run our own code, and the builtins that the program has replaced."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.threads: dict[int, int] = {}  # how often, one inside the other
        self.theirs: dict[str, Any] = {}
        self.shown: dict[str, Any] = {}  # what stands in for them


_switch = _Switch()
_MISSING = object()


def _for_each_thread(ours: "Any", theirs: "Any") -> "Any":
    """Stand in for a function of the program; a class is one for all threads."""
    if ours.__class__ not in _FUNCTIONS or theirs is _MISSING:
        return ours

    def called(*arguments: "Any", **keywords: "Any") -> "Any":
        return (ours if get_ident() in _switch.threads else theirs)(*arguments, **keywords)

    return called


class Imports:
    """The import state (loaded modules, search path, finders), once for us and once for the program.

    It includes the builtins, because a program may replace what our functions call.

    Created before the program runs, while everything is ours.
    """

    def __init__(self) -> None:
        """Store the current state."""
        self._ours = _Machinery(sys.path, list(sys.meta_path), list(sys.path_hooks))
        self._modules = _without_main()
        self._finder = HandBack()
        self._our_finder = _OfOurThreads(self._ours)
        self._builtins = OwnBuiltins()
        self._lock = RLock()
        self._num_takes = 0  # by several threads, or one inside the other
        self._replaced: dict[str, ModuleType | None] = {}  # the program's modules meanwhile; None: it is not loaded
        self._their_finders: Any = None
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
        """Switch to our import state temporarily, in the middle of the program."""
        return RestoredImports(self)

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
        """Switch to our modules, and let this thread import along our search path."""
        with self._lock:
            self._num_takes += 1
            if self._num_takes > 1:
                return
            modules = sys.modules
            for name, module in self._modules.items():  # thousands, of which the program has replaced few, if any
                loaded = modules.get(name)
                if loaded is not module:
                    self._replaced[name] = loaded
                    modules[name] = module
            self._their_finders = sys.meta_path
            if self._their_finders.__class__ is _LIST:
                self._their_finders.insert(0, self._our_finder)
            else:
                sys.meta_path = [self._our_finder]

    def give(self) -> None:
        """Switch back to the program's state."""
        with self._lock:
            self._num_takes -= 1
            if self._num_takes:
                return
            for name, module in self._replaced.items():
                if module is None:
                    self._finder.aside.setdefault(name, sys.modules.pop(name, self._modules[name]))
                else:
                    sys.modules[name] = module
            self._replaced = {}
            if self._their_finders.__class__ is not _LIST:
                sys.meta_path = self._their_finders
            elif self._our_finder in self._their_finders:
                self._their_finders.remove(self._our_finder)


class RestoredImports:
    """Our import state in the middle of the program. Use it as a context manager."""

    def __init__(self, imports: Imports) -> None:
        """Store the imports."""
        self._imports = imports
        self._builtins = OwnBuiltins()

    def __enter__(self) -> None:
        """Switch to our state."""
        self._builtins.__enter__()
        self._imports.take()

    def __exit__(self, *_error: object) -> None:
        """Switch back."""
        self._imports.give()
        self._builtins.__exit__()


class _OfOurThreads:
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
