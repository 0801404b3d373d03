"""The options that every verb shares: what to run, and which moment to record."""

import inspect
import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer

from gradinspect.cli.options.fake_jobs import RANK_HELP, WORLD_SIZE_HELP, fake_job
from gradinspect.cli.options.help import RUN
from gradinspect.cli.options.shared import Command, with_options
from gradinspect.errors import GradInspectError
from gradinspect.request import At, Request
from gradinspect.source import CaptureFile, Expression, Module, parse_input, parse_source, source_words


class RunOption(NamedTuple):
    """An option on how to run a program, which has no effect on a capture file."""

    option: str
    not_of: tuple[str, ...] = ()  # verbs that do not have it
    of_callables: bool = False  # whether it has an effect on callables only, not on a whole script
    each: bool = True  # whether it can be given for several sources, each of which is run with it


_RUN_A_STEP = ("fit", "plan")  # these choose the calls, and the device, themselves
_NEED_BACKWARD = ("check", "grads", *_RUN_A_STEP, "overview")
_NEED_VALUES = ("check", "grads", "overview", "step")
_OPTIONS: Final = {  # by the parameter of `_read_request`, in the order in which errors name them
    "run_module": RunOption("-m", ("find",), each=False),
    "backward": RunOption("--backward", (*_RUN_A_STEP, "overview")),
    "grad": RunOption("--grad", (*_RUN_A_STEP, "overview")),
    "at": RunOption("--at", _NEED_BACKWARD),
    "inputs": RunOption("--input", of_callables=True),
    "loss": RunOption("--loss", of_callables=True),
    "root": RunOption("--root", (*_RUN_A_STEP, "overview")),
    "goes_on": RunOption("--continue", ("plan",), each=False),
    "quiet": RunOption("--quiet-script"),
    "world_size": RunOption("--world-size", _NEED_VALUES, each=False),
    "rank": RunOption("--rank", _NEED_VALUES, each=False),
    "fake": RunOption("--fake", (*_NEED_BACKWARD, "step")),
    "device": RunOption("--device", _RUN_A_STEP),
    "creates_graph": RunOption("--create-graph", _NEED_BACKWARD),
    "eager": RunOption("--eager"),
}
_FIELDS: Final = {"world_size": "job", "rank": "job"}  # of `Request`, where they are not called like the parameter


def _read_request(  # noqa: PLR0913, PLR0917  # the options of the command line, each once
    context: typer.Context,
    source: Annotated[
        str | None,
        typer.Argument(metavar="SOURCE", help="script.py, notebook.ipynb, pkg.mod:expression, or a capture file."),
    ] = None,
    run_module: Annotated[
        str | None, typer.Option("-m", metavar="MODULE", help="Run a module, as python -m does.", rich_help_panel=RUN)
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", metavar="SHAPE", help="Input of a callable: 2x3x8x8, mask=2x9:bool.", rich_help_panel=RUN
        ),
    ] = None,
    backward: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Record at the N-th backward() call.", rich_help_panel=RUN)
    ] = None,
    grad: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Record at the N-th autograd.grad() call.", rich_help_panel=RUN),
    ] = None,
    at: Annotated[
        At | None,
        typer.Option(
            metavar="MOMENT",
            help="Record at 'backward', 'end' or 'call' (its output).",
            rich_help_panel=RUN,
            hidden=True,
        ),
    ] = None,
    goes_on: Annotated[
        bool, typer.Option("--continue", help="Let the script finish after the capture.", rich_help_panel=RUN)
    ] = False,
    root: Annotated[
        str | None, typer.Option(metavar="NAME", help="Start from this variable.", rich_help_panel=RUN, hidden=True)
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet-script", help="Hide what the script prints.", rich_help_panel=RUN, hidden=True)
    ] = False,
    fake: Annotated[
        bool, typer.Option("--fake", help="Run on tensors without values, for huge models.", rich_help_panel=RUN)
    ] = False,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Move a callable and its inputs to cuda, mps; with --fake: where tensors are.",
            rich_help_panel=RUN,
            hidden=True,
        ),
    ] = None,
    world_size: Annotated[
        int | None, typer.Option(min=1, metavar="N", help=WORLD_SIZE_HELP, rich_help_panel=RUN, hidden=True)
    ] = None,
    rank: Annotated[
        int | None, typer.Option(min=0, metavar="R", help=RANK_HELP, rich_help_panel=RUN, hidden=True)
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="EXPR", help="Run backward of this: 'out.square().mean()'.", rich_help_panel=RUN, hidden=True
        ),
    ] = None,
    eager: Annotated[
        bool,
        typer.Option(
            "--eager", help="Run as it is written what torch.compile compiles.", rich_help_panel=RUN, hidden=True
        ),
    ] = False,
    creates_graph: Annotated[
        bool,
        typer.Option(
            "--create-graph", help="Look at the graph that backward builds.", rich_help_panel=RUN, hidden=True
        ),
    ] = False,
) -> Request:
    if (source is None) == (run_module is None):
        given = "neither" if source is None else "both"
        raise GradInspectError(f"A SOURCE or -m MODULE is needed, and {given} was given.", "Try: gradinspect --help")
    _check_one_moment(backward, grad, at)
    _check_order(context, source or "")
    job = fake_job(world_size, rank)
    fake = fake or job is not None
    read = parse_source(str(source)) if run_module is None else Module(run_module)
    request = Request(
        source=read,
        label=run_module or label_of(str(source)),
        arguments=tuple(context.obj or ()),
        inputs=tuple(map(parse_input, inputs or ())),
        backward=backward,
        grad=grad,
        at=at,
        goes_on=goes_on,
        root=root,
        quiet=quiet,
        fake=fake,
        device=device,
        job=job,
        creates_graph=creates_graph,
        eager=eager,
        loss=loss,
    )
    _check_source(request)
    return request


