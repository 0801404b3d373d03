"""The browser, and the page that most tests look at."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_page import BROWSER, FACTS, Seen, opened, small

from gradinspect.renderers.html.page import render_html
from gradinspect.renderers.picture.plan.parts import DrawOptions


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start the browser of this machine; skip the test where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if BROWSER is None:
        pytest.skip("there is no chromium on PATH")
    with sync_api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        except sync_api.Error as error:
            pytest.skip(f"chromium does not start: {error.message.splitlines()[0]}")
        yield browser
        browser.close()


@pytest.fixture
def seen(browser: Any, tmp_path: Path) -> Iterator[Seen]:
    """Open the small graph; afterwards nothing may have gone wrong and nothing been asked for but the file."""
    file = tmp_path / "graph.html"
    file.write_text(render_html(small(), DrawOptions(facts=FACTS)), encoding="utf-8")
    with opened(browser, file, width=1200, height=900) as seen:
        yield seen
