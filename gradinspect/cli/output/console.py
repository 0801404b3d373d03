"""The console for results, apart from the other output because it imports rich."""

from rich.console import Console

from gradinspect.cli.output.printing import ReaderLeft


class OutputConsole(Console):
    """A console that leaves to the caller what to do when its reader has gone."""

    def on_broken_pipe(self) -> None:
        """Say so.

        Raises:
            ReaderLeft: Always.
        """
        raise ReaderLeft
