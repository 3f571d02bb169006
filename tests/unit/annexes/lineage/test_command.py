import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any, Final

import msgspec
import pytest
from openlineage.client import facet_v2
from openlineage.client.event_v2 import RunEvent

from spark_app.__main__ import run
from tests.receivers import dead_port

ROOT: Final = Path(__file__).parents[4]
LOGS: Final = ROOT / "tests" / "eventlogs"
LOG: Final = str(next((LOGS / "4.2.0" / "plain").glob("*.zst")))
RECORDED: Final = [
    *sorted(LOGS.glob("*.*.*/plain/*.zst")),
    LOGS / "streaming" / "4.2.0.zst",
    LOGS / "clusters" / "fetch-failure.zst",
    LOGS / "diagnoses" / "plans.zst",
    LOGS / "sources.zst",
]
FACETS: Final = {
    kind._get_schema(): kind
    for module in vars(facet_v2).values()
    if isinstance(module, ModuleType)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, facet_v2.BaseFacet)
}
"""The facets that the client generates from OpenLineage's published JSON Schema, by their addresses."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of its own."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    return tmp_path


def valid(line: str | bytes) -> dict[str, Any]:
    """The event of a line, whose keys have the types of the published schema, in all of its facets, too."""
    event: dict[str, Any] = json.loads(line)
    msgspec.json.decode(line, type=RunEvent)
    for facet in facets(event):
        msgspec.convert(facet, FACETS[facet["_schemaURL"]])
    return event


def facets(value: Any) -> Iterator[dict[str, Any]]:
    """All facets in an event."""
    if isinstance(value, dict):
        yield from [value] if "_schemaURL" in value else []
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from facets(each)


@contextmanager
def receiving(status: int = 201) -> Iterator[tuple[str, list[tuple[str, str, bytes]]]]:
    """A server that answers with a status; its address, and path, key and body of each request."""
    taken: list[tuple[str, str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append((self.path, self.headers.get("Authorization", ""), body))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - its name in the base class
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", taken
        server.shutdown()


@pytest.mark.parametrize("log", RECORDED, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
def test_the_events_of_each_recorded_log_are_valid(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of every version of Spark: each run starts and ends once, the application first and last."""
    assert run(["lineage", str(log)]) == 0
    events = [valid(line) for line in capsys.readouterr().out.splitlines()]
    starts = [event["run"]["runId"] for event in events if event["eventType"] == "START"]
    ends = [event["run"]["runId"] for event in events if event["eventType"] != "START"]
    assert sorted(starts) == sorted(ends)
    assert len({*starts}) == len(starts)
    assert starts[0] == ends[-1]
    assert [event["eventTime"] for event in events] == sorted(event["eventTime"] for event in events)


def test_a_table_leads_from_the_query_that_writes_it_to_the_one_that_reads_it(home: Path) -> None:
    """With columns, rows and bytes; the file has one event a line."""
    file = home / "new" / "lineage.jsonl"
    assert run(["lineage", LOG, "--to", str(file), "--namespace", "prod"]) == 0
    ends = [event for event in map(valid, file.read_bytes().splitlines()) if event["eventType"] == "COMPLETE"]
    written = {output["name"]: output for event in ends for output in event["outputs"]}
    read = {dataset["name"]: dataset for event in ends for dataset in event["inputs"]}
    (name,) = [name for name in written.keys() & read.keys() if name.endswith("/sums")]
    assert [field["name"] for field in written[name]["facets"]["schema"]["fields"]] == ["name", "sum(id)"]
    assert [field["type"] for field in read[name]["facets"]["schema"]["fields"]] == ["string", "bigint"]
    statistics = written[name]["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"] > 0) == (7, True)
    assert {event["job"]["namespace"] for event in ends} == {"prod"}


def test_a_table_of_the_catalog_has_its_name_beside_its_path(capsys: pytest.CaptureFixture[str]) -> None:
    """As OpenLineage's facet `symlinks` has it: whoever knows one of both finds the other."""
    assert run(["lineage", str(LOGS / "sources.zst"), "--namespace", "prod"]) == 0
    events = [valid(line) for line in capsys.readouterr().out.splitlines()]
    clients = [
        each
        for event in events
        for each in (*event["inputs"], *event["outputs"])
        if each["name"] == "/shop/warehouse/clients"
    ]
    names = [each["facets"]["symlinks"]["identifiers"] for each in clients]
    assert names == [[{"namespace": "prod", "name": "default.clients", "type": "TABLE"}]] * len(clients)
    assert len(clients) > 10


def test_a_server_gets_all_events_in_their_order(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where OpenLineage's servers take them, with the key of the environment."""
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "key-1")
    assert run(["lineage", LOG]) == 0
    lines = capsys.readouterr().out.splitlines()
    for base in ("", "/", "/catalog"):
        with receiving() as (address, taken):
            assert run(["lineage", LOG, "--to", address + base]) == 0
        assert [json.loads(body) for _, _, body in taken] == [json.loads(line) for line in lines]
        path = f"{base.rstrip('/')}/api/v1/lineage"
        assert {(where, key) for where, key, _ in taken} == {(path, "Bearer key-1")}


def test_a_server_that_refuses_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    """The message says how many events it took; so for one that does not answer."""
    with receiving(403) as (address, _):
        assert run(["lineage", LOG, "--to", address]) == 2
    assert "403" in capsys.readouterr().err
    assert run(["lineage", LOG, "--to", f"http://127.0.0.1:{dead_port()}"]) == 2
    assert "(0 of " in capsys.readouterr().err


def test_a_file_that_cannot_be_written_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    """And an unknown log with 3."""
    assert run(["lineage", LOG, "--to", "/proc/x/y"]) == 2
    assert "cannot write /proc/x/y" in capsys.readouterr().err
    assert run(["lineage", LOG, "--to", "s3://bucket/lineage"]) == 2
    assert "--to s3://bucket/lineage: lineage is written to a file" in capsys.readouterr().err
    assert run(["lineage", "nothing"]) == 3


def test_a_missing_extra_is_an_error_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says what is missing and what to install."""
    monkeypatch.setitem(sys.modules, "openlineage", None)
    assert run(["lineage"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "of which openlineage is not installed here: install spark-app[lineage]" in line
