"""Numbers in the source of a script."""

from gradinspect.runner.programs.numbers_in_source import numbers_in, with_numbers

SCRIPT = """
import argparse
batch_size: int = 16
length = depth = 4
parser = argparse.ArgumentParser()
parser.add_argument("-b", "--hidden-size", default=32)
def main(width=8, *, heads=2):
    steps = 3
    return dict(batch_size=16, steps=steps, width=width, heads=heads)
made = main()
lr, is_on = 0.1, True
"""


def test_variables_arguments_and_options_are_found() -> None:
    """Whole numbers only, under the name that the program uses."""
    assert numbers_in(SCRIPT) == {
        "batch_size": [16, 16],
        "length": [4],
        "depth": [4],
        "hidden_size": [32],
        "width": [8],
        "heads": [2],
        "steps": [3],
    }


def test_all_places_of_a_name_get_the_number() -> None:
    """And nothing else changes, lines included."""
    namespace: dict[str, object] = {}
    tree = with_numbers(SCRIPT, {"batch_size": 5, "width": 6})
    exec(compile(tree, "script.py", "exec"), namespace)  # noqa: S102  # ours

    assert namespace["batch_size"] == 5
    assert namespace["made"] == {"batch_size": 5, "steps": 3, "width": 6, "heads": 2}
    assert namespace["length"] == 4
    assert [node.lineno for node in tree.body] == [2, 3, 4, 5, 6, 7, 10, 11]
