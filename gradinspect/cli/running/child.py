"""The child process of `cli.sources`: run one program, and leave its graph in a capture file."""

from gradinspect.isolation import OwnSearchPath

with OwnSearchPath():
    import base64
    import pickle
    import sys
    from pathlib import Path

    from gradinspect.cli.program import exit_code_of
    from gradinspect.cli.running import questions
    from gradinspect.cli.running.reporting import answer
    from gradinspect.graph import Graph


def record(given: str) -> None:
    """Run the program of a request.

    Args:
        given: The request, the name of the file, and whether to take fingerprints, by our parent process.
    """
    request, file, has_values = pickle.loads(base64.b64decode(given))  # noqa: S301  # what our own process wrote

    def write(graph: Graph) -> None:
        from gradinspect.storage import encode_graph, write_file  # noqa: PLC0415  # after torch: see `report_on`

        write_file(Path(file), encode_graph(graph, compressed=False), force=True)

    answer(request, questions.values() if has_values else questions.graph(), write)


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(exit_code_of(lambda: record(words[0]), words))
