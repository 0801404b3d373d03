"""The child process of `cli.sources`: run one program, and leave its graphs in capture files."""

from gradinspect.isolation import OwnSearchPath

with OwnSearchPath():
    import pickle
    from pathlib import Path

    from gradinspect.cli.program import exit_code_of
    from gradinspect.cli.running import questions
    from gradinspect.cli.running.pipeline import answer
    from gradinspect.graph import Graph


def main(given: str) -> int:
    """Do what our parent process asks, and return the exit code.

    Args:
        given: A file with the request, the folder of the capture files, and what is wanted. Not an argument, because
            the system limits the length of one.
    """
    return exit_code_of(lambda: record(Path(given)), [])


def record(given: Path) -> None:
    """Run the program of a request, as `main` says."""
    request, folder, wanted = pickle.loads(given.read_bytes())  # noqa: S301  # what our own process wrote

    def write(graphs: tuple[Graph, ...]) -> None:
        from gradinspect.storage import encode_graph, write_file  # noqa: PLC0415  # after torch: see `report_on`

        for number, graph in enumerate(graphs):
            write_file(Path(folder, f"{number}.json"), encode_graph(graph, compressed=False), force=True)

    if wanted == "calls":
        answer(request, questions.graphs(), write)
    else:
        answer(request, questions.values() if wanted == "values" else questions.graph(), lambda graph: write((graph,)))
