import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.annexes.mcp.answers import LEFT_OUT, MAX_CHARACTERS, encoded
from spark_app.annexes.mcp.library import Library
from spark_app.annexes.mcp.tools import MAX_WIDTH, Tools
from spark_app.errors import InputError
from spark_app.eventlog.diagnoses.thresholds import load_thresholds
from spark_app.settings import Settings
from tests.unit.annexes.mcp.conftest import Write
from tests.unit.eventlog import log
from tests.unit.report import made
from tests.unit.stack_samples.made import beside

LOGS: Final = Path(__file__).parents[3] / "eventlogs"
SECRET: Final = "hunter2"


def recorded(settings: Settings, folder: str) -> Tools:
    """The tools over recorded event logs."""
    return Tools(Library(settings, LOGS / folder, load_thresholds(None)))


def every_answer(tools: Tools, run: str) -> Iterator[dict[str, Any]]:
    """An answer of each tool, as long as one may ask for."""
    yield tools.list_runs(limit=200)
    yield tools.summary(run, limit=200)
    yield tools.findings(run, limit=200)
    yield tools.compare(run, run, limit=200)
    yield tools.stage(run, 0, limit=200)
    yield tools.query_plan(run, 0, limit=200)
    yield tools.search_events(run, limit=50, width=MAX_WIDTH)
    yield tools.what_if(run, limit=200)


def test_a_slow_run_is_explained_from_the_list_to_the_operator(settings: Settings) -> None:
    """As an assistant asks: each answer has the ids that the next question needs."""
    tools = recorded(settings, "causes")
    (row,) = [row for row in tools.list_runs("tiny_tasks")["runs"] if row["run"] == "tiny_tasks-planted.zst"]
    summary = tools.summary(row["run"])
    assert (summary["findings"][0]["rule"], summary["outcome"]) == ("tiny_tasks", "ended")
    (finding,) = tools.findings(row["run"], rule="tiny_tasks")["findings"]
    stage = tools.stage(row["run"], finding["places"][0]["stage"]["id"])
    assert "tiny_tasks" in [each["rule"] for each in stage["findings"]]
    assert stage["data"]["spilled_bytes"] == 0
    plan = tools.query_plan(row["run"], stage["query"]["id"])
    assert any("shuffle records written" in operator.get("numbers", {}) for operator in plan["operators"])


def test_a_profiled_stage_names_its_hottest_line(settings: Settings, tmp_path: Path) -> None:
    """And the summary says in which stages the program's own time went."""
    stage = [log.job(0, [0]), log.stage(0), log.task(1, 0), log.stage(0, end=2900), log.job_ended(0)]
    beside(made.written(tmp_path / "app-1", [log.started(), log.executor(), *stage, log.ended()]))
    tools = Tools(Library(settings, tmp_path, load_thresholds(None)))
    (function,) = tools.stage("app-1", 0)["stack_samples"]["functions"]
    assert (function["name"], function["line"], function["innermost_ratio"]) == ("score", 3, 0.6667)
    totals = tools.summary("app-1")["stack_samples"]
    assert (totals["samples"], [each["name"] for each in totals["hottest_function_of_places"]]) == (60, ["score"])
    assert "places" not in totals


def test_two_runs_are_compared(settings: Settings) -> None:
    """With what differs between them."""
    found = recorded(settings, "causes").compare("spill-planted.zst", "spill-quiet.zst")
    assert {"name": "spark.memory.fraction", "now": "0.05"} in found["settings"]


def test_what_if_forecasts_changes_and_says_what_it_cannot(settings: Settings) -> None:
    """With an interval, or with reasons; a change that is none names all that there are."""
    tools = recorded(settings, "causes")
    found = tools.what_if("spill-planted.zst", ["cores=1", "memory=1k"])
    likely, unknown = found["forecasts"]
    assert likely["low_ms"] < likely["ms"] < likely["high_ms"]
    assert "ms" not in unknown
    assert "less memory" in unknown["reasons"][0]
    assert {"disk", "gc", "skew"} <= {each["cause"] for each in found["blocked_time"]}
    with pytest.raises(InputError, match="none of cores=N"):
        tools.what_if("spill-planted.zst", ["core=1"])


