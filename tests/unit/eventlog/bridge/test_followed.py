"""What is told of one log: whole trees, or nothing of them."""

from pathlib import Path
from typing import Final

from app.eventlog.bridge.followed import Followed
from app.eventlog.diagnoses.thresholds import load_thresholds
from app.eventlog.logs import Log
from app.eventlog.spans import SparkSpan
from tests.eventlogs import walking
from tests.unit.eventlog.log import SQL, Line, ended, job, job_ended, label, query, query_ended, stage, started, task
from tests.unit.eventlog.logs import tasks_of, write

SAMPLED: Final = f"00-{'a' * 32}-{'b' * 16}-01"
UNSAMPLED: Final = f"00-{'c' * 32}-{'d' * 16}-00"


def followed(log: Path, lines: list[Line]) -> tuple[Followed, dict[str, SparkSpan]]:
    """A log that is read to its end, and the spans that were told of it."""
    told: list[SparkSpan] = []
    found = Followed(
        Log(log.name, write(log, lines), 0),
        tell=lambda _, span: told.append(span),
        is_crowded=lambda: False,
        thresholds=load_thresholds(),
        was_counted=False,
    )
    found.read(float("inf"))
    found.end()
    return found, {label(span): span for span in told}


def of_a_step(number: int, traceparent: str | None) -> list[Line]:
    """A query with a part, a job, a stage and a task, all of that number, for a step."""
    inner, properties = 10 + number, {} if traceparent is None else {"traceparent": traceparent}
    properties["spark.sql.execution.id"] = str(inner)
    return [
        query(number), query(inner, root=number), job(number, [number], **properties),
        stage(number), task(number, number), stage(number, end=2900), job_ended(number), query_ended(inner),
        query_ended(number),
    ]  # fmt: skip


def test_what_is_not_sampled_is_left_out_as_a_whole(tmp_path: Path) -> None:
    """W3C's flag says so: no span of that step, and none of another is missing; all tasks are counted."""
    steps = [(0, SAMPLED), (1, UNSAMPLED), (2, None), (3, UNSAMPLED[:-2] + "02"), (4, SAMPLED[:-2] + "03")]
    lines = [line for number, flags in steps for line in of_a_step(number, flags)]
    found, spans = followed(tmp_path / "app-1", [started(), *lines, ended()])
    assert {name for name in spans if name.startswith(("job", "stage", "task"))} == {
        name for number in (0, 2, 4) for name in (f"job {number}", f"stage {number}.0", f"task {number}")
    }
    assert {int(name.split()[1]) for name in spans if name.startswith("sql")} == {0, 2, 4, 10, 12, 14}
    walking.assert_is_forest(found.app, spans.values())
    assert found.counts.spans_suppressed == 2 * 5
    assert tasks_of(found.meter.aggregate()) == 5


def test_an_exemplar_never_leads_to_a_span_that_is_not_told(tmp_path: Path) -> None:
    """A stage of a trace that is not sampled has none."""
    exemplars = []
    for flags in (SAMPLED, UNSAMPLED):
        found, _ = followed(tmp_path / "app-1", [started(), *of_a_step(0, flags), ended()])
        (group,) = found.meter.aggregate().applications["shop"].groups.values()
        exemplars.append(group.histograms["spark.task.duration"].exemplar)
    assert [exemplar is not None for exemplar in exemplars] == [True, False]


def test_a_stage_is_found_by_the_group_of_its_metrics(tmp_path: Path) -> None:
    """The same text, though adaptive execution has made another plan while the stage was at work."""
    plans = [{"nodeName": f"Execute InsertIntoHadoopFsRelationCommand {path}, x"} for path in ("/sold", "/bought")]
    began = query(0) | {"description": "save at NativeMethodAccessorImpl.java:0", "sparkPlanInfo": plans[0]}
    changed = {"Event": f"{SQL}AdaptiveExecutionUpdate", "executionId": 0, "sparkPlanInfo": plans[1]}
    lines = [started(), began, job(0, [0], **{"spark.sql.execution.id": "0"}), stage(0), changed, task(0, 0)]
    found, spans = followed(tmp_path / "app-1", [*lines, stage(0, end=2900), job_ended(0), query_ended(0), ended()])
    (group,) = found.meter.aggregate().applications["shop"].groups
    assert group == spans["stage 0.0"].attributes["spark.stage.group"] == "save sold [result]"
