"""The cells of notebooks as files: `cell 3` for what a notebook's program calls by a name of its own.

A notebook that we run ourselves compiles its cells as `<cell 3>`. IPython gives them names of temporary files, and
knows which cell each belongs to.
Source: IPython/core/compilerop.py, IPython 9.
"""

import re
import sys

_OURS = re.compile(r"<(cell \d+)>")
_NUMBER = re.compile(r"\[(\d+)\]")


def cell_name(file: str) -> str | None:
    """Return the name of the cell that a file name stands for; None if it is not a cell."""
    ours = _OURS.fullmatch(file)
    if ours is not None:
        return ours[1]
    ipython = sys.modules.get("IPython")
    if ipython is None or not ("ipykernel_" in file or file.startswith("<ipython-input-")):
        return None
    try:
        _, label = ipython.get_ipython().compile.format_code_name(file)
        found = _NUMBER.search(label)
    except Exception:  # its own code, of any version
        return None
    return None if found is None else f"cell {found[1]}"
