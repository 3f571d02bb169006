"""Reads the stack samples of a recording of Java's Flight Recorder, also of a JVM that was killed.

A recording is a sequence of chunks. Each describes the classes of its events itself, and has the values that many
events share, as stacks are, once: so a sample takes some bytes, where `jfr print --json` writes 40 kB, and no Java is
needed (docs/decisions/0035-stack-samples.md). The layout is that of `jdk.jfr.internal.consumer.ChunkParser`.
"""

import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

MAGIC: Final = b"FLR\0"
HEADER: Final = struct.Struct(">4sHHqqqqqqqi")
SAMPLES: Final = ("jdk.ExecutionSample", "jdk.NativeMethodSample", "jdk.CPUTimeSample")
JVM: Final = "jdk.JVMInformation"
PARK: Final = "jdk.ThreadPark"
THREAD_START: Final = "jdk.ThreadStart"
MONITOR: Final = "jdk.JavaMonitorEnter"
WAITS: Final = (PARK, MONITOR, "jdk.JavaMonitorWait")
EVENTS: Final = frozenset({*SAMPLES, *WAITS, JVM, THREAD_START})
METADATA: Final = 0
CHECKPOINT: Final = 1
MAX_NESTED: Final = 12
"""References from value to value that are followed: a method has a class, which has a loader, which has a class."""
Value = Any
"""A number, a text, a reference, or the fields of a nested value by name."""


@dataclass(frozen=True, slots=True)
class JavaFrame:
    """A frame of a stack: its class and method as in Java's source, and its line, 0 if unknown."""

    type: str
    method: str
    line: int


@dataclass(frozen=True, slots=True)
class JavaSample:
    """A sample, or a wait that Java has noted; the outermost frame is the first.

    Attributes:
        at_ms: When, in milliseconds since the epoch; of a wait, its begin.
        event: The name of its event.
        thread: Java's number of the thread.
        frames: Its frames.
        is_complete: Whether the outermost frames are there, too.
        began_ms, duration_ms: Of a wait, its begin with fractions, and how long it took.
    """

    at_ms: int
    event: str
    thread: int
    frames: tuple[JavaFrame, ...]
    is_complete: bool
    began_ms: float = 0.0
    duration_ms: float = 0.0


@dataclass(slots=True)
class Recording:
    """What recordings of one JVM contain; `arguments` are those of its main class, `threads` when threads began."""

    samples: list[JavaSample] = field(default_factory=list)
    arguments: str = ""
    started_ms: int = 0
    ended_ms: int = 0
    waits: list[JavaSample] = field(default_factory=list)
    threads: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Reference:
    """A value that events share: the number of its class, and its key."""

    kind: int
    key: int


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    kind: int
    is_shared: bool
    is_array: bool


@dataclass(frozen=True, slots=True)
class _Class:
    name: str
    fields: list[_Field]


def read(content: bytes, into: Recording) -> None:
    """Adds the chunks of a file to what is known of a JVM.

    Raises:
        ValueError: It is no recording, or it is damaged.
    """
    start = 0
    try:
        while start + HEADER.size <= len(content):
            start += Chunk(content, start).read(into)
    except (LookupError, ValueError, struct.error, RecursionError) as error:
        raise ValueError(f"no whole recording of Java's Flight Recorder: {error!r}") from error


