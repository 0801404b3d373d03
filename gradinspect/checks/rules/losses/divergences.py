"""What goes into kl_div, which torch computes from smaller operators: only its call shows what it was given."""

from collections.abc import Iterator

from gradinspect.checks.facts.values import DivergenceInput
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge
from gradinspect.checks.rules.losses.loss_inputs import NOT_LOG


def divergence_findings(fact: DivergenceInput) -> Iterator[Finding]:
    """Report a kl_div that got something other than log-probabilities."""
    kind = fact.maker
    text = (
        f"kl_div received the output of {kind} as its first argument: probabilities, not their logarithms. It is no "
        "distance then, can be negative, and pulls every output in one direction."
    )
    remedy = (
        f"Replace {kind} at {line_of(fact.made)} by {'logsigmoid' if kind == 'sigmoid' else 'log_softmax'}. The second "
        "argument stays as it is."
    )
    if not fact.is_probability:
        text = (
            f"kl_div received the output of {kind} as its first argument, which is not made of log-probabilities: the "
            "loss falls without end as the scores grow."
        )
        remedy = f"Apply log_softmax to the first argument at {line_of(fact.used)}."
    yield NOT_LOG.finding(
        text=text,
        places=(
            *place_of("applied", None if fact.made == fact.used else fact.made),
            *place_of("loss", fact.used),
            *place_of("backward", fact.backward),
        ),
        remedy=remedy,
    )


JUDGE = Judge(DivergenceInput, divergence_findings)
