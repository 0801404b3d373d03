"""The pytest plugin: an option, and a fixture. It imports nothing until one of them is used."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from gradinspect.api.live.recording import Recording

_UPDATE = "GRADINSPECT_UPDATE"  # as in gradinspect.testing


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --gradinspect-update."""
    group = parser.getgroup("gradinspect")
    group.addoption(
        "--gradinspect-update",
        action="store_true",
        help="Write the golden files of assert_graph_matches instead of comparing with them.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Set the environment variable that the assertions read, in each worker too."""
    if config.getoption("--gradinspect-update"):
        os.environ[_UPDATE] = "1"


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave the environment as it was."""
    if config.getoption("--gradinspect-update"):
        os.environ.pop(_UPDATE, None)


@pytest.fixture
def gradinspect_recording(request: pytest.FixtureRequest) -> "Iterator[Recording]":
    """Record the test: `.graph` of its first backward call, `.graphs` of all, `.capture(loss)`."""
    from gradinspect.api.live.recording import MOST_GRAPHS, Recording  # noqa: PLC0415  # torch, only for a test that asks

    with Recording(None, MOST_GRAPHS, label=request.node.name) as recording:
        yield recording
