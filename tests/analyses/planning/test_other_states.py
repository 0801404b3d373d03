"""What other optimizers would hold, beside what those of torch do hold."""

from gradinspect.analyses.planning.other_states import ParameterSize, other_states


def estimates(*shapes: tuple[int, ...]) -> dict[str, int]:
    """Estimate by optimizer, for parameters in float32."""
    sizes = (ParameterSize(shape=shape, item_bytes=4) for shape in shapes)
    return {state.optimizer.partition(" ")[0]: state.num_bytes for state in other_states(sizes)}


def test_each_optimizer_has_its_state() -> None:
    """Small parameters stay in floats for 8-bit Adam; vectors are not factored."""
    assert estimates((100, 200)) == {"SGD": 80_000, "8-bit": 2 * (20_000 + 79 * 4), "Adafactor": 1200}
    assert estimates((64,)) == {"8-bit": 512, "SGD": 256, "Adafactor": 256}
    assert estimates((8, 4, 3, 3))["Adafactor"] == 8 * 4 * (3 + 3) * 4


def test_what_holds_most_comes_first() -> None:
    """As in a sentence."""
    assert [*estimates((1000, 1000))] == ["SGD", "8-bit", "Adafactor"]
