"""Finds what a query writes, in the description of its plan: a path, a table of the catalog, or a topic."""

import re
from dataclasses import dataclass
from typing import Final

from msgspec import Raw

from spark_app.eventlog.model.plan_names import COMMAND, INSERT_INTO_FILES, SESSION_CATALOG

_COMMAND: Final = re.compile(
    rb"\(\d+\) (?:%b)?(SaveIntoDataSourceCommand|InsertInto\w+|\w*AsSelect\w*|AppendData\w*|Overwrite\w+"
    rb"|MergeInto\w*|DeleteCommand|UpdateCommand) *\\n(?:(?:Input|Output)[^\\]*\\n)*Arguments: (.{1,2000})"
    % COMMAND.encode()
)
"""Commands that write, with their arguments (`QueryExecution.explainString` of mode formatted), as JSON has them."""
_QUOTED: Final = rb"((?:`[^`\\]+`\.)+`[^`\\]+`)"
_NAME: Final = re.compile(_QUOTED)
_DELTA: Final = re.compile(rb"(?:%b, )?\bDelta\[version=-?\d+, ([^\]\\]+)\](?:, %b)?" % (_QUOTED, _QUOTED))
"""The table that a MERGE, UPDATE or DELETE of Delta changes: its path, beside its name if the statement has that."""
_DELTA_V2: Final = re.compile(
    rb"DeltaTableV2\([^,\\]+,([^,\\]+),(?:Some\(.*?\\nDatabase: ([^\\]+)\\nTable: ([^\\]+)\\n)?"
)
"""The table that a command of Spark's own adds rows to or overwrites: its path, and its name in the catalog."""
_DELTA_CREATED: Final = re.compile(rb"org\.apache\.spark\.sql\.delta\.catalog\.\w+@\w+, (\w[\w.-]*), ")
"""The table that a query creates, in the catalog of the session."""
_NAMED: Final = re.compile(rb"\b(?:table|dbtable|topic)=([\w.-]+)")
_PATH: Final = re.compile(rb"\bpath=([^,\]\\]+)")
_FIRST: Final = re.compile(rb"((?:\w+:)?/[^,\\]+)")
_OF_PLAN: Final = re.compile(rb'%b ([^\s,"]+),' % INSERT_INTO_FILES.encode())
_BROKERS: Final = re.compile(rb"KafkaSourceProvider@.*\bkafka\.bootstrap\.servers=([^,\]\\]+)", re.IGNORECASE)
_SAVE: Final = b"SaveIntoDataSourceCommand"
_MODE: Final = re.compile(rb", (Append|Overwrite|ErrorIfExists|Ignore)(?=,|$)")


@dataclass(frozen=True, slots=True)
class Target:
    """What a query writes.

    Attributes:
        name: What names of work show: the table, or else the path or the topic.
        path: A path or URI.
        table: A table of the catalog, which is not a table of a database that is written over JDBC.
        broker: The first Kafka broker of a topic, host and port.
        command: Of Spark, without the suffix of its implementation: `SaveIntoDataSourceCommand`, `AppendData`.
        mode: `Append`, `Overwrite`, `ErrorIfExists` or `Ignore`; None where the command has none.
        source: The first argument of a command that saves: the class of its data source.
    """

    name: str
    path: str | None = None
    table: str | None = None
    broker: str | None = None
    command: str = ""
    mode: str | None = None
    source: str = ""


def target_of(description: Raw, plan: Raw) -> Target | None:
    """What a query writes; None if it writes nothing, or nothing that is known.

    Args:
        description: The description of the physical plan, as JSON.
        plan: The tree of the same plan, where the description has another format (`spark.sql.ui.explainMode`).
    """
    command = _COMMAND.search(bytes(description))
    kind, arguments = (command[1], command[2].partition(rb"\n\n")[0]) if command else (b"", b"")
    path, table = _of_delta(arguments)
    if path is None and table is None:
        path = _first(_PATH.search(arguments), _FIRST.match(arguments), _OF_PLAN.search(bytes(plan)))
        table = _first(_NAME.search(arguments))
    named = _first(_NAMED.search(arguments))
    if kind != _SAVE and path is None and table is None:
        table = named  # as Iceberg writes it
    name = table or path or named
    broker = _first(_BROKERS.search(arguments)) if named and not path else None
    if not name:
        return None
    mode, source = _MODE.search(arguments), arguments.partition(b"@")[0] if kind == _SAVE else b""
    return Target(name, path, table, broker, kind.decode(), mode[1].decode() if mode else None, source.decode())


def _of_delta(arguments: bytes) -> tuple[str | None, str | None]:
    """The path and the name of a Delta table, as far as the arguments of a command have them."""
    changed, added, created = (each.search(arguments) for each in (_DELTA, _DELTA_V2, _DELTA_CREATED))
    if changed:
        return _text(changed[2]), _text(changed[1] or changed[3])
    if added:
        return _text(added[1]), _text(added[2] and b".".join(added.group(2, 3)))
    return None, _first(created)


def _first(*matches: re.Match[bytes] | None) -> str | None:
    found = next(filter(None, matches), None)
    return _text(found[1]) if found else None


def _text(value: bytes | None) -> str | None:
    """A path, or the name of a table without quotes and without the catalog of the session."""
    if not value:
        return None
    return value.decode(errors="replace").strip().replace("`", "").removeprefix(SESSION_CATALOG)
