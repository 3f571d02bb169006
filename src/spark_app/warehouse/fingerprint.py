"""How a table was made, as its commits say it: read from the log of the table, without Spark.

The `userMetadata` of a commit is the name of its writer, a space, and a JSON object: see `Fingerprint`.
"""

import datetime
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from spark_app.warehouse.delta_log import COMPACTION, MAINTENANCE, NO_ROWS, made_in
from spark_app.warehouse.freshness import Files, versions

MOST_COMMITS: Final = 100
"""So many commits are read, from the newest back, to find one that says how its rows were made."""
MOST_BYTES: Final = 4096
"""A fingerprint that is longer names modules, and not each function in them."""
_OF_SAME_ROWS: Final = MAINTENANCE | {
    COMPACTION, "ADD COLUMNS", "CHANGE COLUMN", "COMPUTE STATS", "DELETE", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES",
    "UPDATE COLUMN METADATA", "UPGRADE PROTOCOL",
}  # fmt: skip
"""Operations after which a table has no rows that it did not have before."""


class Fingerprint(msgspec.Struct, frozen=True, omit_defaults=True):
    """What decides on the rows of a table, by names and digests; texts where a change is told by them.

    Attributes:
        code: All that its function says and calls.
        parts: By module and name, each function, class and value of that; by module alone where these are too many.
        rest: What its function says of rows, and of the columns that are not in `columns`.
        columns: By column, what says how it is computed of these rows.
        schema: Its columns: the name and the type of each.
        comments: What the comments of its columns say.
        key: The columns that identify a row.
        partitions: The columns that its files are partitioned by.
        inputs: What is declared of its source and topics.
        reads: By table that it reads, how that is made; a topic that a query sends is one, too.
        rules: By expectation, what it expects.
        limits: By expectation, its limit, and what else decides whether rows are published.
        options: What is configured of how rows are made.
        versions: Of Python, Spark, this library, and the packages that its function uses.
        properties: Properties of Spark on which rows depend.
    """

    code: str = ""
    parts: Mapping[str, Mapping[str, str]] = {}
    rest: str = ""
    columns: Mapping[str, str] = {}
    schema: Sequence[tuple[str, str]] = ()
    comments: str = ""
    key: Sequence[str] = ()
    partitions: Sequence[str] = ()
    inputs: Mapping[str, str] = {}
    reads: Mapping[str, str] = {}
    rules: Mapping[str, str] = {}
    limits: Mapping[str, str] = {}
    options: Mapping[str, str] = {}
    versions: Mapping[str, str] = {}
    properties: Mapping[str, str] = {}


class Written(NamedTuple):
    """What the log of a table says of how it was made.

    Attributes:
        fingerprint: How it was made; None where no commit says it.
        version: The version of the commit that says it, or that does not.
        at: The instant of that commit.
        problem: Why no fingerprint is known.
    """

    fingerprint: Fingerprint | None
    version: int = -1
    at: datetime.datetime | None = None
    problem: str = ""


class _Info(msgspec.Struct):
    timestamp: int = 0
    operation: str = ""
    metadata: str = msgspec.field(name="userMetadata", default="")


class _Action(msgspec.Struct):
    info: _Info | None = msgspec.field(name="commitInfo", default=None)


_ACTION: Final = msgspec.json.Decoder(_Action)


def encoded(fingerprint: Fingerprint) -> str:
    """The text of a fingerprint in a commit; without single functions where it would be long."""
    text = msgspec.json.encode(fingerprint)
    if len(text) > MOST_BYTES:
        text = msgspec.json.encode(msgspec.structs.replace(fingerprint, parts=by_module(fingerprint.parts)))
    return text.decode("utf-8")


def by_module(parts: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Parts, of which each module is one; its own digest is that of the digests of its parts."""

    def whole(names: Mapping[str, str]) -> str:
        text = " ".join(f"{name} {digest}" for name, digest in sorted(names.items()))
        return names["*"] if [*names] == ["*"] else hashlib.sha256(text.encode("utf-8")).hexdigest()[:10]

    return {module: {"*": whole(names)} for module, names in parts.items()}


def decoded(text: str) -> Fingerprint | None:
    """The fingerprint that a text of a commit is; None of another text, such as one of a later release."""
    try:
        found = msgspec.json.decode(text, type=Fingerprint)
    except msgspec.MsgspecError:
        return None
    return found if found.code else None


def written(table: Files) -> Written | None:
    """How a table was made, by the newest commit that says it; None of a table that has no rows yet.

    Raises:
        InputError: It is on another storage, which refuses or does not answer.
    """
    log = table / "_delta_log"
    try:
        names = [file.name for file in log.iterdir()] if log.is_dir() else []
        commits = versions(names)[::-1]
        found = next(_statements(log, commits[:MOST_COMMITS]), None)
    except (OSError, ValueError) as error:
        return Written(None, problem=f"its log cannot be read: {error}")
    if found is not None:
        return None if found.problem == NO_ROWS else found
    if not commits:
        return None
    return Written(None, commits[0], problem=f"none of its last {len(commits[:MOST_COMMITS])} commits says how")


def _statements(log: Files, commits: Sequence[int]) -> Iterator[Written]:
    """What commits say of how rows were made, from the newest back; those that make none are left out."""
    for version in commits:
        lines = (log / f"{version:020d}.json").read_bytes().splitlines()
        infos = (_ACTION.decode(line).info for line in lines if line)
        info = next((each for each in infos if each), _Info())
        at = datetime.datetime.fromtimestamp(info.timestamp / 1000, datetime.UTC)
        if info.metadata == NO_ROWS:
            yield Written(None, version, at, NO_ROWS)
        elif text := made_in(info.metadata):
            problem = f"its version {version} says it in a form that is not known"
            found = decoded(text)
            yield Written(found, version, at, "" if found else problem)
        elif info.operation not in _OF_SAME_ROWS:
            yield Written(None, version, at, f"its version {version} ({info.operation or 'unknown'}) does not say it")
