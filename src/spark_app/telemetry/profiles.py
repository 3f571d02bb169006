"""Profiles as requests of OTLP (`opentelemetry.proto.profiles.v1development`), which have each text and stack once."""

import hashlib
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from opentelemetry.exporter.otlp.proto.common._internal import _encode_resource, _encode_value
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.sdk.resources import Resource

from spark_app.telemetry import names

FRAME_TYPE: Final = "profile.frame.type"
"""The attribute of the semantic conventions for the interpreter of a function."""
FULL: Final = 2_000_000
"""Bytes of a request after which a new one begins: gRPC receivers accept 4 MiB."""
TOGETHER: Final = 50_000
"""Observations of a stack in one message, at most."""
_TABLES: Final = ("mapping", "location", "function", "link", "attribute", "stack")
_BYTES: Final = 32
"""What an entry of a table, or the rest of a sample, takes at most beside its lists and texts."""
_BYTES_OF_OBSERVATION: Final = 18
_BYTES_OF_INDEX: Final = 4

FrameType = Literal["jvm", "cpython"]
Attributes = tuple[tuple[str, str | int], ...]
Unit = tuple[str, str]
"""What values count, and in what: `("samples", "count")`."""


@dataclass(frozen=True, slots=True, eq=False)
class ProfileFrame:
    """A function in a stack; the line is 0 if it is not known. Two are never equal, so that tables find them fast."""

    type: FrameType
    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """Functions, the innermost first. Two are never equal, as with functions."""

    frames: tuple[ProfileFrame, ...]


class SpanLink(NamedTuple):
    """The span that observations belong to."""

    trace_id: int
    span_id: int


class Origin(NamedTuple):
    """What observations have in common: the stack, the span, and attributes."""

    stack: Stack
    link: SpanLink | None = None
    attributes: Attributes = ()


@dataclass(slots=True)
class Observations:
    """When something was observed, in nanoseconds since the epoch, and how much of it."""

    times: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Profile:
    """Observations of one type.

    Attributes:
        key: Names it among all profiles: its id is derived from it, so that what is sent twice has one.
        sample_type: What the values count.
        observations: They, by what they have in common.
        period_type: What is between two observations; None where they have no such distance.
        period: How much of it.
    """

    key: str
    sample_type: Unit
    observations: dict[Origin, Observations]
    period_type: Unit | None = None
    period: int = 0


def requests(profiles: Iterable[Profile], resource: Resource) -> Iterator[ExportProfilesServiceRequest]:
    """Profiles of a resource as requests that receivers accept by their size; a large profile is in several."""
    request = _Request(resource)
    for profile in profiles:
        is_begun = False
        for part, (origin, observations) in enumerate(_pieces(profile)):
            if request.size > FULL:
                yield request.message
                request, is_begun = _Request(resource), False
            if not is_begun:
                request.begin(profile, part)
                is_begun = True
            request.add(origin, observations)
    if request.size:
        yield request.message


def _pieces(profile: Profile) -> Iterator[tuple[Origin, Observations]]:
    for origin, observations in profile.observations.items():
        for start in range(0, len(observations.times), TOGETHER):
            end = start + TOGETHER
            yield origin, Observations(observations.times[start:end], observations.values[start:end])


class _Request:
    """A request that grows.

    Attributes:
        message: What it is so far.
        size: The bytes of what was added, or some more.
    """

    def __init__(self, resource: Resource) -> None:
        """Every table begins with an empty entry, which stands for nothing."""
        self.message, self.size = ExportProfilesServiceRequest(), 0
        self._dictionary: Any = self.message.dictionary
        self._numbers: dict[tuple[str, Hashable], int] = {("string", ""): 0}
        self._dictionary.string_table.append("")
        for table in _TABLES:
            getattr(self._dictionary, f"{table}_table").add()
        of_resource = self.message.resource_profiles.add(resource=_encode_resource(resource))
        self._profiles = of_resource.scope_profiles.add()
        self._profiles.scope.name = names.SCOPE
        self._profile: Any = None

    def begin(self, profile: Profile, part: int) -> None:
        """Further observations are of a profile, or of a part of it."""
        identity = hashlib.sha256(f"{profile.key}\0{part}".encode()).digest()[:16]
        self._profile = self._profiles.profiles.add(profile_id=identity, period=profile.period)
        self._set(self._profile.sample_type, profile.sample_type)
        if profile.period_type is not None:
            self._set(self._profile.period_type, profile.period_type)

    def add(self, origin: Origin, observations: Observations) -> None:
        """Adds observations to the profile."""
        self._profile.samples.add(
            stack_index=self._stack(origin.stack),
            link_index=0 if origin.link is None else self._link(origin.link),
            attribute_indices=[self._attribute(*attribute) for attribute in origin.attributes],
            values=observations.values,
            timestamps_unix_nano=observations.times,
        )
        self.size += _BYTES + _BYTES_OF_OBSERVATION * len(observations.times)
        self._cover(min(observations.times), max(observations.times))

    def _cover(self, first: int, last: int) -> None:
        """Makes the time of the profile contain two moments; its end is not of it."""
        begin, has_time = self._profile.time_unix_nano, self._profile.duration_nano > 0
        end = begin + self._profile.duration_nano
        begin, end = (min(begin, first), max(end, last + 1)) if has_time else (first, last + 1)
        self._profile.time_unix_nano, self._profile.duration_nano = begin, end - begin

    def _set(self, value_type: Any, unit: Unit) -> None:
        value_type.type_strindex, value_type.unit_strindex = map(self._text, unit)

    def _stack(self, stack: Stack) -> int:
        known = self._numbers.get(("stack", stack))
        if known is not None:
            return known
        locations = [self._location(frame) for frame in stack.frames]
        return self._entry("stack", stack, len(locations) * _BYTES_OF_INDEX, location_indices=locations)

    def _location(self, frame: ProfileFrame) -> int:
        known = self._numbers.get(("location", frame))
        if known is not None:
            return known
        function, type_ = self._function(frame.function, frame.file), self._attribute(FRAME_TYPE, frame.type)
        line = {"function_index": function, "line": frame.line}
        return self._entry("location", frame, lines=[line], attribute_indices=[type_])

    def _function(self, name: str, file: str) -> int:
        texts = {"name_strindex": self._text(name), "filename_strindex": self._text(file)}
        return self._entry("function", (name, file), **texts)

    def _link(self, link: SpanLink) -> int:
        trace, span = link.trace_id.to_bytes(16), link.span_id.to_bytes(8)
        return self._entry("link", link, trace_id=trace, span_id=span)

    def _attribute(self, key: str, value: str | int) -> int:
        return self._entry("attribute", (key, value), key_strindex=self._text(key), value=_encode_value(value))

    def _text(self, text: str) -> int:
        numbers = self._numbers
        if ("string", text) not in numbers:
            numbers["string", text] = len(self._dictionary.string_table)
            self._dictionary.string_table.append(text)
            self.size += _BYTES + len(text.encode())
        return numbers["string", text]

    def _entry(self, table: str, key: Hashable, size: int = 0, **fields: object) -> int:
        """The number of an entry of a table, which is added if it is not there yet."""
        if (table, key) not in self._numbers:
            entries = getattr(self._dictionary, f"{table}_table")
            self._numbers[table, key] = len(entries)
            entries.add(**fields)
            self.size += _BYTES + size
        return self._numbers[table, key]
