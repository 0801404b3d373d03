"""The sizes that were tried, for machines."""

from gradinspect.analyses.planning.sizes import SizeTable
from gradinspect.renderers.data.json import render_json


def render_sizes_json(table: SizeTable) -> str:
    """Write each size with its peak, and the largest that fits."""
    return render_json({
        "source": table.source,
        "search": table.name,
        "limit": table.limit,
        "largest": table.largest,
        "rows": table.rows,
        "not_counted": table.not_counted,
        "notes": table.notes,
    })  # fmt: skip
