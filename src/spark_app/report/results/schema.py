"""The JSON document of `observe`, `report` and `compare`: what it has, and its JSON Schema.

All keys are always there; None is unknown, or not for this command. Names end with their unit: `_ms`, `_bytes`, and
`_ratio` from 0 to 1, or above it for a difference. Texts have their secrets masked.

The sections of a report make the same structs, with what only a page draws; `values.document` makes the document of
them, whose texts are masked and cut as the types of the fields say.

`python -m spark_app.report.results.schema > docs/results.schema.json` writes the schema after a change. A new key keeps
the version; a key that goes, or means something else, raises it.
"""

import sys
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from spark_app.eventlog.comparison.compare import Comparison
from spark_app.eventlog.document import Count, Known, Name, StageKey
from spark_app.eventlog.findings import HotKey, Place, Severity, Subject
from spark_app.eventlog.model import outcome
from spark_app.redaction import redacted
from spark_app.report.parts import Connect, ErrorText, Figures, Query, Stage, Stream, TextIfAny
from spark_app.report.sections.replays import Replays
from spark_app.report.sections.stack_samples import SparkStep
from spark_app.report.sections.unexplained import Unexplained
from spark_app.report.values import evidence
from spark_app.stack_samples import samples
from spark_app.vocabulary import names

NAME: Final = "spark-app.results"
VERSION: Final = 1
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

Command = Literal["observe", "report", "compare"]
Outcome = Literal[outcome.Outcome, names.Outcome]
Location = Annotated[str, Meta(extra={"shown": lambda content: redacted(str(content))})]
"""A path or a URL, which a script opens."""


class Error(Struct):
    """Why the command failed, in one line; `type` is the name of the exception."""

    type: str
    message: str


class Failed(Struct):
    """A condition of `--fail-on` that holds, and why; `application` is an id, None where none was judged."""

    condition: str
    reason: str
    application: str | None


class Program(Struct):
    """The observed command; `not_observed` has a line for each start of Spark without an event log."""

    exit_code: int
    seconds: float
    not_observed: list[str]


class Run(Struct):
    """The spark-app run that a report is about; figures, stages, queries and findings are of this run only."""

    run_id: str
    pipeline: str
    slice: str
    trace_id: str | None


class Finding(Struct):
    """A conclusion with its evidence, its cost in wall-clock time, and advice; docs/diagnoses.md explains each rule.

    `subject` is what it is about: the job, the data that it reads, or the hosts that it runs on. `cost_low_ms` and
    `cost_high_ms` are the least and the most that it may cost, where the log cannot tell it closely. `because` is the
    rule of the finding that it is a consequence of, and None for a cause of its own. `hot_key` needs `--name-hot-keys`.
    `limits` are the thresholds of the rule as they were, by their keys in `config/diagnoses.yml`.
    """

    rule: str
    severity: Severity
    subject: Subject
    text: str
    advice: str
    numbers: Annotated[dict[str, int | float], Meta(extra={"shown": evidence})] = msgspec.field(name="evidence")
    cost_ms: Known
    cost_ratio: float | None
    operator: Name | None
    found_in: list[Place] = msgspec.field(name="places")
    cost_low_ms: Known = None
    cost_high_ms: Known = None
    because: str | None = None
    hot_key: HotKey | None = None
    limits: dict[str, int | float] = {}


class HotFunction(Struct):
    """A function of the user's program by samples of stacks; `line` is its hottest, null if unknown.

    `innermost_ratio` is the share of the time with it as the innermost of the user's functions, itself or in libraries
    that it calls; it is off by `innermost_error_ratio` at most, in 19 of 20 cases. Both are null for too few `samples`,
    as of a UDF that calls others. `total_ratio` has all that it calls.
    """

    language: samples.Language
    name: Name
    file: Name
    line: Known
    is_udf: bool
    samples: Count
    innermost_ratio: float | None
    innermost_error_ratio: float | None
    total_ratio: float


class PlaceSamples(Struct):
    """Samples of the stacks of a stage; of the driver, executors outside of tasks and unknown stages it is null.

    The ratios are shares of the time, null for too few samples to tell. `gc_ratio` is Spark's, of the
    run time of tasks. `functions` has the hottest 20, and `spark_work` what Spark itself did.
    """

    place: Name
    stage: StageKey | None
    samples: Count
    jvm_ratio: float | None
    python_ratio: float | None
    reading_and_writing_ratio: float | None
    lock_ratio: float | None
    waiting_for_python_ratio: float | None
    waiting_ratio: float | None
    gc_ratio: float | None
    functions: list[HotFunction]
    spark_work: list[SparkStep]


