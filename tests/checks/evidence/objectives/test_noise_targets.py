"""Which targets are noise that the input does not contain, on calls made by hand."""

from gradinspect.checks.evidence.objectives.noise_targets import Unseen, unseen_noise
from gradinspect.checks.facts.value_flow import Call, Read

WEIGHT = Read(leaf=0, is_live=True)


def denoiser(*, target: int = 6, has_weight: bool = True) -> list[Call]:
    """Make the calls of a denoiser: of noise 2 in the input, or another one, for the target."""
    level = (Read(call=0),) if has_weight else ()
    return [
        Call(op="torch.rand"),  # the level
        Call(op="torch.Tensor.mul", reads=(*level, Read())),
        Call(op="torch.randn_like", reads=(Read(),)),
        Call(op="torch.Tensor.mul", reads=(*level, Read(call=2))),
        Call(op="torch.Tensor.add", reads=(Read(call=1), Read(call=3))),
        Call(op="torch.nn.functional.linear", reads=(Read(call=4), WEIGHT)),
        Call(op="torch.randn_like", reads=(Read(),)),
        Call(op="torch.nn.functional.mse_loss", reads=(Read(call=5, is_live=True), Read(call=target))),
    ]


def found(calls: list[Call]) -> list[Unseen]:
    """Look behind the last call."""
    return list(unseen_noise(calls, Read(call=len(calls) - 1, is_live=True)))


def test_noise_of_another_draw_is_unseen() -> None:
    """With the sum that has the other noise."""
    assert found(denoiser()) == [Unseen(4, 6, 7)]


def test_noise_that_the_input_contains_is_seen() -> None:
    """As a denoiser should have it."""
    assert not found(denoiser(target=2))


def test_noise_of_an_augmentation_is_another_thing() -> None:
    """Its weight is a number."""
    assert not found(denoiser(has_weight=False))
