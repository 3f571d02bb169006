"""Executors or hosts that Spark excluded (`spark.excludeOnFailure.enabled`)."""

from spark_app.eventlog.diagnoses.rule import rule
from spark_app.eventlog.diagnoses.stage import MAX_PLACE
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.formatting import quantity
from spark_app.redaction import excerpt


@rule(subject="host")
def excluded_executors(app: Application, _: Thresholds) -> list[Finding]:
    """Executors or hosts that Spark excluded (`spark.excludeOnFailure.enabled`).

    Evidence: which, and from how many stage attempts; the section *Executors* of the report has the times.
    Why: tasks failed there, and the others have fewer cores.
    Change: a full disk, a broken network or missing files on these hosts; if all are excluded in turn, the program.
    Threshold: any is an info, a warning if it is excluded from all stages.
    Cost: not estimated; `failed_tasks` and `too_few_tasks` report it.
    """
    executors = {each.executor for each in app.exclusions if each.executor is not None}
    hosts = {each.host for each in app.exclusions if each.host is not None}
    if not executors and not hosts:
        return []
    stages = {each.stage for each in app.exclusions if each.stage is not None}
    what = [quantity(len(executors), "executor")] if executors else []
    what += [quantity(len(hosts), "host")] if hosts else []
    is_of_all = any(each.stage is None for each in app.exclusions)
    where = [f"from {quantity(len(stages), 'stage attempt')}"] if stages else []
    where += ["from the whole application"] if is_of_all else []
    names = sorted({*(f"executor {executor}" for executor in executors), *(f"host {host}" for host in hosts)})
    return [
        Finding(
            "excluded_executors",
            "warning" if is_of_all else "info",
            f"Spark excluded {' and '.join(what)} {' and '.join(where)}, because tasks failed there: "
            f"{excerpt(', '.join(names), MAX_PLACE)}.",
            "Read the failures of the tasks there. If only these hosts fail, look for a full disk, a broken network or "
            "missing files on them; if all do, the cause is the program. spark.excludeOnFailure.timeout is how "
            "long an exclusion from all stages lasts.",
            {"excluded_executors": len(executors), "excluded_hosts": len(hosts), "stages": len(stages)},
        ),
    ]
