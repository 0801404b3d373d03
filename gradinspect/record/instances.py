"""Every living object of a class, found without touching any other one.

NOTE [Objects that are being made]
`gc.get_objects()` hands out everything, also a tuple that another thread is just filling, whose maker then fails with a
SystemError because somebody else knows it. `gc.get_referrers` of the classes hands out only what refers to them, as
each instance does.
"""

import gc
from typing import Any


def instances_of(root: type) -> list[Any]:
    """List the living instances of a Python class and of all classes derived from it."""
    todo: list[type] = [root]
    kinds: set[type] = set()
    while todo:
        kind = todo.pop()
        if kind not in kinds:
            kinds.add(kind)
            todo.extend(type.__subclasses__(kind))
    return [item for item in gc.get_referrers(*kinds) if type(item) in kinds]
