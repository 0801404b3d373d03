"""A page in a Chromium: the graph that tests show, and what the page complained of and asked for."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from factories import graph, leaf, op, saved

from gradinspect.graph import Frame, Graph, ModuleCall, Storage
from gradinspect.renderers.facts import CodeAround, PageFacts

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE = "</script><img src=x onerror=document.title='broken'>"


def small() -> Graph:
    """Build two modules one after the other; the first has a leaf, the second a hostile name."""
    return graph(
        op("SumBackward0", 1, shape=()),
        op(
            "MulBackward0",
            2,
            5,
            module=0,
            frame=0,
            shape=(2, 768),
            flops=1536,
            saved=(saved("_saved_self", 2, storage=0),),
        ),
        op("TanhBackward0", 3, module=0),
        op("ExpBackward0", 4, module=1),
        op(HOSTILE, 6, None, module=1),
        leaf("scale.weight", 768),
        leaf(HOSTILE, 3),
        modules=(ModuleCall(path="scale", class_name="Scale"), ModuleCall(path=HOSTILE, class_name="Odd")),
        frames=(Frame(file="train.py", line=9, code="y = w * xp"),),
        storages=(Storage(num_bytes=8),),
        arguments={"MulBackward0": ("self", "other")},
        warnings=(f"odd: {HOSTILE}",),
    )


FACTS = PageFacts(
    formulas=(("MulBackward0", ("self: grad * other",)), (HOSTILE, (HOSTILE,))),
    around=((0, CodeAround(before=("w = scale()",), line="y = w * xp", after=(HOSTILE,))),),
)


class Seen:
    """A page, and what it complained of and asked for."""

    def __init__(self, page: Any) -> None:
        """Listen."""
        self.page = page
        self.troubles: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.troubles.append(message.text))
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def box(self, item: int) -> Any:
        """Find the box of a node, or of a scope by its negative number."""
        return self.page.locator(f'[data-item="{item}"]')

    def click_title(self, item: int) -> None:
        """Click the title of an open box: its middle may be another box."""
        self.page.locator(f'[data-item="{item}"] .title').click()


@contextmanager
def opened(browser: Any, file: Path, **viewport: int) -> Iterator[Seen]:
    """Open a page; afterwards nothing may have gone wrong, and nothing been asked for but the file."""
    context = browser.new_context(viewport=viewport)
    seen = Seen(context.new_page())
    seen.page.goto(file.as_uri())
    yield seen
    context.close()

    assert not seen.troubles
    assert {file.as_uri()} == {url.partition("#")[0] for url in seen.requests}
