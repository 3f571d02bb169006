"""A large plan, before which no task runs."""

from spark_app.eventlog.diagnoses.planning import Planned, planned, usual_ms
from spark_app.eventlog.diagnoses.query import query_name, sentence
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.formatting import duration


@rule(
    limits={
        "plan_operators": Limit(100, "Slow planning: operators of a large plan, at least.", ge=1),
        "plan_columns": Limit(100, "Slow planning: columns of an operator of a large plan, at least.", ge=1),
        "plan_bytes": Limit(64 * 1024, "Slow planning: bytes that describe a large plan in the log, at least.", ge=1),
        "large_plan_ms": Limit(1500.0, "Slow planning: the time that a large plan takes anyway.", ge=0),
        "first_plan_ms": Limit(2500.0, "Slow planning: the same of the first plan of an application.", ge=0),
    },
)
def slow_planning(app: Application, limits: Thresholds) -> list[Finding]:
    """A large plan, before which no task runs.

    Spark logs a query when its plan is made, and not how long that took. So it is an info: the program may have done
    something else in this time, and in a notebook its user may have been thinking.

    Evidence: the operators of the plan, the columns of the widest, its bytes in the log, and the time without a query
        or a job before it, and from its start to its first job. With samples of stacks (`spark-app observe --profile`)
        it also says what of planning the driver did most.
    Why: a loop that adds to a DataFrame has the whole plan made again at each step, and the executors wait meanwhile.
    Change: one `select`, `withColumns`, `withColumnsRenamed` or `drop` with all columns instead of a loop; one read of
        all paths instead of unions; a join with a small table instead of many `when` branches; `checkpoint()` or
        `localCheckpoint()` every some steps of an iteration.
    Threshold: a plan of {plan_operators} operators, {plan_columns} columns (from `spark.sql.codegen.maxFields` on
        Spark generates no code) or {plan_bytes} (project).
    Cost: this time without {large_plan_ms}, and before the first query without {first_plan_ms}, which such a plan takes
        anyway (project, of the quiet twins of `truth/`). It is between none, since the log does not tell what the
        driver did, and all of it. `driver_gap` does not count it again. The rule ignores streaming applications.
    """
    return [_finding(app, each, limits) for each in planned(app, limits)]


def _finding(app: Application, each: Planned, limits: Thresholds) -> Finding:
    name = sentence(query_name(app, each.query.id))
    return Finding(
        "slow_planning",
        "info",
        f"{name}: no task ran for {duration(each.ms)} before its first job, and its plan is large ({each.size})",
        "Make the plan in one step: one select, withColumns, withColumnsRenamed or drop with all columns instead of a "
        "loop, one read of all paths instead of many unions, a join with a small table instead of many when branches. "
        "In an iteration, checkpoint() or localCheckpoint() every some steps keeps the plan short.",
        {
            "planning_ms": each.ms,
            "plan_operators": each.size.operators,
            "plan_columns": each.size.columns,
            "plan_bytes": each.size.bytes,
        },
        cost_ms=each.ms - usual_ms(each, limits),
        query=each.query.id,
    ).within((0.0, float(each.ms)))
