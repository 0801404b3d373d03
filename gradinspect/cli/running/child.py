"""A process of its own: run one program, and leave its graphs in capture files, or what its steps need in a file."""

from gradinspect.isolation import OwnSearchPath

with OwnSearchPath():
    import pickle
    from pathlib import Path

    import msgspec

    from gradinspect.cli.program import exit_code_of
    from gradinspect.cli.running import questions
    from gradinspect.cli.running.pipeline import answer
    from gradinspect.cli.running.values_first import answer_with_values
    from gradinspect.graph import Graph


def main(given: str) -> int:
    """Do what our parent process asks, and return the exit code.

    Args:
        given: A file with the request, where to write, and what is wanted: a kind of graphs, in a folder; or a
            number of steps, in a file. Not an argument, because the system limits the length of one.
    """
    return exit_code_of(lambda: record(Path(given)), [])


def record(given: Path) -> None:
    """Run the program of a request, as `main` says."""
    request, folder, wanted = pickle.loads(given.read_bytes())  # noqa: S301  # what our own process wrote
    if isinstance(wanted, int):
        Path(folder).write_bytes(msgspec.json.encode(answer_with_values(request, wanted)))
        return

    def write(graphs: tuple[Graph, ...]) -> None:
        from gradinspect.storage import encode_graph, write_file  # noqa: PLC0415  # after torch: see `report_on`

        for number, graph in enumerate(graphs):
            write_file(Path(folder, f"{number}.json"), encode_graph(graph, compressed=False), force=True)

    if wanted == "calls":
        answer(request, questions.graphs(), write)
    else:
        answer(request, questions.values() if wanted == "values" else questions.graph(), lambda graph: write((graph,)))
