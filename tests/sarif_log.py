"""The part of SARIF 2.1.0 that we write, as strict types: an unknown or missing property is an error.

Written from the standard, section 3: which properties an object has, which it must have, and their types. The schema of
the standard itself may not be copied here; `python benchmarks/sarif.py sarif-schema-2.1.0.json` validates with it.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field


class Object(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Any object of a log."""


Text = Annotated[str, Meta(min_length=1)]
Uri = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.~/%-]+$")]  # relative, and percent-encoded
Positive = Annotated[int, Meta(ge=1)]


class Message(Object, frozen=True):
    """3.11."""

    text: Text
    markdown: str | None = None


class Snippet(Object, frozen=True):
    """3.3."""

    text: str


class ArtifactLocation(Object, frozen=True):
    """3.4."""

    uri: Uri
    uri_base_id: str


class Region(Object, frozen=True):
    """3.30."""

    start_line: Positive
    snippet: Snippet | None = None


class PhysicalLocation(Object, frozen=True):
    """3.29."""

    artifact_location: ArtifactLocation
    region: Region


class LogicalLocation(Object, frozen=True):
    """3.33."""

    fully_qualified_name: str
    kind: Literal["function"]


class Location(Object, frozen=True):
    """3.28."""

    physical_location: PhysicalLocation
    logical_locations: list[LogicalLocation] = []
    id: Annotated[int, Meta(ge=0)] | None = None
    message: Message | None = None


class Suppression(Object, frozen=True):
    """3.35."""

    kind: Literal["inSource", "external"]
    justification: str


class Result(Object, frozen=True):
    """3.27."""

    rule_id: str
    rule_index: Annotated[int, Meta(ge=0)]
    level: Literal["error"]
    message: Message
    locations: list[Location]
    related_locations: list[Location]
    partial_fingerprints: dict[str, str]
    suppressions: list[Suppression] = []


class Configuration(Object, frozen=True):
    """3.50."""

    level: Literal["error"]


class Rule(Object, frozen=True):
    """3.49."""

    id: str
    name: Annotated[str, Meta(pattern=r"^[A-Z][A-Za-z0-9]*$")]
    short_description: Message
    full_description: Message
    help: Message
    default_configuration: Configuration
    properties: dict[Literal["tags"], list[str]]


class Driver(Object, frozen=True):
    """3.19."""

    name: Text
    version: str
    rules: list[Rule]


class Tool(Object, frozen=True):
    """3.18."""

    driver: Driver


class Notification(Object, frozen=True):
    """3.58."""

    level: Literal["note"]
    message: Message


class Invocation(Object, frozen=True):
    """3.20."""

    execution_successful: bool
    tool_execution_notifications: list[Notification]


class AutomationDetails(Object, frozen=True):
    """3.17."""

    id: Text


class BaseLocation(Object, frozen=True):
    """3.4, without a URI: where a checkout is, the reader knows."""

    description: Message


class Run(Object, frozen=True):
    """3.14."""

    tool: Tool
    automation_details: AutomationDetails
    invocations: list[Invocation]
    original_uri_base_ids: dict[str, BaseLocation]
    results: list[Result]


class Log(Object, frozen=True):
    """3.13."""

    schema: str = field(name="$schema")
    version: Literal["2.1.0"]
    runs: list[Run]
