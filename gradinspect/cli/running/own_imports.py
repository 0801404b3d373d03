"""What we import before the program runs: torch as the program would import it, then what the report will need."""

import gc
import importlib
import pkgutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

from rich.cells import cell_len

from gradinspect.errors import GradInspectError, ScriptFailedError
from gradinspect.isolation import Imports
from gradinspect.own_threads import signals_blocked
from gradinspect.request import Request
from gradinspect.source import Program, first_folder

_WIDE = "\N{IDEOGRAPHIC SPACE}"  # its width is in that table


def import_session(imports: Imports, program: Program, request: Request) -> ModuleType:
    """Import torch as the program would, then what runs a program, before it can interfere.

    It takes over a second, and torch may not be installed if only capture files are read.

    Args:
        imports: Keeps ours and the program's apart.
        program: What will run.
        request: Its other options.
    """
    try:
        with signals_blocked(signal.SIGINT):  # it starts threads, before the program can block any; Ctrl-C ends it
            imports.import_as_program("torch", first_folder(program))
            if request.fake:  # which needs it: loaded by us later, it would have ours in place of the program's modules
                imports.import_as_program("torch._dynamo", first_folder(program))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            raise GradInspectError(
                "Running a program needs PyTorch, which is not installed.",
                "Install it (pip install torch), or give a capture file.",
            ) from None
        raise _torch_import_error(imports, program, request, error) from None
    with without_collections():
        from gradinspect.runner import session  # noqa: PLC0415  # after torch, which it needs
    cell_len(_WIDE)  # rich reads its table when it is needed first, and a program may leave no file to be opened

    return session


def _torch_import_error(imports: Imports, program: Program, request: Request, error: BaseException) -> Exception:
    """Let the program fail by itself, if a file next to it shadows a module that torch needs."""
    from gradinspect.runner.process_state import ProcessState  # noqa: PLC0415  # not needed for --help
    from gradinspect.runner.programs.torchless import run_without_torch  # noqa: PLC0415  # as above

    failure = run_without_torch(program, request.arguments, ProcessState(imports), error)
    sentence = f"PyTorch cannot be imported by '{request.label}': {type(error).__name__}."
    return ScriptFailedError(sentence) if failure else GradInspectError(sentence, "Does this program use PyTorch?")


def import_packages(names: Sequence[str]) -> None:
    """Import whole packages, each with all that is in it.

    Args:
        names: Their names below our package.
    """
    with without_collections():
        for name in names:
            package = importlib.import_module(f"gradinspect.{name}")
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                importlib.import_module(module.name)


@contextmanager
def without_collections() -> Iterator[None]:
    """Let Python not collect garbage meanwhile: each time it would go through all of torch, and find none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
