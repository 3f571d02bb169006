"""Merged stacks in the format of pprof, which Go's pprof, Grafana Pyroscope, Parca and speedscope open.

Source: https://github.com/google/pprof/blob/main/proto/profile.proto, of which this has the messages that it writes.
"""

import gzip
from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from spark_app.stack_samples.stack_profile import NO_NODE, Part, StackProfile

_PACKAGE: Final = "perftools.profiles"
_MESSAGES: Final[dict[str, dict[str, tuple[int, str]]]] = {
    "ValueType": {"type": (1, "int64"), "unit": (2, "int64")},
    "Sample": {"location_id": (1, "uint64 repeated"), "value": (2, "int64 repeated")},
    "Location": {"id": (1, "uint64"), "line": (4, "Line repeated")},
    "Line": {"function_id": (1, "uint64"), "line": (2, "int64")},
    "Function": {
        "id": (1, "uint64"),
        "name": (2, "int64"),
        "system_name": (3, "int64"),
        "filename": (4, "int64"),
        "start_line": (5, "int64"),
    },
    "Profile": {
        "sample_type": (1, "ValueType repeated"),
        "sample": (2, "Sample repeated"),
        "location": (4, "Location repeated"),
        "function": (5, "Function repeated"),
        "string_table": (6, "string repeated"),
        "time_nanos": (9, "int64"),
        "duration_nanos": (10, "int64"),
        "period_type": (11, "ValueType"),
        "period": (12, "int64"),
        "default_sample_type": (14, "int64"),
    },
}


def packed(stacks: StackProfile, part: Part) -> bytes:
    """A part as a file of pprof: for each stack, its samples and its time in nanoseconds."""
    profile, strings = message()(), _Strings()
    for kind, unit in (("samples", "count"), ("time", "nanoseconds")):
        profile.sample_type.add(type=strings.number(kind), unit=strings.number(unit))
    profile.default_sample_type = strings.number("time")
    _add_period(profile, stacks, strings)
    stacks_of = {node: _locations(stacks, node) for node in part.own}
    for number in sorted({number for each in stacks_of.values() for number in each}):
        label = stacks.labels[number - 1]
        name, file = strings.number(label.function), strings.number(label.file)
        profile.function.add(id=number, name=name, system_name=name, filename=file)
        profile.location.add(id=number).line.add(function_id=number, line=label.line)
    for node, tally in part.own.items():
        profile.sample.add(location_id=stacks_of[node], value=[tally.samples, round(tally.ms * 1e6)])
    profile.string_table.extend(strings.all)
    return gzip.compress(profile.SerializeToString(), mtime=0)


@cache
def message() -> Any:
    """The class of the message of a profile."""
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        added = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            _add_field(added, field, number, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Profile"))


def _add_field(added: Any, name: str, number: int, kind: str) -> None:
    field = descriptor_pb2.FieldDescriptorProto
    type_name, _, repeated = kind.partition(" ")
    label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
    if type_name in _MESSAGES:
        full = f".{_PACKAGE}.{type_name}"
        added.field.add(name=name, number=number, label=label, type=field.TYPE_MESSAGE, type_name=full)
    else:
        types = {"int64": field.TYPE_INT64, "uint64": field.TYPE_UINT64, "string": field.TYPE_STRING}
        added.field.add(name=name, number=number, label=label, type=types[type_name])


def _add_period(profile: Any, stacks: StackProfile, strings: "_Strings") -> None:
    """When samples were taken, and how often, where that is the same for all processes."""
    processes = stacks.samples.processes
    started = min((process.started_ms for process in processes), default=0)
    ended = max((process.ended_ms for process in processes), default=0)
    profile.time_nanos, profile.duration_nanos = started * 1_000_000, (ended - started) * 1_000_000
    if len(stacks.intervals_ms) == 1:
        profile.period_type.type, profile.period_type.unit = strings.number("time"), strings.number("nanoseconds")
        profile.period = round(stacks.intervals_ms[0] * 1e6)


def _locations(stacks: StackProfile, node: int) -> list[int]:
    """The numbers of the labels of a stack, the innermost first, as pprof has them."""
    found = list[int]()
    while node != NO_NODE:
        found.append(stacks.nodes[node].label + 1)
        node = stacks.nodes[node].parent
    return found


class _Strings:
    """The texts of a profile, each once; the first is empty."""

    def __init__(self) -> None:
        """Has the empty one."""
        self._numbers = {"": 0}

    def number(self, text: str) -> int:
        """The number of a text."""
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def all(self) -> list[str]:
        """All of them."""
        return [*self._numbers]