def test_the_longest_stages_and_queries_come_first(settings: Settings) -> None:
    """The next page goes on where this one ends."""
    tools = recorded(settings, "diagnoses")
    pages = [tools.summary("plans.zst", limit=5, offset=offset) for offset in (0, 5)]
    for name in ("stages", "queries"):
        times = [row["duration_ms"] for page in pages for row in page[name]]
        assert times == sorted(times, reverse=True)
    assert pages[0][LEFT_OUT][0] == "stages: 5 of 134 are here; 5 to 133 with offset=5"


def test_a_summary_has_the_streaming_queries(settings: Settings) -> None:
    """With their batches, rows and lag; a run without one has no such list."""
    (query,) = recorded(settings, "streaming").summary("falling_behind-planted.zst")["streaming_queries"]
    assert (query["name"], query["status"], query["batches"], query["rows_read"]) == ("orders", "stopped", 23, 27445)
    assert query["lag_records"] == 205_599
    assert "streaming_queries" not in recorded(settings, "diagnoses").summary("plans.zst")


def test_findings_of_a_severity_are_found(settings: Settings) -> None:
    """And none of another one."""
    tools = recorded(settings, "diagnoses")
    found = {each: tools.findings("stages.zst", severity=each)["findings"] for each in ("warning", "info")}
    assert {name: {row["severity"] for row in rows} for name, rows in found.items()} == {
        "warning": {"warning"}, "info": {"info"},
    }  # fmt: skip
    assert len(found["info"]) + len(found["warning"]) == tools.summary("stages.zst")["number_of_findings"]


def test_events_are_searched_page_by_page(settings: Settings) -> None:
    """All are reached."""
    tools, after, lines = recorded(settings, "diagnoses"), 0, []
    while True:
        page = tools.search_events("plans.zst", event="StageCompleted", after=after, limit=50)
        lines += [row["line"] for row in page["events"]]
        if LEFT_OUT not in page:
            break
        after = int(page[LEFT_OUT][0].rpartition("=")[2])
    assert len(lines) == len(set(lines)) == 134


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("summary", {"run": "nothing"}, "no run or event log 'nothing' in"),
        ("stage", {"run": "plans.zst", "stage": 9999}, "ran no stage 9999: it has 134, from 0 to"),
        ("stage", {"run": "plans.zst", "stage": 0, "attempt": 7}, "stage 0 of plans.zst has no attempt 7, only 0"),
        ("query_plan", {"run": "empty.zst", "query": 0}, "has no query 0"),
        ("compare", {"run": "plans.zst"}, "no earlier successful run of 'plans': name the run to compare with"),
    ],
)
def test_a_wrong_name_or_number_is_explained(
    settings: Settings, name: str, arguments: dict[str, Any], message: str
) -> None:
    """With what there is instead."""
    with pytest.raises(InputError, match=message):
        getattr(recorded(settings, "diagnoses"), name)(**arguments)


