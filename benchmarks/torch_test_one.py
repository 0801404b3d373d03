"""Run tests of a module that is already imported, and write down how each ended: the program under inspection.

`python torch_test_one.py FILE OUTCOMES TEST...` appends one line of JSON a test to OUTCOMES, and a line before each
test starts, so that one which ends the process can be told. It is what a user's own runner would be; it knows nothing
of gradinspect. torch_test_server.py runs it, plain or under a verb.
"""

import importlib
import json
import sys
import traceback
import unittest
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TypeAlias

Raised: TypeAlias = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


class Outcomes(unittest.TestResult):
    """Writes how each test ended."""

    def __init__(self, path: Path) -> None:
        """Write to a file."""
        super().__init__()
        self._file = path.open("a", buffering=1)
        self._said: list[str] = []

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802  # unittest's name
        """Begin with nothing said."""
        super().startTest(test)
        self._said = []
        self._write(test, None)

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        """Write what was said."""
        super().stopTest(test)
        self._write(test, " | ".join(self._said) or "passed")

    def addError(self, test: unittest.TestCase, err: Raised) -> None:  # noqa: N802, ARG002
        """Remember an error."""
        self._say("error", err)

    def addFailure(self, test: unittest.TestCase, err: Raised) -> None:  # noqa: N802, ARG002
        """Remember a failure."""
        self._say("failed", err)

    def addExpectedFailure(self, test: unittest.TestCase, err: Raised) -> None:  # noqa: N802, ARG002
        """Remember a failure that was expected."""
        self._say("failed as expected", err)

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802, ARG002
        """Remember a success that was not expected."""
        self._said.append("passed unexpectedly")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802, ARG002
        """Remember why a test was skipped."""
        self._said.append(f"skipped: {reason}")

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Raised | None) -> None:  # noqa: N802, ARG002
        """Remember a part that failed."""
        if err is not None:
            self._say(f"part failed: {subtest}", err)

    def _say(self, kind: str, err: Raised) -> None:
        self._said.append(f"{kind}: {''.join(traceback.format_exception_only(err[1]))}")

    def _write(self, test: unittest.TestCase, outcome: str | None) -> None:
        self._file.write(json.dumps({"test": test.id(), "outcome": outcome}) + "\n")


def tests_of(module: ModuleType) -> dict[str, unittest.TestCase]:
    """List the tests of a module by name, as unittest finds them."""
    found: dict[str, unittest.TestCase] = {}
    todo: list[unittest.TestSuite | unittest.TestCase] = [unittest.defaultTestLoader.loadTestsFromModule(module)]
    for item in todo:
        if isinstance(item, unittest.TestCase):
            found.setdefault(item.id(), item)
        else:
            todo.extend(item)
    return found


def main(file: Path, outcomes: str, names: list[str]) -> None:
    """Run the tests that are named."""
    sys.argv[:] = [str(file)]  # torch's `load_tests` leaves out what is not of the script that runs
    sys.path[:0] = [str(file.parent), str(file.parent.parent)]
    tests = tests_of(importlib.import_module(file.stem))
    result = Outcomes(Path(outcomes))
    for name in names:
        tests[name].run(result)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
