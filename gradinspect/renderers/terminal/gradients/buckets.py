"""The buckets of DistributedDataParallel, and what holds them up, as lines of `rich.text.Text` and as JSON."""

from collections.abc import Iterator

from rich.text import Text

from gradinspect.analyses.gradients.buckets import (
    BucketReport,
    BucketRow,
    Buckets,
    bucket_notes,
    bucket_rows,
    num_nodes_run,
)
from gradinspect.analyses.summary import passed_over
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.units import format_bytes, format_count

COLUMNS = f"{'bucket':>6}{GAP}{'bytes':>10}{GAP}{'gradients':>9}{GAP}{'ready':>8}{GAP}{'reduced':>8}{GAP}last gradient"


class BucketsPage(Page):
    """Writes the report of one backward call."""

    def lines(self, report: BucketReport, max_rows: int | None) -> Iterator[Text]:
        """Yield the head, then for each model a row per bucket, and what holds them up."""
        yield from self.capture_lines(report.graph)
        count = num_nodes_run(report.graph)
        ran = f"{format_count(count, 'node')} ran, counted in the columns 'ready' and 'reduced'"
        yield from self.wrapped(f"rank {report.rank} of {report.num_ranks}; {ran}")
        yield from self.wrapped(" ".join(passed_over(report.graph)))
        for model in report.models:
            yield Text()
            yield from self.wrapped(_describe(model), "bold")
            rows = bucket_rows(report.graph, model)
            yield Text(self.fit(COLUMNS, self.width), "bold")
            yield from (Text(self.fit(self._row(row), self.width)) for row in rows[:max_rows])
            if max_rows is not None and len(rows) > max_rows:
                yield Text(f"{format_count(len(rows) - max_rows, 'more bucket')}: --full", "dim")
            notes = list(bucket_notes(report.graph, rows))
            for note in notes:
                yield from self.wrapped(self.visible(note), "yellow")
            if not notes:
                yield Text("No gradient holds a bucket up.", "green")

    def _row(self, row: BucketRow) -> str:
        ready, reduced = (f"{place:,}" if place is not None else "never" for place in (row.ready_at, row.reduced_at))
        return (
            f"{row.number:>6}{GAP}{format_bytes(row.num_bytes):>10}{GAP}{row.num_parameters:>9,}{GAP}{ready:>8}{GAP}"
            f"{reduced:>8}{GAP}{self.visible(row.last)}"
        )


def _describe(model: Buckets) -> str:
    count = format_count(len(model.buckets), "bucket")
    if model.is_rebuilt:
        how = "in the order in which rank 0 had the gradients of its first backward call"
    elif model.is_kept:
        how = "in reverse order of registration: with find_unused_parameters they are not made anew"
    else:
        how = "of the first backward call only; later ones are in the order of its gradients"
    return f"{model.model}: {count} of at most {format_bytes(model.cap_bytes)}, {how}"
