"""What the rules about tensors that no gradient reaches share: lines and words."""

from gradinspect.checks.facts.values import MissingGradient, NoticedAt
from gradinspect.checks.findings import Place, place_of


def places_of(one: MissingGradient) -> list[Place]:
    """List the lines of a tensor's way to where its gradient is missing."""
    places = [*place_of("read", one.read)]
    if one.kind == "cut":
        cut = one.off or one.cut
        places += place_of("detached", cut, None if one.off is not None else one.called)
        places += place_of("used", None if one.used == cut else one.used)
        places += place_of("forced", one.forced)
    elif one.kind == "unused":
        places += place_of("last", one.cut)
        places += place_of("replaced", None if one.replaced == one.cut else one.replaced)
    places += place_of("backward", one.backward)
    if one.noticed.frame != one.backward:
        places += place_of({"read": "wanted"}.get(one.noticed.kind, one.noticed.kind), one.noticed.frame)
    return places


def failure(noticed: NoticedAt) -> str:
    """Say that torch will raise an error."""
    return f"This {'autograd.grad' if noticed.kind == 'grad' else 'backward'} will fail."


def and_failure(noticed: NoticedAt) -> str:
    """Say so after another sentence, where a missing gradient is an error."""
    return f" {failure(noticed)}" if noticed.kind == "grad" else ""
