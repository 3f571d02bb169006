import datetime
import itertools
import json
from pathlib import Path
from typing import Final

import pytest
import typer

from app.demo import data_stream
from app.demo.event_stream import records
from app.demo.feed import generated_files
from app.demo.ledger import Ledger, Plan
from spark_app import __main__ as program
from spark_app.errors import ConfigError, MachineError
from spark_app.settings import Settings, load_settings
from tests.unit.conftest import Printed

START: Final = datetime.datetime(2024, 1, 1, 8, tzinfo=datetime.UTC)
PLAN: Final = Plan(start=START, rate=1_000)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of the project in an empty home folder."""
    return load_settings().model_copy(update={"home": tmp_path})


def test_the_same_seed_and_start_write_the_same_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole command: files for each topic, and a document with the ledger, which gives the records again."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    options = ["--rate", "500", "--for", "1s", "--start", "2024-01-01T08:00:00.1239Z", "--seed", "3"]
    assert program.run(["data", "stream", *options, "--faults", "cut=20", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    plan = Plan(start=START.replace(microsecond=123_000), seed=3, rate=500, shares={"cut": 2_000})
    expected = list(itertools.islice(records(plan), 500))
    assert document["ledger"]["planted"] == {"cut": sum(record.fault == "cut" for record in expected)}
    assert document["ledger"]["rows"] == 500
    assert Path(document["file"]).name == "20240101T080000123-3.json"
    for topic in ("user_events", "impressions", "clicks"):
        files = generated_files(tmp_path / "data" / "stream" / topic)
        lines = [line for file in files for line in file.read_bytes().split(b"\n")[:-1]]
        assert lines == [record.value for record in expected if record.topic == topic]


def test_a_command_of_two_words_leaves_that_of_one_as_it_is() -> None:
    """`data` takes no word; `data stream` is found only where a command can be."""
    commands = program.command_line().commands
    assert program.spelled_out(["data", "stream", "--rate", "2"], commands) == ["data stream", "--rate", "2"]
    assert program.spelled_out(["data", "--date", "2024-01-01"], commands) == ["data", "--date", "2024-01-01"]
    assert program.spelled_out(["show", "data", "stream"], commands) == ["show", "data", "stream"]


@pytest.mark.parametrize(
    ("text", "shares"), [("none", {}), ("late=1.5", {"late": 150}), ("cut=1,late=0.25", {"cut": 100, "late": 25})]
)
def test_faults_are_given_in_percent(text: str, shares: dict[str, int]) -> None:
    """Kinds that are not named are not planted."""
    assert data_stream.shares_of(text) == shares


@pytest.mark.parametrize(
    ("text", "named"), [("late", "'late'"), ("hot=1", "unknown fault 'hot'"), ("late=60", "half"), ("", "KIND=PERCENT")]
)
def test_faults_that_cannot_be_planted_are_refused(text: str, named: str) -> None:
    """The message names what is wrong, and what there is."""
    with pytest.raises(typer.BadParameter, match=named):
        data_stream.shares_of(text)


@pytest.mark.parametrize("text", ["yesterday", "2024-01-01T08:00:00", "2024-13-01T08:00:00Z"])
def test_a_start_is_an_instant(text: str) -> None:
    """A time without a zone is none."""
    with pytest.raises(typer.BadParameter, match=text):
        data_stream.instant(text)


def test_kafka_must_be_configured(settings: Settings, printed: Printed) -> None:
    """The message names the key and the variable."""
    with pytest.raises(ConfigError, match=r"set kafka\.servers in app\.yml or SPARK_APP_KAFKA__SERVERS"):
        data_stream.stream(settings, PLAN, "kafka", count=1, terminal=printed.terminal)


def test_files_need_a_local_folder(settings: Settings, printed: Printed) -> None:
    """Any other URI is refused by name."""
    far = settings.model_copy(update={"stream": settings.stream.model_copy(update={"landing": "s3a://bucket/x"})})
    with pytest.raises(ConfigError, match="s3a://bucket/x"):
        data_stream.stream(far, PLAN, "files", count=1, terminal=printed.terminal)


def test_a_folder_that_cannot_be_written_is_named(settings: Settings, printed: Printed, tmp_path: Path) -> None:
    """In one line."""
    (tmp_path / "data").touch()
    with pytest.raises(MachineError, match=f"cannot write {tmp_path}/data/stream: Not a directory"):
        data_stream.stream(settings, PLAN, "files", count=1, terminal=printed.terminal)


def test_what_was_sent_is_printed_as_tables(printed: Printed) -> None:
    """Records by topic, then by what was planted; kinds that did not occur are left out."""
    ledger = Ledger(
        source="stream", plan=PLAN, rows=1_234,
        parts={"user_events": 1_200, "impressions": 30, "clicks": 4}, planted={"late": 12, "cut": 0, "not_utf8": 1},
    )  # fmt: skip
    data_stream.listing(printed.terminal, ledger, file=Path("/stream/_ledgers/x.json"))
    assert printed.out.getvalue().splitlines() == [
        "",
        "topic        records",
        "user_events    1,200",
        "impressions       30",
        "clicks             4",
        "",
        "planted fault  records",
        "late                12",
        "not_utf8             1",
        "",
        "stream  20240101T080000000-7",
        "ledger  /stream/_ledgers/x.json",
    ]
