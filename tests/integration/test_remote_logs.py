"""Event logs of a real S3 API, a web server and Spark's own History Server are read as those of this machine."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.__main__ import run
from spark_app.annexes.kubernetes import applications as kubernetes
from spark_app.annexes.mcp.library import Library
from spark_app.annexes.mcp.tools import Tools
from spark_app.errors import InputError
from spark_app.eventlog.diagnoses.thresholds import load_thresholds
from spark_app.eventlog.model.outcome import ending_of
from spark_app.eventlog.parse import remote, storage
from spark_app.eventlog.parse.locations import log_path
from spark_app.eventlog.parse.log_tailer import FOLDER
from spark_app.eventlog.reader import read
from spark_app.report import report_source
from spark_app.settings import load_settings
from spark_app.stack_samples import samples
from spark_app.stack_samples.samples import StackSamples
from tests import storages
from tests.eventlogs import golden
from tests.polling import poll_until
from tests.receivers import dead_port
from tests.unit.annexes.kubernetes.test_applications import ENABLED, HERE, ID, cluster, container, pod
from tests.unit.eventlog.log import started
from tests.unit.eventlog.logs import Bridged, program, text

VERSION: Final = "4.2.0"
PASSWORD: Final = "hunter2hunter2"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An S3 API."""
    with storages.s3() as url:
        yield url


