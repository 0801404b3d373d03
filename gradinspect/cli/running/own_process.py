"""Start a process for one task of ours, as if no program had run in this one.

NOTE [Children are what is running]
`python -m gradinspect` would run whatever has that name in the current folder. So a child is given the place of our
package, imports it from there, and forgets the place again: its search path is that of a program in the current folder.
It gets the options of our own interpreter (-O, -P, -W), which a program may depend on.
"""

import os
import subprocess
import sys
from pathlib import Path

import gradinspect

_CHILD = (
    "import sys; sys.path.insert(0, sys.argv[1]); import gradinspect; del sys.path[0]; "
    "from gradinspect.cli.running.child import main; sys.exit(main(sys.argv[2]))"
)


def run_own_process(given: Path, *, reads_stdin: bool = True) -> int:
    """Call `main` of `child` in a process of its own, and return its exit code.

    Args:
        given: The file that says what to do.
        reads_stdin: Whether it has ours.

    Raises:
        OSError: The process cannot be started.
    """
    child = subprocess.Popen(  # noqa: S603  # ourselves
        [*_interpreter(), "-c", _CHILD, _place(), str(given)],
        stdin=None if reads_stdin else subprocess.DEVNULL,
    )
    try:
        return child.wait()
    except KeyboardInterrupt:
        child.wait()  # it was interrupted too
        raise


def _interpreter() -> list[str]:
    """Return our interpreter with its options."""
    return [sys.executable, *subprocess._args_from_interpreter_flags()]  # type: ignore[attr-defined]  # multiprocessing does so too


def _place() -> str:
    """Return the folder or zip file that our package is in."""
    return str(Path(os.path.abspath(gradinspect.__file__)).parent.parent)  # noqa: PTH100  # resolve() would follow links