def _check_order(context: typer.Context, source: str) -> None:
    """Check that SOURCE comes first where a verb has another argument.

    Raises:
        GradInspectError: The other one is a file, and the first is not.
    """
    names = [param.name for param in context.command.params if param.param_type_name == "argument"]
    others = [str(context.params[name]) for name in names if name != "source" and context.params.get(name)]
    if others and _names_file(others[0]) and not _names_file(source):
        line = shlex.join(["gradinspect", context.command.name or "", others[0], source])
        raise GradInspectError(f"'{source}' is given before its SOURCE '{others[0]}'.", f"Write: {line}")


def _names_file(text: str) -> bool:
    """Return whether a word names a file that is there: `train.py`, `model.py:Net()`."""
    return os.path.exists(text.partition(":")[0])  # noqa: PTH110  # Path.exists raises for a name that is too long


def _check_source(request: Request) -> None:
    """Check that the options are about the kind of source that is given.

    Raises:
        GradInspectError: One of them would have no effect.
    """
    given = {name: getattr(request, _FIELDS.get(name, name), None) not in {None, False, ()} for name in _OPTIONS}
    if isinstance(request.source, CaptureFile):
        options = {row.option: given[name] for name, row in _OPTIONS.items()}
        check_no_run_option({**options, "--": request.arguments}, request.label, "a capture file")
    elif not isinstance(request.source, Expression):
        option = next((row.option for name, row in _OPTIONS.items() if row.of_callables and given[name]), None)
        if option is not None:
            raise GradInspectError(
                f"'{option}' is for a callable, and '{request.label}' is run as a whole.",
                f"Name the callable: '{request.label}:Net()'.",
            )
        if request.device is not None and not request.fake:
            raise GradInspectError(
                f"'--device {request.device}' moves a callable, and '{request.label}' is run as a whole.",
                f"Name the callable: '{request.label}:Net()', or make the tensors with --fake.",
            )


def check_no_run_option(given: Mapping[str, object], label: str, what: str) -> None:
    """Check that no option is about running a program, where a file is read.

    Args:
        given: Options, and whether they are given.
        label: The file.
        what: What the file is, in words.

    Raises:
        GradInspectError: One is.
    """
    option = next((name for name, is_given in given.items() if is_given), None)
    if option is not None:
        raise GradInspectError(
            f"'{option}' is about running a program, and '{label}' is {what}.", "Remove this option, or give a program."
        )


def _check_one_moment(backward: int | None, grad: int | None, at: At | None) -> None:
    """Check that at most one moment is requested.

    Raises:
        GradInspectError: Two are requested.
    """
    moments = [
        *([f"--backward {backward}"] if backward is not None else []),
        *([f"--grad {grad}"] if grad is not None else []),
        *([f"--at {at}"] if at in {"end", "call"} or (at is not None and grad is not None) else []),
    ]
    if len(moments) > 1:
        raise GradInspectError(f"'{moments[0]}' and '{moments[1]}' cannot be combined.", "Give only one of them.")


def _read_words(**values: Any) -> list[str]:  # noqa: ANN401  # any options
    """Return the options on how to run a program as words of a command line."""
    words: list[str] = []
    for name, value in values.items():
        option = _OPTIONS[name].option
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                words.append(option)
            elif one is not None and one is not False:
                words += [option, str(one)]
    return words


def words_of(request: Request) -> list[str]:
    """Write what was asked for as words of a command line, for another verb."""
    asked = {name: getattr(request, name) for name, row in _OPTIONS.items() if row.each}
    script = ["--", *request.arguments] if request.arguments else []
    return [*source_words(request.source), *_read_words(**asked), *script]


_OF_EACH = [
    option
    for name, option in inspect.signature(_read_request).parameters.items()
    if name in _OPTIONS and _OPTIONS[name].each
]
_read_words.__signature__ = inspect.Signature(_OF_EACH)  # type: ignore[attr-defined]

takes_run_words: Callable[[Command], Command] = with_options(_read_words, "run_words")
"""Give a command that runs several sources the options on how to run each, as words: its argument `run_words`."""


def label_of(source: str) -> str:
    """Name a source in the record: as the user wrote it, but without the folder of an absolute path."""
    folder, separator, name = source.rpartition("/")
    return name if separator and Path(folder or "/").is_absolute() else source


def _read_program(**values: Any) -> Request:  # noqa: ANN401  # any options
    """Read the options of a verb that runs a program, for which a capture file has too little."""
    return _read_request(**values)


_PROGRAM = Annotated[
    str | None, typer.Argument(metavar="SOURCE", help="script.py, notebook.ipynb, or pkg.mod:expression.")
]
_read_program.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        option.replace(annotation=_PROGRAM) if name == "source" else option
        for name, option in inspect.signature(_read_request).parameters.items()
    ]
)


def takes_source(*, reads_captures: bool = True) -> Callable[[Command], Command]:
    """Give a command the shared options that its verb has; it receives them as one `Request`, its argument `request`.

    Args:
        reads_captures: Whether it can answer from a capture file.
    """
    reader = _read_request if reads_captures else _read_program

    def decorate(command: Command) -> Command:
        without = {name for name, row in _OPTIONS.items() if command.__name__ in row.not_of}
        return with_options(reader, "request", without=without, is_ahead=True)(command)

    return decorate
