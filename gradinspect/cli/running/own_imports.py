"""What we import before the program runs: torch as the program would import it, then what the report will need."""

import importlib
import pkgutil
from collections.abc import Sequence
from types import ModuleType

import gradinspect
from gradinspect.cli.verbs import VERBS
from gradinspect.errors import GradInspectError, ScriptFailedError
from gradinspect.isolation import Imports
from gradinspect.request import Request
from gradinspect.source import Program, first_folder

_OF_A_VERB = (  # it, its question or the session imports what it needs of these, before the program runs
    "cli.options",
    "cli.output",
    "cli.running",
    *(f"cli.{verb}" for verb in VERBS),
    "fake",
    "observers",
)
_FOR_OTHERS = ("__main__", "api", "explorer", "notebook", "pytest_plugin", "testing", "trainers")
_FOR_SOME = (  # that a question names, or that are imported when the files to write are known
    "analyses.diff",
    "analyses.planning",
    "checks.evidence",
    "checks.rules",
    "renderers.data.diff",
    "renderers.data.graphs",
    "renderers.data.plan",
    "renderers.diff_words",
    "renderers.html",
    "renderers.picture",
    "renderers.terminal.diff",
    "renderers.terminal.memory.plan",
    "renderers.terminal.memory.sizes",
)


def import_session(imports: Imports, program: Program, request: Request, packages: Sequence[str] = ()) -> ModuleType:
    """Import torch as the program would, then all that we need later, before the program can interfere.

    It takes over a second, and torch may not be installed if only capture files are read.

    Args:
        imports: Keeps ours and the program's apart.
        program: What will run.
        request: Its other options.
        packages: Those of ours that only some questions need.
    """
    try:
        imports.import_as_program("torch", first_folder(program))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            raise GradInspectError(
                "Running a program needs PyTorch, which is not installed.",
                "Install it (pip install torch), or give a capture file.",
            ) from None
        raise _torch_import_error(imports, program, request, error) from None
    import_for_reports(packages)
    from gradinspect.runner import session  # noqa: PLC0415

    return session


def _torch_import_error(imports: Imports, program: Program, request: Request, error: BaseException) -> Exception:
    """Let the program fail by itself, if a file next to it shadows a module that torch needs."""
    from gradinspect.runner.process_state import ProcessState  # noqa: PLC0415  # not needed for --help
    from gradinspect.runner.programs.torchless import run_without_torch  # noqa: PLC0415  # as above

    failure = run_without_torch(program, request.arguments, ProcessState(imports), error)
    sentence = f"PyTorch cannot be imported by '{request.label}': {type(error).__name__}."
    return ScriptFailedError(sentence) if failure else GradInspectError(sentence, "Does this program use PyTorch?")


def import_for_reports(packages: Sequence[str] = (*_OF_A_VERB, *_FOR_SOME)) -> None:
    """Import what a report may need, except what only others use, whose dependencies may be missing.

    Args:
        packages: Those that are needed, of the ones that only some verbs or questions need.
    """
    left_out = tuple(f"gradinspect.{name}" for name in (*_FOR_OTHERS, *({*_OF_A_VERB, *_FOR_SOME} - {*packages})))
    for module in pkgutil.walk_packages(gradinspect.__path__, "gradinspect."):
        if not module.name.startswith(left_out):
            importlib.import_module(module.name)
