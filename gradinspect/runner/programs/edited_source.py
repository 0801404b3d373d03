"""Run a program with statements in it that its files do not have: they stay as they are.

What comes in: the files, and where variables are deleted in each. Lines stay what they are.
"""

import ast
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib.machinery import SourceFileLoader
from typing import Any

from gradinspect.analyses.planning.deletions import Spot, with_deletions
from gradinspect.torch_api.patching.patches import Patch, patched

Deletions = Sequence[tuple[Spot, str]]


def edited_source(deletions: Mapping[str, Deletions]) -> AbstractContextManager[None]:
    """Return a context manager in which files are compiled with deletions.

    Args:
        deletions: Absolute path of a file -> where it deletes which variables.
    """
    if not deletions:
        return patched()
    loader = next(base for base in SourceFileLoader.__mro__ if "source_to_code" in vars(base))

    def make_compile(original: Callable[..., Any]) -> Callable[..., Any]:
        def source_to_code(self: Any, data: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
            found = deletions.get(os.path.abspath(os.fsdecode(path)))  # noqa: PTH100  # resolve() would follow links
            tree = (
                data
                if found is None
                else with_deletions(data if isinstance(data, ast.Module) else ast.parse(data), found)
            )
            return original(self, tree, path, *args, **kwargs)

        return source_to_code

    def make_get(original: Callable[..., Any]) -> Callable[..., Any]:
        def get_code(self: Any, name: str) -> Any:
            path = self.get_filename(name)
            if os.path.abspath(path) not in deletions:  # noqa: PTH100  # as above
                return original(self, name)
            return self.source_to_code(self.get_data(path), path)  # what was compiled before does not have them

        return get_code

    return patched(Patch(loader, "source_to_code", make_compile), Patch(loader, "get_code", make_get))
