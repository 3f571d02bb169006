"""`spark-app data stream`: sends a seeded stream of records at a rate, with a ledger of the planted faults."""

import datetime
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from app.demo import DEMO_SEED
from spark_app import formatting
from spark_app.commands import cells, options
from spark_app.errors import ConfigError, MachineError

if TYPE_CHECKING:
    from app.demo.event_stream import Plan
    from app.demo.feed import Sink
    from app.demo.stream_ledger import StreamLedger
    from spark_app.commands.terminal import Terminal
    from spark_app.settings import Settings

Target = Literal["kafka", "files"]
FAULT: Final = re.compile(r"([a-z0-9_]+)=(\d{1,3}(?:\.\d{1,2})?)")
DEFAULT_SECONDS: Final = 60.0
NO_FAULTS: Final = "none"
BY_KIND: Final = {
    "duplicate_near": "sent again within a second",
    "duplicate_far": "sent again within two minutes",
    "late": "late, inside the watermark",
    "out_of_order": "out of order",
    "very_late": "a day too late",
    "not_json": "no JSON object",
    "wrong_type": "value of a wrong type",
    "no_event_id": "without its id",
    "cut": "cut off",
    "not_utf8": "not UTF-8",
    "negative_amount": "request with a negative amount",
    "hot_user": "of the one hot user (valid)",
    "unknown_user": "unknown user (valid)",
    "late_click": "click long after its impression",
    "unknown_click": "click without impression",
}


def instant(text: str) -> datetime.datetime:
    """The instant that a text such as 2024-01-01T08:00:00Z names, cut to milliseconds.

    Raises:
        typer.BadParameter: It names none, or has no time zone.
    """
    try:
        named = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not an instant such as 2024-01-01T08:00:00Z") from error
    if named.tzinfo is None:
        raise typer.BadParameter(f"{text!r} has no time zone: add Z for UTC")
    return named.replace(microsecond=named.microsecond // 1000 * 1000)


def shares_of(text: str) -> dict[str, int]:
    """Parts of 10,000 by kind of fault, from percentages such as `late=1,cut=0.5`; kinds not named are not planted.

    Raises:
        typer.BadParameter: It has another form, an unknown kind, or more than 50 % in all.
    """
    chosen: dict[str, int] = {}
    for word in () if text == NO_FAULTS else text.split(","):
        match = FAULT.fullmatch(word)
        if match is None:
            raise typer.BadParameter(f"{word!r} is not KIND=PERCENT, such as late=1.5")
        if match[1] not in BY_KIND:
            raise typer.BadParameter(f"unknown fault {match[1]!r}; there are {', '.join(BY_KIND)}")
        chosen[match[1]] = round(float(match[2]) * 100)
    if sum(chosen.values()) > 5_000:
        raise typer.BadParameter("more than half of the records cannot have a fault")
    return chosen


Faults = Annotated[
    dict[str, int] | None,
    typer.Option("--faults", parser=shares_of, metavar="KIND=%,...", help="Faults to plant, or none; all by default."),
]
Start = Annotated[
    datetime.datetime | None,
    typer.Option(
        "--start", parser=instant, metavar="INSTANT", help="Event time of the first record; now if not given."
    ),
]


def data_stream(
    *,
    rate: Annotated[float, typer.Option("--rate", metavar="N", min=0.1, max=50_000, help="Records per second.")] = 20.0,
    seconds: Annotated[
        float | None,
        typer.Option("--for", parser=options.span, metavar="TIME", help="How long: 90s, 5m, 2h; 1m if not given."),
    ] = None,
    to: Annotated[
        Target | None, typer.Option("--to", help="Where to; Kafka if it is configured, else files.", show_default=False)
    ] = None,
    faults: Faults = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="S", min=0, help="The same seed and start give the same records.")
    ] = DEMO_SEED,
    start: Start = None,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Send a seeded stream of user events, ads and clicks at a rate, with planted faults, to Kafka or to files."""
    from app.demo.event_stream import Plan
    from app.demo.faults import STREAM_SHARES
    from app.demo.feed import now
    from spark_app.commands.terminal import Terminal
    from spark_app.settings import load_settings

    settings, terminal = load_settings(config), Terminal()
    shares = STREAM_SHARES if faults is None else faults
    plan = Plan(start=start or now(), seed=seed, rate=rate, currency=settings.currency, shares=dict(shares))
    target = to or ("kafka" if settings.kafka.servers else "files")
    count = int(rate * (DEFAULT_SECONDS if seconds is None else seconds))
    with terminal:
        ledger, file = stream(settings, plan, target, count=count, terminal=terminal)
    if json:
        terminal.answer(ledger=ledger, file=file)
    else:
        listing(terminal, ledger, file=file)


def stream(
    settings: "Settings", plan: "Plan", target: Target, *, count: int, terminal: "Terminal"
) -> tuple["StreamLedger", Path]:
    """Sends so many records of a plan; returns the ledger and its file.

    Raises:
        ConfigError: The target is not configured, or not local.
        MachineError: The broker or the disk refused.
    """
    from app.demo import feed
    from app.demo.stream_ledger import Tally, write_stream_ledger

    landing = local_landing(settings)
    tally = Tally(plan, target)
    with refusals(landing):
        sink = opened(settings, plan, target, landing)
        try:
            every = feed.DROP_SECONDS if target == "files" else feed.SEND_SECONDS
            with terminal.counting(f"sending to {target}", count) as progress:
                feed.send(plan, count, sink, every=every, tally=tally, progress=progress)
        finally:
            file = write_stream_ledger(landing, tally.ledger())
            sink.close()
    return tally.ledger(), file


def opened(settings: "Settings", plan: "Plan", target: Target, landing: Path) -> "Sink":
    """Where the records go.

    Raises:
        ConfigError: No Kafka is configured.
        MachineError: The broker does not answer.
    """
    from app.demo.landing import Landing, prepare

    if target == "files":
        prepare(landing)
        return Landing(landing, plan.name)
    if settings.kafka.servers is None:
        raise ConfigError("no Kafka is configured: set kafka.servers in app.yml or SPARK_APP_KAFKA__SERVERS")
    from app.demo.kafka_topics import KafkaTopics
    from spark_app.spark.kafka import client_options

    return KafkaTopics(client_options(settings.kafka))


def local_landing(settings: "Settings") -> Path:
    """The local folder of the files and of the ledgers.

    Raises:
        ConfigError: It is not local.
    """
    from spark_app.local_files import local_path

    folder = local_path(settings.landing_path)
    if folder is None:
        raise ConfigError(f"stream.landing is {settings.landing_path}: records can be generated only in a local folder")
    return folder


@contextmanager
def refusals(landing: Path) -> Iterator[None]:
    """Turns an error of the file system into one line that names the folder.

    Raises:
        MachineError: The file system refused.
    """
    try:
        yield
    except OSError as error:
        raise MachineError(f"cannot write {landing}: {error.strerror or error}") from error


def listing(terminal: "Terminal", ledger: "StreamLedger", *, file: Path) -> None:
    """Prints the records by topic, what was planted by kind, and the file of the ledger."""
    terminal.line()
    terminal.table(("topic", "records"), _counts(ledger.topics), right=("records",))
    planted = {BY_KIND.get(kind, kind): count for kind, count in ledger.planted.items() if count}
    if planted:
        terminal.line()
        terminal.table(("planted", "records"), _counts(planted), right=("records",))
    terminal.line()
    terminal.facts([("stream", ledger.name), ("ledger", cells.place(file))])


def _counts(counts: Mapping[str, int]) -> list[list[str]]:
    return [[name, formatting.count(count)] for name, count in counts.items()]
