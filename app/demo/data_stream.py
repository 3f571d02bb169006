"""`spark-app data stream`: sends a seeded stream of records at a rate, with a ledger of the planted faults."""

import datetime
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from app.demo import DEMO_SEED
from app.demo.data import local_folder, table_of_faults
from spark_app import formatting
from spark_app.commands import cells, options
from spark_app.errors import ConfigError

if TYPE_CHECKING:
    from app.demo.feed import Landing
    from app.demo.kafka_topics import KafkaTopics
    from app.demo.ledger import Ledger, Plan
    from spark_app.commands.terminal import Terminal
    from spark_app.settings import Settings

Target = Literal["kafka", "files"]
FAULT: Final = re.compile(r"([a-z0-9_]+)=(\d{1,3}(?:\.\d{1,2})?)")
DEFAULT_SECONDS: Final = 60.0
NO_FAULTS: Final = "none"


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
    from app.demo.faults import STREAM_SHARES

    chosen: dict[str, int] = {}
    for word in () if text == NO_FAULTS else text.split(","):
        match = FAULT.fullmatch(word)
        if match is None:
            raise typer.BadParameter(f"{word!r} is not KIND=PERCENT, such as late=1.5")
        if match[1] not in STREAM_SHARES:
            raise typer.BadParameter(f"unknown fault {match[1]!r}; there are {', '.join(STREAM_SHARES)}")
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
    from app.demo.faults import STREAM_SHARES
    from app.demo.feed import now
    from app.demo.ledger import Plan
    from spark_app.commands.terminal import Terminal
    from spark_app.settings import load_settings

    settings, terminal = load_settings(config), Terminal()
    shares = STREAM_SHARES if faults is None else faults
    count = int(rate * (DEFAULT_SECONDS if seconds is None else seconds))
    plan = Plan(start=start or now(), seed=seed, rate=rate, currency=settings.currency, shares=shares)
    with terminal:
        target = to or ("kafka" if settings.kafka.servers else "files")
        ledger, file = stream(settings, plan, target, count=count, terminal=terminal)
    if json:
        terminal.answer(ledger=ledger, file=file)
    else:
        listing(terminal, ledger, file=file)


def stream(
    settings: "Settings", plan: "Plan", target: Target, *, count: int, terminal: "Terminal"
) -> tuple["Ledger", Path]:
    """Sends so many records of a plan; returns the ledger and its file.

    Raises:
        ConfigError: The target is not configured, or not local.
        MachineError: The broker or the disk refused.
    """
    from app.demo import feed
    from app.demo.ledger import Tally
    from app.demo.shop import refusals

    landing = local_folder("stream.landing", settings.landing_path)
    tally = Tally(plan)
    with refusals(landing):
        sink = _opened(settings, plan, target, landing)
        try:
            every = feed.DROP_SECONDS if target == "files" else feed.SEND_SECONDS
            with terminal.counting(f"sending to {target}", count) as progress:
                for group in feed.paced(plan, every=every, count=count):
                    sink.send(group)
                    tally.add(group)
                    progress(len(group))
        finally:
            written = tally.write(landing)
            sink.close()
    return written


def _opened(settings: "Settings", plan: "Plan", target: Target, landing: Path) -> "Landing | KafkaTopics":
    from app.demo.feed import Landing

    if target == "files":
        files = Landing(landing, plan.name)
        files.prepare()
        return files
    if settings.kafka.servers is None:
        raise ConfigError("no Kafka is configured: set kafka.servers in app.yml or SPARK_APP_KAFKA__SERVERS")
    from app.demo.kafka_topics import KafkaTopics
    from spark_app.spark.kafka import client_options

    return KafkaTopics(client_options(settings.kafka))


def listing(terminal: "Terminal", ledger: "Ledger", *, file: Path) -> None:
    """Prints the records by topic, what was planted by kind, and the file of the ledger."""
    topics = [[topic, formatting.count(count)] for topic, count in ledger.parts.items()]
    terminal.line()
    terminal.table(("topic", "records"), topics, right=("records",))
    table_of_faults(terminal, {"records": ledger.planted})
    terminal.line()
    terminal.facts([("stream", ledger.plan.name), ("ledger", cells.shown_path(file))])
