"""Before torch is imported: as many workers as cores run the tests, so each of them, and what it starts, has one."""

import gc
import importlib
import os
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent
QUICK = "not slow and not sweep"
QUICK_EXAMPLES = 33  # of 100
MANY = 500  # tests, of which some make an optimizer
FEW_MODULES = 50
frozen = {"modules": sys.maxsize}

os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads that wait for each other by spinning slow all others down
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each of a thousand runs would compile our package again
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell leaves it to what it starts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # else tests of Ctrl-C, and all they start, see none

# No test is about time: on a busy machine, drawing examples takes long too. Where CI says so, every run draws the same.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("CI", settings.get_profile("any machine"), derandomize=True, database=None)
settings.load_profile("CI" if os.environ.get("CI") == "true" else "any machine")


def pytest_configure(config: pytest.Config) -> None:
    """Draw a third of the examples in the quick run, as addopts in pyproject.toml have it; any other run draws all.

    A worker that has ended, or hung in a test for as long as pyproject.toml allows, ends the run with the name of the
    test: pytest-xdist would run that test again in the next worker, and in the next.
    """
    config.option.maxworkerrestart = "0"
    if config.option.markexpr == QUICK:
        settings.register_profile("quick", settings.default, max_examples=QUICK_EXAMPLES)
        settings.load_profile("quick")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let the garbage collector wait: what is imported is no garbage, and it would look at all of it for nothing."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the garbage collector pass over what was imported: else each collection of each test looks at all of it.

    So does each look for what refers to a class. Any optimizer imports TorchDynamo, half of all that is ever imported.
    """
    if len(session.items) > MANY and "torch" in sys.modules:
        importlib.import_module("torch._dynamo")
    freeze()


def pytest_runtest_logfinish() -> None:
    """Do so with what tests import, too."""
    if len(sys.modules) > frozen["modules"] + FEW_MODULES:
        freeze()


def freeze() -> None:
    """Hide all that is there from the garbage collector."""
    frozen["modules"] = len(sys.modules)
    gc.collect()
    gc.freeze()


@cache
def shares(file: str) -> bool:
    """Say whether tests of a file share what one of them prepares."""
    return 'scope="module"' in (ROOT / file).read_text()


@pytest.hookimpl(optionalhook=True)  # pytest-xdist need not be installed, as beside other versions of torch
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Give each test to the next free worker, and all tests of a file to one worker if they share a preparation.

    Shortened sweeps share one, too: NOTE [Samples of torch] in operator_sweep.py.
    """
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # as above

    class OneWorkerForWhatIsShared(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if file.endswith("_sweep.py") and config.option.markexpr != "sweep":
                return "shortened sweeps"
            return file if shares(file) else nodeid

    return OneWorkerForWhatIsShared(config, log)


@pytest.fixture(scope="session")
def built_device() -> Path:
    """Build the simulated device, once for each version of its source: NOTE [Where there is no compiler]."""
    from simulated_device import building  # only these tests need it

    try:
        return building.build()
    except building.CannotBuildError as error:
        pytest.skip(f"NO SIMULATED DEVICE, so nothing was seen on a device: {error}")