class StackSamples(Struct):
    """Samples of stacks, where the application was profiled; `places` has the stages with the most samples first.

    `in_stages_ratio` is the share of the samples of tasks of which the stage is known. `jvm_cpu_ratio` is the time of
    samples of the JVM in tasks over the CPU time that Spark measured: far from 1, its functions compare only with each
    other. Of Java before 25, times of the JVM in stages are scaled to that: `scaled_from_ratio` is the part of it that
    its samples had seen, null where nothing is scaled.
    """

    intervals_ms: list[float]
    samples: Count
    task_samples: Count
    in_stages_ratio: float | None
    jvm_cpu_ratio: float | None
    scaled_from_ratio: float | None
    places: list[PlaceSamples]


class LogRecord(Struct):
    """What the Python program of the driver has logged, at a line of its code; `exception` is the stack trace."""

    time: datetime | None = msgspec.field(name="at")
    severity: str
    logger: Name
    message: str
    file: Name
    line: Count
    exception: TextIfAny | None


class Application(Struct):
    """A Spark application, or the part of it that belongs to a spark-app run.

    `stages` has the failed and the longest 500, `queries` 200, `streaming_queries` 100, `findings` the worst 100, and
    `connect`, which is null without clients of Spark Connect, the failed and the longest 300 operations.
    `comparison` is with the last successful runs of the application. `remarks` say what the log lacks. `log_records`
    are the newest 300 of the program, where it was observed; they, and its Spark jobs, belong to the trace `trace_id`.
    `stack_samples` is null unless it was profiled.
    `labels` say whom it belongs to: `user`, `namespace`, `team` and others of the configuration.
    `unexplained` is the work with at least a fifth of the time that no finding claims.
    """

    id: Name
    name: Name
    log: Location
    report: Location
    run: Run | None
    spark_version: Name | None
    started: datetime | None
    ended: datetime | None
    outcome: Outcome
    summary: Name
    error: ErrorText | None
    figures: Figures
    findings: list[Finding]
    stages: list[Stage]
    queries: list[Query]
    comparison: Comparison | None
    remarks: list[str]
    trace_id: str
    log_records: list[LogRecord]
    streaming_queries: list[Stream] = []
    connect: Connect | None = None
    replays: Replays | None = None
    stack_samples: StackSamples | None = None
    labels: dict[str, Name] = {}
    unexplained: list[Unexplained] = []


class JudgedForecast(Struct):
    """What `tune --from-history` had forecast for runs with a setting, and what this run measured.

    `figure` says what it is about: a time in milliseconds, or bytes.
    """

    setting: Name
    value: Name
    figure: Name
    low: float
    high: float
    measured: float
    came_true: bool


class Results(Struct, kw_only=True):
    """What a command found.

    `exit_code` is that of the command; `error` says why it is not 0, also if a condition of `--fail-on` holds.
    `program` is of `observe`; `comparison` is of `compare`, the others have one for each application;
    `judged_forecasts` are of `compare`, too.
    """

    schema: Literal["spark-app.results"] = NAME
    version: Literal[1] = VERSION
    command: Command
    exit_code: Annotated[int, Meta(ge=0, le=255)] = 0
    error: Error | None = None
    failed_on: list[Failed] = []
    program: Program | None = None
    applications: list[Application] = []
    comparison: Comparison | None = None
    judged_forecasts: list[JudgedForecast] = []


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the document; every key is required, and further keys are allowed."""
    content = msgspec.json.schema(Results)
    for struct in content["$defs"].values():
        struct["description"] = " ".join(struct["description"].split())
        struct["required"] = list(struct["properties"])
        for key in struct["properties"].values():
            key.pop("default", None)
            for each in (key, *key.get("anyOf", ())):
                if each.pop("multipleOf", None) == 1:
                    each["type"] = "integer"
    return {"$schema": DIALECT} | content | {"title": f"{NAME}, version {VERSION}"}


def main() -> None:
    """Writes the schema to standard output."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(json_schema()), indent=2).decode() + "\n")


if __name__ == "__main__":
    main()
