"""Watermarks that jump, on a real broker: what the query says of one, and how what it dropped comes back."""

import datetime
import json
import re
from pathlib import Path

from app.topics import INCOMING, OUTGOING
from spark_app.execution import stream_position, stream_reset
from spark_app.execution.run import load_jobs
from spark_app.execution.streams import run_queries
from spark_app.execution.supervisor import StopCondition
from spark_app.runs.run_record import RunRecord
from spark_app.telemetry.run_files import LOGS
from tests.integration.home import Home
from tests.kafka import Broker
from tests.unit.watching import Watching


def send(broker: Broker, *names: str, at: datetime.datetime | None = None) -> None:
    """Sends events of now, or of another instant."""
    instant = at or datetime.datetime.now(datetime.UTC)
    event = {"user_id": "c-0000001", "event_type": "view", "timestamp": f"{instant:%Y-%m-%dT%H:%M:%SZ}"}
    broker.send("user_events", [json.dumps(event | {"event_id": name}).encode() for name in names])


def run(home: Home) -> RunRecord:
    """Lets the queries of events and of dead letters read all that is there; returns the record of the first."""
    jobs = load_jobs(home.settings, "streaming", ["events", "dead_letters"])
    with home.application("spark-app streaming") as application:
        assert run_queries(application, jobs, StopCondition(is_draining=True), Watching()) == []
    (record,) = (each for each in application.results if each.pipeline == "streaming.events")
    return record


def test_the_remedy_of_the_runbook_brings_back_what_an_event_of_the_future_made_late(
    home: Home, broker: Broker
) -> None:
    """The query says at once what it drops, in its log with the run's trace; afterwards none is lost or doubled."""
    for topic in (*(each.name for each in INCOMING), *OUTGOING):
        broker.create_anew(topic)
    bounded = home.settings.model_copy(update={"kafka": broker.kafka})
    stream = home.settings.stream.model_copy(update={"event_time_after_max": None})
    home.settings = bounded.model_copy(update={"stream": stream})
    send(broker, "a")
    run(home)
    before = datetime.datetime.now(datetime.UTC)
    send(broker, "future", at=datetime.datetime(2099, 1, 1, tzinfo=datetime.UTC))
    record = run(home)
    (line,) = (note for note in home.notes if "ahead of the clock" in note)
    assert "streaming.events: its watermark, 2098-12-31 23:30:00Z, is" in line
    log = (home.settings.runs_path / record.run_id / LOGS).read_text(encoding="utf-8")
    assert any(line in each and f"{record.trace_id}" in each and "WARN" in each for each in log.splitlines())
    send(broker, "b", "c")
    assert run(home).counts["late"] == 2
    assert home.rows("events", "event_id") == [("a",), ("future",)]
    remedy = re.search(
        r"## StreamLateRows.*?```\n(.*?)```", Path("docs/runbook.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert remedy is not None
    assert [line.split()[2:3] for line in remedy[1].splitlines()] == [["reset"], ["seek"], []]
    home.settings = bounded
    deletion = stream_reset.deletion(home.warehouse, home.settings, "streaming.events")
    stream_reset.delete(home.warehouse, deletion, note=home.notes.append)
    stream_position.move(home.warehouse, home.settings, "streaming.dead_letters", before)
    run(home)
    assert home.rows("events", "event_id") == [("a",), ("b",), ("c",)]
    letters = home.rows("dead_letters", "dead_letter_id", "reason")
    assert letters == [("user_events-0-1", "timestamp later than its record")]
