"""Which lookups cut the gradient of a code, on calls made by hand."""

import pytest

from gradinspect.checks.evidence.objectives import codebooks
from gradinspect.checks.evidence.objectives.codebooks import Lookup, unlearned_lookups
from gradinspect.checks.facts.value_flow import Call, Read
from gradinspect.recording.transparency.own_errors import OwnErrors

ENCODER, TABLE, DECODER = (Read(leaf=number, is_live=True) for number in range(3))

NOTHING = OwnErrors().pass_over


def live(call: int) -> Read:
    """Read what a call made, which requires grad."""
    return Read(call=call, is_live=True)


def autoencoder(*, decoded: int = 3, decoder: Read = DECODER) -> list[Call]:
    """Make the calls of a vector-quantized autoencoder, whose decoder is given what a call made."""
    return [
        Call(op="torch.nn.functional.linear", reads=(Read(), ENCODER)),
        Call(op="torch.functional.cdist", reads=(live(0), TABLE)),
        Call(op="torch.Tensor.argmin", reads=(live(1),), cause="integer"),
        Call(op="torch.nn.functional.embedding", reads=(Read(call=2), TABLE)),
        Call(op="torch.Tensor.detach", reads=(live(3),), cause="detach"),
        Call(op="torch.Tensor.add", reads=(live(0), Read(call=4))),  # z + (q - z).detach()
        Call(op="torch.nn.functional.linear", reads=(live(decoded), decoder)),
        Call(op="torch.nn.functional.mse_loss", reads=(live(6), Read())),
        Call(op="torch.nn.functional.mse_loss", reads=(live(0), Read(call=4))),
        Call(op="torch.Tensor.add", reads=(live(7), live(8))),
    ]


def test_a_decoder_that_is_given_the_entry_teaches_the_encoder_nothing() -> None:
    """The entry is compared with the code of call 0."""
    assert list(unlearned_lookups(autoencoder(), live(9), NOTHING)) == [Lookup(2, 3, 0, 8, 6)]


def test_a_straight_through_estimator_does() -> None:
    """And so does a layer that made the code itself, as one that reads its own best word."""
    assert not list(unlearned_lookups(autoencoder(decoded=5), live(9), NOTHING))
    assert not list(unlearned_lookups(autoencoder(decoder=ENCODER), live(9), NOTHING))


def test_without_a_comparison_another_rule_speaks() -> None:
    """The encoder then gets no gradient at all."""
    assert not list(unlearned_lookups(autoencoder(), live(7), NOTHING))


def test_lookups_beyond_a_number_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not looked at."""
    monkeypatch.setattr(codebooks, "MAX_LOOKUPS", 0)
    errors = OwnErrors()

    assert not list(unlearned_lookups(autoencoder(), live(9), errors.pass_over))
    assert list(errors.notes()) == ["Not checked: 1 lookup of a chosen entry, after the first 0 of a loss."]
