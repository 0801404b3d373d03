"""The namespaces of a program: its folder, its tensors and modules, and the module of an expression."""

import ast
import builtins
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from gradinspect.errors import GradInspectError
from gradinspect.recording.names.variables import Variable, isinstance_safely
from gradinspect.recording.outputs import outputs_in
from gradinspect.source import Expression, Module, Script
from gradinspect.syntax import parse_expression


def base_folder(source: Script | Module | Expression) -> Path:
    """Return the folder that file names in the record are relative to."""
    if isinstance(source, Script):
        return source.path.absolute().parent
    if isinstance(source, Expression) and source.module.endswith(".py"):
        return Path(source.module).absolute().parent
    return Path.cwd()


def variables_of(namespace: dict[str, Any]) -> Iterator[Variable]:
    """Yield the tensors and modules of a finished program, including those in containers of any kind."""
    for name, value in list(namespace.items()):
        if name.startswith("__"):
            continue
        if isinstance_safely(value, (torch.nn.Module,)):
            yield Variable(name, value)
            continue
        try:
            inside = outputs_in(value, name)
        except Exception:  # noqa: S112  # an object of the user that raises when inspected
            continue
        if isinstance_safely(value, (torch.Tensor,)) and not inside:
            yield Variable(name, value)
        for output in inside:
            if isinstance(output.value, torch.Tensor):
                yield Variable(output.name or name, output.value)


def models_in(namespace: dict[str, Any]) -> dict[str, str]:
    """Return the module classes that a script itself defines: their names, and how to call them."""
    return {
        name: call_of(name, value)
        for name, value in list(namespace.items())
        if isinstance_safely(value, (type,))
        and issubclass(value, torch.nn.Module)
        and value.__module__ == namespace.get("__name__")
    }


def call_of(text: str, made: type) -> str:
    """Write the call of a class, with the arguments that it cannot do without: `Net(width=...)`."""
    try:
        parameters = inspect.signature(made).parameters.values()
    except Exception:  # it has no signature that can be read, or a metaclass that raises when asked
        return f"{text}()"
    fixed = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    needed = [one for one in parameters if one.default is inspect.Parameter.empty and one.kind not in fixed]
    return f"{text}({', '.join(f'{one.name}=...' for one in needed)})"


def module_of(source: Expression, arguments: tuple[str, ...]) -> ModuleType:
    """Import the module that an expression is evaluated in.

    Raises:
        GradInspectError: There is no such module.
    """
    sys.argv = [source.module, *arguments]
    if source.module.endswith(".py"):
        path = Path(source.module)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise GradInspectError(f"The script '{path}' cannot be imported.", "Give a .py file.")
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        return module
    try:
        return importlib.import_module(source.module)
    except ModuleNotFoundError as error:
        if error.name is not None and source.module.startswith(error.name):
            raise GradInspectError(
                f"There is no module '{source.module}'.", "Check its name and the current directory."
            ) from None
        raise


def names_on_demand(module: ModuleType, text: str) -> dict[str, Any]:
    """Return what a module makes only when it is asked for, of the names in an expression, as transformers does."""
    try:
        named = {node.id for node in ast.walk(parse_expression(text.strip())) if isinstance(node, ast.Name)}
    except (SyntaxError, ValueError, RecursionError):  # the evaluation says it
        return {}
    missing = named - vars(module).keys() - set(dir(builtins)) - {"torch"}
    return {name: getattr(module, name) for name in sorted(missing) if hasattr(module, name)}