@pytest.fixture
def bucket(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An empty bucket, whose credentials this process has, as every driver of S3 finds them."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", storages.KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", storages.SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return storages.Bucket(endpoint)


def document(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """What a command found, without where it found it."""
    assert run([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for each in found["applications"]:
        del each["log"]
    return found


@pytest.mark.parametrize("layout", ["plain", "zstd", "rolled-zstd", "databricks"])
def test_a_log_in_s3_is_read_as_the_same_one_here(
    layout: str, bucket: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each layout, in blocks of which a log has many."""
    monkeypatch.setattr(remote, "FIRST_BLOCK_BYTES", 1000)
    monkeypatch.setattr(remote, "BLOCK_BYTES", 10_000)
    log = golden.delivered(VERSION, tmp_path) if layout == "databricks" else golden.log(VERSION, layout, tmp_path)
    bucket.put(log, "logs")
    assert document(capsys, "report", f"s3a://{bucket.name}/logs/{log.name}") == document(capsys, "report", str(log))


@pytest.mark.parametrize(
    ("code", "ending"), [(1, "failed with exit code 1"), (143, "killed by SIGTERM (exit code 143)")]
)
def test_an_application_on_kubernetes_is_read_where_its_driver_wrote(
    code: int, ending: str, bucket: Any, tmp_path: Path
) -> None:
    """The newest of its name, and its end is that of the driver's container, which no event log has."""
    log = golden.log(VERSION, "plain", tmp_path)
    bucket.put(log.rename(log.with_name(ID)), "logs")
    ended = container(terminated={"reason": "Error", "exitCode": code})
    older = pod("flights-1", created="2026-11-24T17:00:00Z")
    drivers = [older, pod(phase="Succeeded", containerStatuses=[ended]), older]
    found = kubernetes.application(HERE, cluster(drivers, f"{ENABLED}s3a\\://{bucket.name}/logs"))
    reading = report_source.read(report_source.ReportSource(found.log, None, found))
    assert str(found.log) == f"s3a://{bucket.name}/logs/{ID}"
    assert ending_of(reading.app).text == ending
    assert reading.remarks == [f"Kubernetes says of the driver: Error: exit code {code}"]


def test_a_log_that_is_not_there_yet_is_said_with_what_kubernetes_says_of_the_pods(bucket: Any) -> None:
    """Why executors do not start is in no log, and object stores show a log late."""
    failed = pod("exec-1", containerStatuses=[container(waiting={"reason": "ErrImagePull", "message": "no such tag"})])
    bucket.write(f"begun/{FOLDER}{ID}/appstatus_{ID}.inprogress", b"")
    for folder in ("none", "begun"):
        asked = cluster([pod()], f"{ENABLED}s3a\\://{bucket.name}/{folder}", [failed, failed])
        with pytest.raises(InputError, match=rf"^no event log of {ID} in s3a://.*/{folder} yet") as error:
            kubernetes.application(HERE, asked)
        assert str(error.value).endswith("; Kubernetes says of 2 executors: ErrImagePull: no such tag")


def test_the_newest_log_of_a_folder_in_s3_is_meant(bucket: Any, tmp_path: Path) -> None:
    """As in a folder here."""
    for layout in ("plain", "rolled-zstd"):
        newest = golden.log(VERSION, layout, tmp_path)
        bucket.put(newest, "logs")
        written = int(time.time())
        poll_until(lambda since=written: int(time.time()) > since, "the next second: S3 knows no shorter times")  # type: ignore[misc]
    assert str(read(log_path(f"s3://{bucket.name}/logs/")).log) == f"s3://{bucket.name}/logs/{newest.name}"


def test_assistants_ask_about_logs_in_s3(bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the names that the list has; a log that has grown is read again, as soon as the folder is listed again."""
    monkeypatch.setattr(storage, "LISTING_SECONDS", 0)
    tools = Tools(Library(load_settings(), log_path(f"s3://{bucket.name}/logs"), load_thresholds(None)))
    log = golden.log(VERSION, "plain", tmp_path)
    whole = log.read_bytes()
    bucket.write(f"logs/{log.name}.inprogress", whole[: len(whole) // 2])
    (row,) = tools.list_runs()["runs"]
    before = tools.summary(row["run"])
    bucket.delete(f"logs/{log.name}.inprogress")
    bucket.put(log, "logs")
    after = tools.summary(row["run"])
    assert (before["outcome"], after["outcome"]) == ("incomplete", "failed")
    assert after["log"] == f"s3://{bucket.name}/logs/{log.name}"
    assert tools.search_events(row["run"], event="ApplicationEnd")["events"]


def test_lineage_is_that_of_the_same_log_here(bucket: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the same ids, too."""
    log = golden.log(VERSION, "rolled-zstd", tmp_path)
    bucket.put(log, "logs")
    printed = []
    for place in (str(log), f"s3://{bucket.name}/logs/{log.name}"):
        assert run(["lineage", place]) == 0
        printed.append(capsys.readouterr().out)
    assert "START" in printed[0]
    assert printed[0] == printed[1]


def test_runs_in_s3_are_compared(bucket: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Also with the last ones in the same folder."""
    first, second = (f"s3://{bucket.name}/logs/app-{number}" for number in (1, 2))
    for number in (1, 2):
        _, *lines = program(app_id=f"app-{number}")
        bucket.write(
            f"logs/app-{number}", text(started(1000 - 10 * (2 - number)) | {"App ID": f"app-{number}"}, *lines).encode()
        )
    assert run(["compare", second, first]) == 0
    assert "compared with" in capsys.readouterr().out
    assert run(["compare", second]) == 0
    assert "compared with" in capsys.readouterr().out


def test_what_is_wrong_with_a_location_is_said(bucket: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing object or bucket, a scheme without its driver, one that nobody knows."""
    for location, code, message in (
        (f"s3://{bucket.name}/logs/none", 3, f"no event log at s3://{bucket.name}/logs/none"),
        ("s3://missing/logs", 3, "cannot read s3://missing/logs: there is no bucket 'missing'; check its name"),
        ("s3://missing", 3, "cannot read s3://missing: there is no bucket 'missing'; check its name"),
        ("gs://logs/none", 2, "cannot read gs://logs/none: its driver is not installed; install spark-app[gcs]"),
        ("ftp://logs/none", 3, "cannot read ftp://logs/none: known are s3://"),
    ):
        assert run(["report", location]) == code
        assert message in capsys.readouterr().err


def test_missing_rights_are_said(endpoint: str, bucket: Any, tmp_path: Path) -> None:
    """By the storage, which asks for them from now on."""
    bucket.put(golden.log(VERSION, "plain", tmp_path), "logs")
    storages.require_rights(endpoint, after=0)
    try:
        with pytest.raises(
            InputError, match=rf"no permission to read s3://{bucket.name}/logs/x: check the credentials"
        ):
            read(log_path(f"s3://{bucket.name}/logs/x"))
    finally:
        storages.require_rights(endpoint, after=float("inf"))


def test_an_expired_token_is_said_at_once(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 answers 400 to it, and to HEAD without a reason. No request is repeated; boto3 asks for the region, too."""
    with storages.Refusing(400, "ExpiredToken") as s3:
        monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
        with pytest.raises(
            InputError, match=r"no permission to read s3://logs/x: .*its token has expired or is not valid"
        ):
            read(log_path("s3://logs/x"))
        assert s3.requests == ["HEAD /logs/x", "HEAD /logs"]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "no permission to read {url}/logs/x: check the credentials of this machine"),
        (403, "no permission to read {url}/logs/x: check the credentials of this machine"),
        (404, "no event log at {url}/logs/x"),
    ],
)
def test_a_web_server_that_refuses_is_not_asked_again(status: int, message: str) -> None:
    """Each method is tried once."""
    with storages.Refusing(status, "Refused") as web:
        with pytest.raises(InputError, match=message.format(url=web.url)):
            read(log_path(f"{web.url}/logs/x"))
        assert len(web.requests) == len(set(web.requests))


def test_an_endpoint_that_does_not_answer_is_waited_for_a_while(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing else is waited for."""
    with storages.silent() as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", silent)
        path = log_path("s3://logs/x", patience=0.5)
        for message in ("did not answer within 0.5 s", "was not asked"):
            with pytest.raises(storage.NoAnswerError, match=f"s3://logs/x {message}"):
                read(path)


@pytest.mark.parametrize("location", ["s3://logs/x", "{url}/logs/x", "{url}/history/app-1", "{url}"])
def test_a_refused_connection_is_not_waited_for(
    location: str, bucket: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody listens there, and that is said, in less than the patience for one that is silent."""
    url = f"http://127.0.0.1:{dead_port()}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    began = time.monotonic()
    assert run(["report", location.format(url=url)]) == 3
    assert "the connection is refused: nothing listens at its host and port" in capsys.readouterr().err
    assert time.monotonic() - began < storage.PATIENCE_SECONDS / 2


def test_a_read_that_breaks_off_goes_on_where_it_was(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the same byte: nothing is lost, nothing is read twice."""
    monkeypatch.setattr(remote, "FIRST_BLOCK_BYTES", 20_000)
    log = golden.log(VERSION, "plain", tmp_path)
    bucket.put(log, "logs")
    path = log_path(f"s3://{bucket.name}/logs/{log.name}")
    opened, breaks = path.storage.driver.open, iter([True, False, True])  # type: ignore[union-attr]

    def breaking(*arguments: Any, **named: Any) -> Any:
        handle = opened(*arguments, **named)
        reading = handle.read

        def broken(count: int) -> bytes:
            content: bytes = reading(count)
            if next(breaks, False):
                raise ConnectionResetError
            return content

        handle.read = broken
        return handle

    monkeypatch.setattr(path.storage.driver, "open", breaking)  # type: ignore[union-attr]
    reading, whole = read(path), read(log)
    assert (len(reading.app.jobs), reading.remarks) == (len(whole.app.jobs), [])
    assert next(breaks, None) is None


def test_a_bridge_follows_a_folder_in_s3(bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files come complete, as S3 has it; a while without answers costs nothing."""
    monkeypatch.setattr(storage, "LISTING_SECONDS", 0.0)
    lines = program(40)
    key = f"logs/{FOLDER}app-1"
    bucket.write(f"{key}/appstatus_app-1.inprogress", b"")
    bucket.write(f"{key}/events_1_app-1", text(*lines[:10]).encode())
    folder = log_path(f"s3://{bucket.name}/logs/", patience=5)
    bridged = Bridged(folder, state=tmp_path / "state")
    try:
        bridged.until(lambda: bridged.collector.tasks == 7)
        with monkeypatch.context() as patched:
            patched.setattr(folder.storage, "_patience", 0.0)  # type: ignore[union-attr]
            bridged.until(lambda: any("did not answer" in said for said in bridged.printed))
        bucket.write(f"{key}/events_2_app-1", text(*lines[10:]).encode())
        bucket.delete(f"{key}/appstatus_app-1.inprogress")
        bucket.write(f"{key}/appstatus_app-1", b"")
        bridged.until(lambda: any("ended" in said for said in bridged.printed))
        bridged.until(lambda: bridged.collector.tasks == 40)
    finally:
        bridged.kill()


def test_secrets_of_a_url_are_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither in messages nor in documents, reports and records."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path / "home"))
    folder = tmp_path / "served" / "logs"
    folder.mkdir(parents=True)
    log = golden.log(VERSION, "plain", folder)
    with storages.web(folder.parent) as server:
        secret = server.replace("//", f"//me:{PASSWORD}@") + "/logs/"
        for name, code in ((log.name, 0), ("none", 3)):
            location = f"{secret}{name}?X-Amz-Whatever={PASSWORD}"
            assert run(["report", location, "--json"]) == code
            assert run(["report", location, "--debug"]) == code
            assert run(["compare", location, str(log)]) == code
    assert run(["bridge", f"{secret.replace('/logs/', '/history/app-1')}"]) == 2
    out, err = capfd.readouterr()
    written = [file.read_text() for file in (tmp_path / "home").rglob("*") if file.is_file()]
    assert f"{server}/logs/{log.name}" in out
    assert f"no event log at {server}/logs/none" in err
    assert not [text for text in (out, err, *written) if PASSWORD in text]


def test_a_folder_of_a_web_server_is_read_by_its_listing(tmp_path: Path) -> None:
    """Rolled files, too."""
    log = golden.log(VERSION, "rolled-zstd", tmp_path)
    shutil.copytree(log, tmp_path / "served" / "logs" / log.name)
    with storages.web(tmp_path / "served") as server:
        reading = read(log_path(f"{server}/logs/"))
    assert (str(reading.log), reading.remarks) == (f"{server}/logs/{log.name}", [])
    assert len(reading.app.jobs) == len(read(log).app.jobs)


def test_logs_of_a_history_server_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the URL of a page, of the API, or of the server, which means the newest application.

    The server takes samples of stacks, which lie beside a log, for none.
    """
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path / "home"))
    served = tmp_path / "served"
    served.mkdir()
    plain, rolled = golden.log(VERSION, "plain", served), golden.log(VERSION, "rolled-zstd", tmp_path)
    shutil.copytree(rolled, served / rolled.name)
    expected = {log: document(capsys, "report", str(log)) for log in (plain, rolled)}
    samples.write(StackSamples([], [], [], []), samples.file_of(plain))
    with storages.history_server(served, tmp_path) as server:
        poll_until(lambda: storages.applications(server) == 2, "the applications of the History Server")
        for log, location in (
            (plain, f"{server}/history/{plain.name}/jobs/"),
            (rolled, f"{server}/api/v1/applications/{rolled.name.removeprefix(FOLDER)}/logs"),
            (max(plain, rolled, key=lambda log: log.name.removeprefix(FOLDER)), server),
        ):
            assert document(capsys, "report", location) == expected[log]
        assert run(["report", f"{server}/history/none"]) == 3
        assert f"no application none on the History Server {server}" in capsys.readouterr().err
    assert "ERROR FsHistoryProvider" not in (tmp_path / "history-server.log").read_text(encoding="utf-8")
