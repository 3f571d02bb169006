"""What ends a streaming query, turned into one line that says what happened, where, and what to do."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import StreamingQueryException

from spark_app.errors import ConfigError, InputError, MachineError, SparkAppError
from spark_app.redaction import redacted
from spark_app.spark.known_errors import DISK_FULL
from spark_app.telemetry.exceptions import message_of

MAX_CHARACTERS: Final = 300
RESET: Final = "take the change back, or start the query over: spark-app streaming reset {short}"

GO_ON: Final = (
    "raise the retention of the topic, and to go on without these records start once with "
    """SPARK_APP_KAFKA__OPTIONS='{{"failOnDataLoss": "false"}}'"""
)
NO_TLS: Final = (
    "{query}: no TLS connection with Kafka at {servers}: {why}; kafka.truststore must hold the certificate of the "
    "brokers' authority, and kafka.servers the names in their certificates"
)
_RAISED: Final = re.compile(
    r"^(?:(?:[\w$]+\.)*[\w$]*(?:Error|Exception)\b|(?:[a-z]\w*\.){2,}[A-Z][\w$]*: ).*", re.MULTILINE
)
"""A line that names an exception of Java or Python; others may follow, as the expression of SQL that failed."""
NO_TOPIC: Final = "{query}: Kafka at {servers} has no topic {topic}; create it"
NO_BROKER: Final = (
    "{query}: no broker of Kafka at {servers} answers: {why}; start Kafka, or check kafka.servers and "
    "kafka.security_protocol"
)


@dataclass(frozen=True)
class FailedQuery:
    """What the line about a failed query names.

    Attributes:
        query: The name of the query.
        servers: The brokers; None where no Kafka is configured.
        topics: The topics that the query reads.
        checkpoint: The folder of its offsets and state.
        missing: Asks which of the topics the brokers do not have; none where that is not known.
    """

    query: str
    servers: str | None
    topics: Sequence[str]
    checkpoint: str
    missing: Callable[[], Sequence[str]] = tuple


@dataclass(frozen=True)
class StreamFault:
    """One kind of failure.

    Attributes:
        pattern: Of what Spark or Kafka says; its groups are words for the line.
        kind: What kind of failure that is.
        line: What it means: names of `FailedQuery`, groups of `pattern`, `cause` (the line that says it) and `root`
            (the last cause of all).
        is_transient: Whether the query may go on when it is started again, without a change by a person.
    """

    pattern: str
    kind: type[SparkAppError]
    line: str
    is_transient: bool = False


STREAM_FAULTS: Final = (
    StreamFault(
        DISK_FULL,
        MachineError,
        "{query}: the disk is full: {cause}; free some space",
        is_transient=True,
    ),
    StreamFault(
        r"SaslAuthenticationException: (?P<why>.+)",
        ConfigError,
        "{query}: Kafka at {servers} refuses the login: {why}; check kafka.sasl_mechanism, kafka.username and "
        "SPARK_APP_KAFKA__PASSWORD",
    ),
    StreamFault(
        r"SSLHandshakeException: Received fatal alert: (?P<why>\w*certificate\w*|unknown_ca)",
        ConfigError,
        "{query}: Kafka at {servers} refuses the certificate of the client ({why}); set kafka.keystore to one that the "
        "brokers trust",
    ),
    StreamFault(r"SSLHandshakeException: (?P<why>.+)", ConfigError, NO_TLS),
    StreamFault(r"SslAuthenticationException: (?P<why>.+)", ConfigError, NO_TLS),
    StreamFault(
        r"No resolvable bootstrap urls",
        InputError,
        "{query}: the address of Kafka, {servers}, is unknown to this machine; start Kafka, or correct kafka.servers",
        is_transient=True,
    ),
    StreamFault(
        r"Failed to create new KafkaAdminClient|Failed to construct kafka (?:consumer|producer)",
        ConfigError,
        "{query}: Spark cannot use the settings of Kafka: {root}; correct kafka in config/app.yml",
    ),
    StreamFault(
        r"Topic (?P<topic>\S+) not present in metadata(?s:.*)UnknownTopicOrPartitionException",
        InputError,
        NO_TOPIC,
        is_transient=True,
    ),
    StreamFault(r"UnknownTopicOrPartitionException", InputError, NO_TOPIC, is_transient=True),
    StreamFault(
        r"Partitions? Set\((?P<partitions>.+)\) have been deleted",
        ConfigError,
        "{query}: Kafka at {servers} has no partition {partitions} of its checkpoint {checkpoint}: the query now reads "
        f"another topic, or the topic was deleted; {RESET}",
    ),
    StreamFault(
        r"Partition (?P<partition>\S+) offset was changed from (?P<old>\d+) to (?P<new>\d+)",
        InputError,
        "{query}: Kafka at {servers} has {partition} up to offset {new}, and the checkpoint {checkpoint} is at {old}: "
        "the topic was deleted and created again; start the query over: spark-app streaming reset {short}",
    ),
    StreamFault(
        r"Could not read records in offset \[(?P<first>\d+), (?P<end>\d+)\) for topic partition (?P<partition>\S+)",
        InputError,
        "{query}: Kafka at {servers} has deleted records of {partition} that were not read yet, of offsets {first} to "
        f"{{end}}, by its retention; {GO_ON}",
    ),
    StreamFault(
        r"Some data may have been lost(?s:.*?)Reason: (?P<why>.+)",
        InputError,
        f"{{query}}: Kafka at {{servers}} has deleted records that were not read yet: {{why}}; {GO_ON}",
    ),
    StreamFault(
        r"The error could be transient",
        InputError,
        "{query}: the partitions of Kafka at {servers} changed while they were read: {cause}",
        is_transient=True,
    ),
    StreamFault(
        r"(?:common\.errors\.(?:TimeoutException|DisconnectException|NetworkException|NotLeaderOrFollowerException"
        r"|LeaderNotAvailableException)|TimeoutException): (?P<why>.*(?:node|metadata|fetch|offset|partition).*)",
        InputError,
        NO_BROKER,
        is_transient=True,
    ),
    StreamFault(
        r"STATE_STORE_\w*SCHEMA\w*|STREAMING_STATEFUL_OPERATOR_\w+|STREAMING_CHECKPOINT_\w+|STREAM_CHECKPOINT_\w+"
        r"|in the checkpoint offsets|Log file was malformed|Expected e\.g\. \{\"topicA\".*",
        ConfigError,
        f"{{query}}: its checkpoint {{checkpoint}} does not fit it: {{cause}}; {RESET}",
    ),
    StreamFault(
        r"CANNOT_LOAD_STATE_STORE|Incomplete log file",
        InputError,
        "{query}: its checkpoint {checkpoint} is damaged: {cause}; restore it from a copy, or start the query over: "
        "spark-app streaming reset {short}",
    ),
    StreamFault(
        r"DELTA_CONCURRENT_\w+|Concurrent(?:Append|Write|Transaction|DeleteRead|DeleteDelete)Exception",
        MachineError,
        "{query}: another writer changed the same rows at the same time: {cause}; start the query again",
        is_transient=True,
    ),
    StreamFault(
        r"ExecutorLostFailure|Executor heartbeat timed out",
        MachineError,
        "{query}: executors were lost: {cause}; see why in the report or in the log of the workers",
        is_transient=True,
    ),
    StreamFault(
        r"Python worker failed to connect back",
        MachineError,
        "{query}: a Python worker did not start within 10 s; give the machine less to do, or see why in Spark's log",
        is_transient=True,
    ),
)
"""The first that is said counts."""


@dataclass(frozen=True)
class StreamFailure:
    """Why a query ended: the error to raise, and whether a new start may help without a change by its operator."""

    error: SparkAppError
    is_transient: bool


def stream_failure(error: BaseException, failed: FailedQuery) -> StreamFailure | None:
    """What the error that ended a query means; None if it is not a known one.

    Args:
        error: What `start` or `awaitTermination` raised, or `StreamingQuery.exception()` returned.
        failed: What the line names.
    """
    causes = _causes(error)
    for fault in STREAM_FAULTS:
        match = re.search(fault.pattern, causes)
        if match is not None:
            return StreamFailure(fault.kind(_line(fault, match, causes, failed)), fault.is_transient)
    return None


def batch_failure(error: BaseException, failed: FailedQuery) -> SparkAppError | None:
    """The line about an error that is not known and ended a micro-batch; None where none had begun.

    Args:
        error: What `awaitTermination` raised.
        failed: What the line names.
    """
    start, end = _offsets(error)
    if not re.search(r"\d", end):
        return None
    cause = cause_of(error)
    begins = start if re.search(r"\d", start) else "the beginning"
    return SparkAppError(
        f"{failed.query}: its micro-batch from {begins} to {end} failed: {cause}; look at these records, correct what "
        "fails and start the query again, which repeats this micro-batch, or start it over: spark-app streaming "
        f"reset {failed.query.removeprefix('streaming.')}"
    )


def cause_of(error: BaseException) -> str:
    """The line about the last cause of an error."""
    causes = _causes(error)
    return (_RAISED.findall(causes) or causes.splitlines() or ["no reason is given"])[-1][:MAX_CHARACTERS]


def _offsets(error: BaseException) -> tuple[str, str]:
    """The offsets of each source where the failed micro-batch begins and ends; empty where they are not known."""
    origin = getattr(error, "_origin", None) if isinstance(error, StreamingQueryException) else None
    if origin is None:
        return "", ""
    try:
        return f"{origin.startOffset()}"[:MAX_CHARACTERS], f"{origin.endOffset()}"[:MAX_CHARACTERS]
    except Py4JError:  # Java is gone
        return "", ""


def _line(fault: StreamFault, match: re.Match[str], causes: str, failed: FailedQuery) -> str:
    cause, root = _line_at(causes, match.start()), causes.splitlines()[-1]
    short = failed.query.removeprefix("streaming.")
    words = {
        "query": failed.query,
        "short": short,
        "servers": failed.servers or "no servers",
        "checkpoint": failed.checkpoint,
    }
    groups = {name: text[:MAX_CHARACTERS] for name, text in match.groupdict().items() if text}
    is_asked = "{topic}" in fault.line and "topic" not in groups
    topics = failed.missing() if is_asked else ()
    words |= {"topic": " or ".join(topics or failed.topics), "cause": cause, "root": root, "why": cause}
    return fault.line.format_map(words | groups)


def _line_at(text: str, position: int) -> str:
    """The line around a position."""
    first = text.rfind("\n", 0, position) + 1
    return text[first:].splitlines()[0][:MAX_CHARACTERS]


def _causes(error: BaseException) -> str:
    """What the exceptions of Java say, the innermost last: a line, or some, for each; no frames, no plan of the query.

    The plan may hold any text: a filter on a column may look like a cause.
    """
    trace = getattr(error, "_stackTrace", None) or message_of(error)
    outer, *inner = re.split(r"^\s*Caused by: ", redacted(trace), flags=re.MULTILINE)
    return "\n".join(_message_lines(part) for part in inner or [outer])


def _message_lines(part: str) -> str:
    return "\n".join(_lines(part))


def _lines(part: str) -> Iterator[str]:
    """The lines of one exception, up to the plan of the query; without frames of Java."""
    for line in part.splitlines():
        if line.startswith(("Driver stacktrace:", "=== Streaming Query ===")):
            return
        if line.strip() and not re.match(r"\s+(?:at |\.\.\. \d+ more)", line):
            yield line.strip()
