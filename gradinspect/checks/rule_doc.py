"""What a code of a finding means, as a record."""

from gradinspect.graph import Record


class RuleDoc(Record, frozen=True, kw_only=True):
    """What a code means."""

    code: str
    title: str
    text: str
    sample: str  # a program that has it
    remedy: str
