"""Which modules of a program can be changed: repeated blocks, and large modules.

What comes in: the modules that ran, and what each has saved. What goes out: blocks, and the changes that can be made to
some modules of each.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from gradinspect.analyses.planning.changes import Autocast, Checkpoint, HalfSaves, ModuleUse, Offload
from gradinspect.analyses.structure.call_names import is_wrapped

_Changed = TypeVar("_Changed", bound=Checkpoint | Offload | HalfSaves | Autocast)

# Not `up1`, as `call_names.INDEX` does: levels of a U-Net hold different amounts, so each is tried alone.
_INDEX = re.compile(r"(?<![^.])[0-9]+(?![^.])")
MAX_BLOCKS = 6  # repeated blocks and large modules that are tried
MIN_SHARE = 0.02  # of what all modules hold, for a block to be tried
MIN_SHARE_OF_LEAF = 0.05  # of a module without submodules
MAX_SHARE_OF_ONE = 0.6  # a single module with more than this would hold it all again while it is computed again


class Block(NamedTuple):
    """Equal modules, or one large one."""

    root: int
    class_name: str
    paths: tuple[str, ...]  # in the order of the model
    saved_bytes: int
    keeps_statistics: bool
    unrepeatable: str  # why its modules cannot be computed again; empty: they can
    is_compiled: bool = False  # one of them runs inside of code under torch.compile
    prefix: str = ""  # of their paths on screens

    def checkpointed(self, paths: Sequence[str], kept: tuple[str, ...] = ()) -> Checkpoint:
        """Checkpoint some of them."""
        return replace(self.changed(paths, Checkpoint), kept=kept, keeps_statistics=self.keeps_statistics)

    def changed(self, paths: Sequence[str], kind: type[_Changed]) -> _Changed:
        """Change some of them; what else there is to choose has its default."""
        return kind(
            root=self.root,
            paths=tuple(paths),
            class_name=self.class_name,
            num_alike=len(self.paths),
            prefix=self.prefix,
        )


def blocks_of(uses: Iterable[ModuleUse]) -> tuple[Block, ...]:
    """Group modules of one class whose paths differ in numbers only; those that hold most come first."""
    groups: dict[tuple[int, str, str], list[ModuleUse]] = defaultdict(list)
    for use in uses:
        may_run_again = not use.writes_input  # NOTE [What a segment is computed again from]
        if use.path and may_run_again and not is_wrapped(use.path):
            groups[use.root, use.class_name, _INDEX.sub("*", use.path)].append(use)
    total = sum(use.saved_bytes for use in uses if not use.path)
    blocks = [
        Block(
            root=alike[0].root,
            class_name=alike[0].class_name,
            paths=tuple(use.path for use in alike),
            saved_bytes=sum(use.saved_bytes for use in alike),
            keeps_statistics=any(use.keeps_statistics for use in alike),
            unrepeatable=next((use.unrepeatable for use in alike if use.unrepeatable), ""),
            is_compiled=any(use.is_compiled for use in alike),
            prefix=alike[0].prefix,
        )
        for alike in groups.values()
        if _is_worth_it(alike, total)
    ]
    return tuple(sorted(blocks, key=lambda block: -block.saved_bytes)[:MAX_BLOCKS])


def _is_worth_it(alike: list[ModuleUse], total: int) -> bool:
    held = sum(use.saved_bytes for use in alike)
    if len(alike) == 1 and held > MAX_SHARE_OF_ONE * total:
        return False
    return held > total * (MIN_SHARE if alike[0].has_parts else MIN_SHARE_OF_LEAF)