def test_a_damaged_log_is_told_as_far_as_it_goes(tools: Tools, settings: Settings) -> None:
    """The remarks say what is missing; a file that is no log at all is refused."""
    whole = (LOGS / "diagnoses" / "stages.zst").read_bytes()
    (settings.events_path / "cut.zst").write_bytes(whole[: len(whole) // 2])
    (settings.events_path / "noise.zst").write_bytes(b"noise" * 1000)
    assert any("cannot be unpacked" in remark for remark in tools.summary("cut.zst")["remarks"])
    for name in (tools.summary, tools.findings, tools.compare):
        with pytest.raises(InputError, match="cannot be unpacked"):
            name("noise.zst")


def test_answers_about_a_huge_and_hostile_log_are_small(tools: Tools, write: Write) -> None:
    """Whatever its names hold and however many there are; each says that it left something out."""
    lines = made.large(stages=120, tasks=600, queries=40, text=made.HOSTILE, operators=200)
    failing = [log.task(9000 + number, 0, attempt=1, error=made.HOSTILE) for number in range(80)]
    changed = {"modifiedConfigs": {f"spark.a.{number}": made.HOSTILE for number in range(300)}}
    write("huge", ((line | changed if "SQLExecutionStart" in line["Event"] else line) for line in [*lines, *failing]))
    answers = list(every_answer(tools, "huge"))
    sizes = [len(encoded(answer)) for answer in answers]
    assert max(sizes) <= MAX_CHARACTERS, sizes
    assert [LEFT_OUT in answer for answer in answers][1::4] == [True, True]


def test_an_event_of_quotes_and_backslashes_has_room_in_an_answer(tools: Tools, write: Write) -> None:
    """Each takes two characters, since an event is shown as JSON within JSON."""
    write("quoted", [log.started() | {"App Name": '"\\' * 20_000}, log.ended()])
    found = tools.search_events("quoted", event="ApplicationStart", width=MAX_WIDTH)
    assert (len(found["events"][0]["content"]), len(encoded(found)) <= MAX_CHARACTERS) == (MAX_WIDTH, True)


def test_no_answer_has_a_secret(tools: Tools, write: Write) -> None:
    """From settings, descriptions, plans, errors and names."""
    text = (
        f"read jdbc:x://me:{SECRET}@db with password={SECRET} OPTIONS (user 'u', password '{SECRET}') "
        f'option("password", "{SECRET}") (password,{SECRET}) password -> {SECRET} {{\\"password\\":\\"{SECRET}\\"}} '
        f"dbpass={SECRET} OPENAI_KEY={SECRET} Bearer {SECRET:_<16} password=a,{SECRET} x://u:p@{SECRET}@host"
    )
    lines = list(made.large(stages=2, tasks=4, queries=2, text=text, operators=3))
    lines.insert(-1, log.task(99, 0, error=f"token={SECRET}"))
    settings = {"modifiedConfigs": {"fs.s3a.secret.key": SECRET, "dbpass": SECRET}}
    changes: dict[str, log.Line] = {
        "SparkListenerApplicationStart": {"App Name": text},
        f"{log.SQL}ExecutionStart": settings,
    }
    write("leaky", (line | changes.get(line["Event"], {}) for line in lines))
    answers = json.dumps(list(every_answer(tools, "leaky")))
    assert "(redacted)" in answers
    assert SECRET not in answers


def test_a_stage_that_reads_from_many_names_some_of_them(tools: Tools, write: Write) -> None:
    """As after a union of thousands; the answer is bounded, and has their number."""
    lines = list(made.large(stages=2, tasks=4, queries=2, text="x", operators=3))
    for line in lines:
        if "Stage Info" in line:
            line["Stage Info"]["Parent IDs"] = list(range(100, 20_100))
    write("union", lines)
    answer = tools.stage("union", 0)
    assert (len(answer["reads_from_stages"]), answer["number_of_stages_read_from"]) == (50, 20_000)


def test_a_summary_has_the_clients_of_spark_connect(settings: Settings) -> None:
    """Users with what they cost, and a page of what they asked for."""
    summary = recorded(settings, "connect").summary("server.zst", limit=3)
    assert {each.get("user") for each in summary["connect"]["users"]} == {"ana", "ben", "cyd", "dan", None}
    assert [each["status"] for each in summary["operations"]] == ["canceled", "failed", "failed"]
    assert "operations: 3 of 21 are here; 3 to 20 with offset=3" in summary["left_out"]
    assert "connect" not in recorded(settings, "diagnoses").summary("plans.zst")
