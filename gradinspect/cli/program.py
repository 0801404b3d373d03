"""The program: its verbs, and the one place that turns errors into a message and an exit code."""

import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from gradinspect.cli.options.command_line import split_arguments, unknown_option, usage_sentence, with_verb
from gradinspect.cli.output.bug_report import report_bug, versions_of_all
from gradinspect.cli.output.printing import ReaderLeft, finish_output, print_problem, print_text
from gradinspect.cli.running.leaving import leave
from gradinspect.cli.verbs import VERBS, VerbGroup
from gradinspect.errors import (
    INTERRUPTED,
    USER_CAN_FIX_IT,
    GradInspectError,
    ScriptFailedError,
    is_address_space_limited,
)
from gradinspect.isolation import OwnSearchPath
from gradinspect.kept_files.problems import problems
from gradinspect.ranks.job import check_environment, this_job
from gradinspect.units import brief

_OF_THE_SYSTEM = {
    errno.EACCES, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENAMETOOLONG, errno.ENFILE, errno.ENOSPC, errno.EPERM,
    errno.EROFS,
}  # fmt: skip

app = typer.Typer(
    name="gradinspect",
    cls=VerbGroup,
    help="See what a PyTorch backward graph holds: every node, every saved tensor, the line that made it.",
    epilog="Without a command, gradinspect train.py shows the overview. SOURCE is a script.py, a notebook.ipynb, "
    "pkg.mod:expression, or a capture file (run.json). What follows -- goes to the script: "
    "gradinspect train.py -- --lr 0.1",
    invoke_without_command=True,
    rich_markup_mode=None,  # see cli/options/help.py
    pretty_exceptions_enable=False,
)


@app.callback()
def root(
    context: typer.Context,
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the versions of gradinspect, Python and torch.")
    ] = False,
) -> None:
    """Print the versions, or the help if the command line is empty."""
    if version:
        print_text(versions_of_all())
    elif context.invoked_subcommand is None:
        print_text(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        0 done, 1 a check found something, 2 the user can fix it, 3 the user's script failed, 4 gradinspect failed; with
        --continue, the exit code of the script.
    """
    try:
        code = _main(arguments)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:  # outside any verb, as where the ranks of a job meet
        code = report_bug(error, print_problem)
    return leave(code)


def _main(arguments: Sequence[str] | None) -> int:
    ours, theirs = split_arguments(sys.argv[1:] if arguments is None else arguments)
    ours = with_verb(ours)

    def run() -> object:
        check_environment(os.environ)
        command = typer.main.get_command(app)  # calling `app` itself would install typer's excepthook
        return command(ours, obj=theirs, standalone_mode=False, prog_name="gradinspect")

    if this_job() is None:
        return exit_code_of(run, ours)
    from gradinspect.cli.running.ranks import run_as_rank  # noqa: PLC0415  # only in a job of several ranks

    return run_as_rank(lambda say: exit_code_of(run, ours, say))


def exit_code_of(run: Callable[[], object], words: Sequence[str], say: Callable[[str], None] = print_problem) -> int:
    """Run something, and turn errors into a message and an exit code.

    Args:
        run: What to run; an int that it returns is the exit code.
        words: The command line.
        say: Prints what is wrong.
    """
    try:
        code = _answer(run, words, say)
        for problem in problems():
            say(problem)
    except OSError as error:  # without the name of a file
        finish_output()
        return _output_lost(error)
    lost = finish_output()
    return code if lost is None else _output_lost(lost)


def _output_lost(error: OSError) -> int:
    """Report why the output could not be written, unless its reader closed it."""
    if isinstance(error, BrokenPipeError):
        return 0
    print_problem(f"The output could not be written: {error.strerror}. Check the target of stdout.")
    return USER_CAN_FIX_IT


def _answer(run: Callable[[], object], words: Sequence[str], say: Callable[[str], None]) -> int:
    try:
        with OwnSearchPath():
            result = run()
    except GradInspectError as error:
        say(str(error))
        return USER_CAN_FIX_IT
    except ScriptFailedError as error:
        if str(error):
            say(str(error))
        return error.exit_code
    except ReaderLeft:
        finish_output()
        return 0
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except SystemExit:
        raise
    except BaseException as error:
        return _failed(error, words, say)
    return result if isinstance(result, int) else 0


def _failed(error: BaseException, words: Sequence[str], say: Callable[[str], None]) -> int:
    """Report what the parser or the system refuses, or a bug of ours; return the exit code.

    Raises:
        OSError: It names no file, so it may be about our output.
    """
    sentence = _sentence(error, words)
    if sentence:
        say(sentence)
        return USER_CAN_FIX_IT
    if isinstance(error, OSError) and error.filename is None:
        raise error
    return report_bug(error, say)


def _sentence(error: BaseException, words: Sequence[str]) -> str:
    """Describe a parser error or what the system refuses; "" for any other error."""
    if _is_lack_of_memory(error):
        return "Not enough memory. Free some, raise the limit (ulimit -v), or capture a smaller step of the program."
    if isinstance(error, OSError) and error.errno in _OF_THE_SYSTEM and error.filename is not None:
        return (
            f"'{brief(str(error.filename))}' cannot be used: {error.strerror}. Check it, and the folder that it is in."
        )
    if not hasattr(error, "format_message"):
        return ""
    verb = next(iter(words), "")
    is_verb = verb in VERBS
    help_of = f"gradinspect {verb} --help" if is_verb else "gradinspect --help"
    if is_verb and hasattr(error, "possibilities"):
        return unknown_option(error, words, help_of)
    return f"{usage_sentence(error, words)} Try: {help_of}"


def _is_lack_of_memory(error: BaseException) -> bool:
    """Return whether there was no memory for Python, for a system call, or for a shared library."""
    match error:
        case MemoryError():
            return True
        case OSError():
            return error.errno == errno.ENOMEM
        case ImportError():  # the loader's words; there is no number
            return "failed to map segment" in str(error) or "cannot allocate memory" in str(error).lower()
        case SystemError():  # CPython fails like this if it has no memory for an exception
            return is_address_space_limited()
    return False