class Chunk:
    """One chunk; its clock counts ticks from its start."""

    def __init__(self, content: bytes, start: int) -> None:
        magic, _, _, *numbers = HEADER.unpack_from(content, start)
        if magic != MAGIC:
            raise ValueError("it does not begin as one")
        self._size: int = numbers[0]
        self._checkpoint, metadata, self._began, took, self._ticks, self._rate = numbers[1:7]
        self._ended = self._began + took
        if self._size <= HEADER.size or not metadata:
            raise ValueError("the JVM has not written it yet")
        self._content = content[start : start + self._size]
        self._read_string = _Strings(self)
        self._classes = _classes(self._content, metadata)
        self._readers: dict[int, Callable[[int], tuple[Value, int]]] = {}
        self._pools: dict[int, dict[int, Value]] = {}
        self._frames: dict[int, tuple[tuple[JavaFrame, ...], bool]] = {}
        self._threads: dict[int, int] = {}

    def read(self, into: Recording) -> int:
        """Reads the values that events share, then the events; returns the length of the chunk."""
        self._read_pools()
        wanted = {number: each.name for number, each in self._classes.items() if each.name in EVENTS}
        position = HEADER.size
        while position < len(self._content):
            size, after = number_at(self._content, position)
            if not size:  # of a killed JVM
                break
            kind, after = number_at(self._content, after)
            if kind in wanted:
                self._add(wanted[kind], self.value(kind, after)[0], into)
            position += size
        into.started_ms = min(into.started_ms or sys.maxsize, self._began // 1_000_000)
        into.ended_ms = max(into.ended_ms, self._ended // 1_000_000)
        return self._size

    def _add(self, event: str, value: Value, into: Recording) -> None:
        if event == JVM:
            into.arguments = self.resolved(value["javaArguments"]) or ""
            return
        at = self._at(value)
        if event == THREAD_START:
            into.threads[self._thread(value["thread"])] = at / 1e6
            return
        stack, thread = value["stackTrace"], value.get("sampledThread", value.get("eventThread"))
        if not isinstance(stack, _Reference) or not isinstance(thread, _Reference) or not stack.key:
            return  # the sampler could not walk the stack
        took = value.get("duration", 0) * 1000 / self._rate
        sample = JavaSample(at // 1_000_000, event, self._thread(thread), *self._stack(stack), at / 1e6, took)
        (into.waits if event in WAITS else into.samples).append(sample)

    def _at(self, value: Value) -> int:
        """When an event began, in nanoseconds since the epoch."""
        return int(self._began + (value["startTime"] - self._ticks) * 1_000_000_000 // self._rate)

    def _thread(self, reference: _Reference) -> int:
        known = self._threads.get(reference.key)
        if known is None:
            self._threads[reference.key] = known = int(self._shared(reference)["javaThreadId"])
        return known

    def _stack(self, reference: _Reference) -> tuple[tuple[JavaFrame, ...], bool]:
        known = self._frames.get(reference.key)
        if known is None:
            value = self._shared(reference)
            frames = tuple(self._frame(each) for each in reversed(value["frames"]))
            known = self._frames[reference.key] = frames, not value["truncated"]
        return known

    def _frame(self, value: Value) -> JavaFrame:
        method = self.resolved(value["method"])
        name = self.resolved(self.resolved(method["type"])["name"])
        return JavaFrame(self._text(name).replace("/", "."), self._text(method["name"]), max(0, value["lineNumber"]))

    def _text(self, value: Value) -> str:
        """A text; a symbol of the JVM is a value with one."""
        found = self.resolved(value)
        return self._text(found["string"]) if isinstance(found, dict) else str(found or "")

    def resolved(self, value: Value) -> Value:
        """A value that events share, for a reference."""
        for _ in range(MAX_NESTED):
            if not isinstance(value, _Reference):
                return value
            value = self._shared(value)
        raise ValueError("a value refers to itself")

    def _shared(self, reference: _Reference) -> Value:
        return self._pools[reference.kind][reference.key]

    def _read_pools(self) -> None:
        """Reads the values that events share: the last checkpoint names the one before."""
        position, delta = self._checkpoint, self._checkpoint
        while delta:
            delta = self._read_checkpoint(position)
            position += delta

    def _read_checkpoint(self, position: int) -> int:
        """Reads the values of a checkpoint; returns how far the one before is from it, 0 for the first."""
        _, after = number_at(self._content, position)
        for _ in range(3):  # type, start, duration
            _, after = number_at(self._content, after)
        delta, after = _signed(*number_at(self._content, after), is_int=False)
        count, after = number_at(self._content, after + 1)  # the byte is its kind
        for _ in range(count):
            after = self._read_pool(after)
        return delta

    def _read_pool(self, after: int) -> int:
        kind, after = number_at(self._content, after)
        count, after = number_at(self._content, after)
        pool = self._pools.setdefault(kind, {})
        for _ in range(count):
            key, after = number_at(self._content, after)
            value, after = self.value(kind, after)
            pool.setdefault(key, value)
        return after

    def value(self, kind: int, position: int) -> tuple[Value, int]:
        """The value of a class at a position, and where it ends."""
        reader = self._readers.get(kind)
        if reader is None:
            reader = self._readers[kind] = self._reader(self._classes[kind])
        return reader(position)

    def _reader(self, kind: _Class) -> Callable[[int], tuple[Value, int]]:
        """What reads the values of a class."""
        content = self._content
        if kind.name == "java.lang.String":
            return self._read_string
        if kind.name in ("boolean", "byte"):
            return lambda at: (content[at], at + 1)
        if kind.name in ("char", "short", "int", "long"):
            is_int = kind.name != "long"
            return lambda at: _signed(*number_at(content, at), is_int=is_int)
        if kind.name in ("float", "double"):
            form = struct.Struct(">f" if kind.name == "float" else ">d")
            return lambda at: (form.unpack_from(content, at)[0], at + form.size)
        return lambda at: self._fields(kind.fields, at)

    def _fields(self, fields: Sequence[_Field], at: int) -> tuple[dict[str, Value], int]:
        values: dict[str, Value] = {}
        for each in fields:
            count = 1
            if each.is_array:
                count, at = number_at(self._content, at)
            found = []
            for _ in range(count):
                if each.is_shared:
                    key, at = number_at(self._content, at)
                    found.append(_Reference(each.kind, key))
                else:
                    value, at = self.value(each.kind, at)
                    found.append(value)
            values[each.name] = found if each.is_array else found[0]
        return values, at

    def string_class(self) -> int:
        """The number of the class of texts."""
        return next(number for number, each in self._classes.items() if each.name == "java.lang.String")

    def byte(self, at: int) -> int:
        """A byte."""
        return self._content[at]

    def text(self, at: int) -> tuple[str, int]:
        """A text that stands at a position."""
        return text_at(self._content, at)


class _Strings:
    """Reads texts, which may be shared."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk

    def __call__(self, at: int) -> tuple[Value, int]:
        if self._chunk.byte(at) == 2:
            key, after = number_at(self._chunk._content, at + 1)
            return _Reference(self._chunk.string_class(), key), after
        return self._chunk.text(at)


def number_at(content: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first (the ninth byte has eight), and where it ends."""
    byte = content[at]
    if byte < 128:
        return byte, at + 1
    value, shift = byte & 127, 7
    while shift < 56:
        at += 1
        byte = content[at]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at + 1
        shift += 7
    return value | content[at + 1] << 56, at + 2


def _signed(value: int, at: int, *, is_int: bool) -> tuple[int, int]:
    bits = 32 if is_int else 64
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value, at


def text_at(content: bytes, at: int) -> tuple[str, int]:
    """A text with the byte of its kind before it, and where it ends.

    Raises:
        ValueError: It is of another kind.
    """
    kind, at = content[at], at + 1
    if kind in (0, 1):  # none, empty
        return "", at
    length, at = number_at(content, at)
    if kind in (3, 5):
        return content[at : at + length].decode("utf-8" if kind == 3 else "latin-1", "replace"), at + length
    if kind != 4:
        raise ValueError(f"texts of kind {kind} are not known")
    units = []
    for _ in range(length):
        unit, at = number_at(content, at)
        units.append(chr(unit))
    return "".join(units), at


def _classes(content: bytes, at: int) -> dict[int, _Class]:
    """The classes of a chunk by their numbers, from its metadata."""
    _, at = number_at(content, at)
    for _ in range(4):  # type, start, duration, number
        _, at = number_at(content, at)
    count, at = number_at(content, at)
    texts = []
    for _ in range(count):
        text, at = text_at(content, at)
        texts.append(text)
    elements: list[tuple[str, dict[str, str], list[tuple[str, dict[str, str]]]]] = []
    _read_element(content, at, texts, elements)
    return {int(attributes["id"]): _class(attributes, children) for name, attributes, children in elements}


def _read_element(
    content: bytes,
    at: int,
    texts: Sequence[str],
    classes: list[tuple[str, dict[str, str], list[tuple[str, dict[str, str]]]]],
) -> tuple[tuple[str, dict[str, str]], int]:
    """Reads an element and all below it, and keeps those that are classes."""
    name, at = number_at(content, at)
    count, at = number_at(content, at)
    attributes = {}
    for _ in range(count):
        key, at = number_at(content, at)
        value, at = number_at(content, at)
        attributes[texts[key]] = texts[value]
    count, at = number_at(content, at)
    children = []
    for _ in range(count):
        child, at = _read_element(content, at, texts, classes)
        children.append(child)
    if texts[name] == "class":
        classes.append((texts[name], attributes, children))
    return (texts[name], attributes), at


def _class(attributes: dict[str, str], children: Sequence[tuple[str, dict[str, str]]]) -> _Class:
    return _Class(attributes["name"], list(_of_class(children)))


def _of_class(children: Sequence[tuple[str, dict[str, str]]]) -> Iterator[_Field]:
    for name, each in children:
        if name == "field":
            is_shared = each.get("constantPool") == "true"
            yield _Field(each["name"], int(each["class"]), is_shared, int(each.get("dimension", 0)) > 0)
