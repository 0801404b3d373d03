"""Builtins of our own, which a program cannot replace.

NOTE [Own builtins]
A program may replace `len` or `open`, to count calls or to do something else, while functions of ours run at each
operator. Python looks a builtin up in the `__builtins__` of the module whose function runs. So each of our modules has
a copy of those that there were when the package was imported. What we call in torch and in the standard library calls
the program's, unless `OwnBuiltins` in `isolation.py` has put the originals back for a while.

This file imports only what Python has loaded at startup, because it is loaded with the package.
"""

import builtins
import sys

TYPE_CHECKING = False  # `typing` may be a file of the user's. NOTE [Two sets of modules]
if TYPE_CHECKING:
    from importlib import _bootstrap_external as files
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any
else:
    files = sys.modules["_frozen_importlib_external"]

OWN: "dict[str, Any]" = dict(vars(builtins))


class _Loader(files.SourceFileLoader):
    def exec_module(self, module: "ModuleType") -> None:
        module.__dict__["__builtins__"] = OWN
        give_to_modules_of(module.__spec__)
        super().exec_module(module)


def give_to_modules_of(package: "ModuleSpec | None") -> None:
    """Have the modules of a package look up our builtins, those that will be imported from files."""
    if package is not None and isinstance(package.loader, files.SourceFileLoader):  # and not from a zip file
        for folder in package.submodule_search_locations or ():
            sys.path_importer_cache[folder] = files.FileFinder(folder, (_Loader, files.SOURCE_SUFFIXES))
