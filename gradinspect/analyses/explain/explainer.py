"""The explanation of each class that a graph has, for what shows nodes."""

import functools
from collections.abc import Callable

from gradinspect.analyses.explain.explanation import Explanation, all_names, explain_class
from gradinspect.catalog import load_catalog
from gradinspect.errors import GradInspectError


def explainer() -> Callable[[str], Explanation | None]:
    """Return a function that explains a class; without torch installed, it knows no class."""
    try:
        catalog = load_catalog()
    except GradInspectError:
        return lambda _name: None
    known = set(all_names(catalog))
    return functools.cache(lambda name: explain_class(name, catalog) if name in known else None)
