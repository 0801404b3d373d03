"""Keep our imports and those of the user's program apart, in one process.

A script may stand beside files that have the names of modules we use: secrets.py, rich.py, html.py. `import secrets`
in the script must give the script's file, as under `python script.py`, and ours must stay ours.

NOTE [Two sets of modules]
Before the program starts, everything that python itself does not load at startup is taken out of `sys.modules` and put
aside. `HandBack`, a finder, is asked first whenever the program imports one of those names. It asks the other finders
where the import leads: if that is the file of the module that was put aside, the program gets that very module, since
nothing may be loaded twice; else it gets its own. While our own work runs, our modules and our search path are back.

This file imports nothing that is not loaded already when python starts, and it is the first of ours to be loaded.
"""

import os
import sys

TYPE_CHECKING = False  # `typing` may be a file of the user's
if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def _names_at_startup() -> frozenset[str]:
    """List what python has loaded before it runs anything: `site` comes last."""
    names = list(sys.modules)
    last = "site" if "site" in names else "__main__"  # python -S
    return frozenset(names[: names.index(last) + 1])


STARTUP_NAMES = _names_at_startup()
PATH_AT_START = tuple(sys.path)


def own_search_path(path: "Iterable[str]") -> list[str]:
    """Put Python's own folders and those of packages before the folders that the user has put first."""
    added = {os.path.abspath(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder}  # noqa: PTH100
    folders = list(path)
    first = folders[:1] if not sys.flags.safe_path else []  # of the script that was started, or where we are
    last = [*first, *(folder for folder in folders[len(first) :] if os.path.abspath(folder) in added)]  # noqa: PTH100
    return [*(folder for folder in folders if folder not in last), *last]


class OwnSearchPath:
    """Import our own modules from where they were installed. Use it as a context manager."""

    def __enter__(self) -> None:
        """Look into the user's folders last."""
        self._path, self._own = sys.path, own_search_path(sys.path)
        sys.path = self._own

    def __exit__(self, *_error: object) -> None:
        """Look as before, unless a program has its own path by now."""
        if sys.path is self._own:
            sys.path = self._path


class HandBack:
    """Finds modules that were put aside. NOTE [Two sets of modules]."""

    def __init__(self) -> None:
        """Start with nothing put aside."""
        self.aside: dict[str, ModuleType] = {}
        self.groups: dict[str, frozenset[str]] = {}  # what else is loaded once a name is

    def hide(self, visible: "Iterable[str]") -> None:
        """Put aside all modules but some."""
        kept = {*visible, "__main__"}
        for name in list(sys.modules):
            if name not in kept and not name.startswith("encodings."):
                self.aside.setdefault(name, sys.modules.pop(name))

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "ModuleSpec | None":
        """Lead an import to the module that was put aside, if it leads to the same file anyway."""
        module = self.aside.get(name)
        if module is None or target is not None:  # a reload shall load
            return None
        found = self._found_by_others(name, path)
        original: ModuleSpec | None = getattr(module, "__spec__", None)
        if found is None or original is None:
            return None
        if not _is_same_place(found, original):
            return found
        found.loader = _Returned(self, module, original)  # type: ignore[assignment]
        return found

    def restore(self, name: str) -> None:
        """Make a module visible, with those that were loaded together with it."""
        self.aside.pop(name, None)
        inside = f"{name}."
        for other in [*self.groups.get(name, ()), *(other for other in self.aside if other.startswith(inside))]:
            module = self.aside.pop(other, None)
            if module is not None:
                sys.modules.setdefault(other, module)

    def _found_by_others(self, name: str, path: "Any") -> "ModuleSpec | None":
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if find is not None and finder is not self:
                spec: ModuleSpec | None = find(name, path, None)
                if spec is not None:
                    return spec
        return None


class _Returned:
    """The loader of a module that is loaded already."""

    def __init__(self, finder: HandBack, module: "ModuleType", spec: "ModuleSpec") -> None:
        self._finder = finder
        self._module = module
        self._spec = spec

    def __getattr__(self, name: str) -> "Any":
        """Be the real loader for whoever wants the source."""
        return getattr(self._spec.loader, name)

    def create_module(self, _spec: "ModuleSpec") -> "ModuleType":
        return self._module

    def exec_module(self, module: "ModuleType") -> None:
        module.__spec__ = self._spec
        self._finder.restore(self._spec.name)


def _is_same_place(found: "ModuleSpec", original: "ModuleSpec") -> bool:
    if found.origin is not None and original.origin is not None:
        return found.origin == original.origin or _real(found.origin) == _real(original.origin)
    places = found.submodule_search_locations, original.submodule_search_locations
    return None not in places and list(places[0] or ()) == list(places[1] or ())


def _real(file: str) -> str:
    return os.path.realpath(file)


class Imports:
    """What an import reads (loaded modules, search path, finders), once as we need it and once as the program has it.

    Made before the program runs, while everything is ours.
    """

    def __init__(self) -> None:
        """Remember how things are."""
        self._ours = _Machinery(sys.path, list(sys.meta_path), list(sys.path_hooks), {})
        self._modules = _without_main()
        self._finder = HandBack()
        self._theirs: _Machinery | None = None  # while we are home

    def start_program(self, first_folder: str | None) -> None:
        """Let everything be as python has it when it starts a program.

        Args:
            first_folder: Where the program's imports look first; None: as they did.
        """
        self._modules = {**_without_main(), **self._modules}
        path = list(PATH_AT_START)
        if first_folder is not None and not sys.flags.safe_path:
            path[:1] = [first_folder]
        sys.path = path
        self._finder.hide(STARTUP_NAMES)
        sys.meta_path.insert(0, self._finder)

    def import_as_program(self, name: str, first_folder: str | None) -> None:
        """Import a package as the program would: with its files first, should they have names that the package uses.

        Raises:
            BaseException: Whatever the import raises.
        """
        path = sys.path
        self.start_program(first_folder)
        try:
            __import__(name)
            self._finder.groups[name] = frozenset(sys.modules) - STARTUP_NAMES - {"__main__"}
        finally:
            sys.meta_path.remove(self._finder)
            sys.path = path
            self._finder.aside.update({name: sys.modules[name] for name in {*sys.modules} - {*STARTUP_NAMES, "__main__"}})
            sys.modules.update({**self._finder.aside, **self._modules})

    def visit(self) -> "Visit":
        """Import as we need it, for a moment in the middle of the program."""
        return Visit(self)

    def come_home(self) -> None:
        """Import as we need it from now on."""
        self._theirs = self.take()

    def hand_back(self) -> None:
        """Let the program's last handlers import as the program did."""
        if self._theirs is not None:
            self.give(self._theirs)
            self._theirs = None

    def take(self) -> "_Machinery":
        """Make all of it ours, and return what was the program's."""
        theirs = _current()
        for name, module in self._modules.items():
            theirs.modules[name] = sys.modules.get(name)
            sys.modules[name] = module
        _make_current(self._ours)
        return theirs

    def give(self, theirs: "_Machinery") -> None:
        """Make all of it the program's again."""
        for name, module in theirs.modules.items():
            if module is None:
                self._finder.aside.setdefault(name, sys.modules.pop(name, self._modules[name]))
            else:
                sys.modules[name] = module
        _make_current(theirs)


class Visit:
    """A moment with our imports in the middle of the program. Use it as a context manager."""

    def __init__(self, imports: Imports) -> None:
        """Change nothing yet."""
        self._imports = imports

    def __enter__(self) -> None:
        """Begin."""
        self._theirs = self._imports.take()

    def __exit__(self, *_error: object) -> None:
        """Leave everything as it was found."""
        self._imports.give(self._theirs)


class _Machinery:
    """The lists that an import goes through; and modules by name, None for one that is not loaded."""

    def __init__(self, path: "Any", meta_path: "Any", hooks: "Any", modules: "dict[str, ModuleType | None]") -> None:
        self.path = path
        self.meta_path = meta_path
        self.hooks = hooks
        self.modules = modules


def _current() -> _Machinery:
    return _Machinery(sys.path, sys.meta_path, sys.path_hooks, {})


def _make_current(machinery: _Machinery) -> None:
    sys.path, sys.meta_path, sys.path_hooks = machinery.path, machinery.meta_path, machinery.hooks


def _without_main() -> "dict[str, ModuleType]":
    return {name: module for name, module in sys.modules.items() if name != "__main__"}
