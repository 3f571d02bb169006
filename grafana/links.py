"""Links of panels: to another dashboard, to traces, to logs, to alerts."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from spark_app.vocabulary import names, spark_names
from spark_app.vocabulary.prometheus_names import label


@dataclass(frozen=True)
class Link:
    """A title and an address within Grafana; `${...}` is filled in by Grafana; the dashboard, if it leads to one."""

    title: str
    url: str
    uid: str = ""


def board(uid: str, title: str, **variables: str) -> Link:
    """To another dashboard, with the same time range."""
    chosen = "".join(f"&var-{name}={value}" for name, value in variables.items())
    return Link(title, f"/d/{uid}?${{__url_time_range}}{chosen}", uid)


def explore(uid: str, title: str, query: dict[str, Any]) -> Link:
    """To a query in Explore, with the same time range; the type of a data source is its uid here."""
    source = {"type": uid, "uid": uid}
    pane = {
        "datasource": uid,
        "queries": [{"refId": "A", "datasource": source, **query}],
        "range": {"from": "${__from}", "to": "${__to}"},
    }
    panes = quote(json.dumps({"a": pane}, separators=(",", ":")), safe="")
    # Grafana only sees a variable that is not encoded.
    panes = re.sub(r"%24%7B([\w.]+)%7D", r"${\1}", panes)
    return Link(title, f"/explore?schemaVersion=1&orgId=1&panes={panes}")


def traces(title: str, **search: str) -> Link:
    """To a search for traces of jobs."""
    query = {"queryType": "search", "service": names.DEFAULT_SERVICE_NAME, "limit": 50, **search}
    return explore("jaeger", title, query)


def logs(title: str, lucene: str) -> Link:
    """To a search for log lines."""
    metrics = [{"id": "1", "type": "logs", "settings": {"limit": "500"}}]
    query = {"query": lucene, "metrics": metrics, "bucketAggs": [], "timeField": "@timestamp"}
    return explore("elasticsearch", title, query)


def _of_series(attribute: names.Attribute) -> str:
    return f"${{__field.labels.{label(attribute)}}}"


RUNS_OF: Final = board("pipeline-runs", "Runs of this pipeline", pipeline=_of_series(names.PIPELINE))
QUALITY_OF: Final = board("data-quality", "Quality of this pipeline", pipeline=_of_series(names.PIPELINE))
TRACES_OF: Final = traces("Traces of its runs", operation=names.RUN_SPAN.of(_of_series(names.PIPELINE)))
BATCHES_OF: Final = traces(
    "Traces of its micro-batches",
    service=_of_series(names.APPLICATION),
    operation=spark_names.BATCH_SPAN.of(_of_series(names.PIPELINE)),
)
TRACES_OF_SPAN: Final = traces("Traces with this span", operation="${__field.labels.span_name}")
LOGS_OF: Final = logs("Its log lines", f'attributes.{names.PIPELINE.name}:"{_of_series(names.PIPELINE)}"')

TRACES_OF_APPLICATION: Final = explore(
    "jaeger",
    "Its traces",
    {"queryType": "search", "service": _of_series(names.APPLICATION), "limit": 50},
)

# In a table, on the column that holds the name.
TRACES_OF_APPLICATION_CELL: Final = explore(
    "jaeger", "Its traces", {"queryType": "search", "service": "${__value.text}", "limit": 50}
)
PERFORMANCE_OF_CELL: Final = board("spark-performance", "This application", application="${__value.text}")
LOGS_OF_APPLICATION_CELL: Final = logs(
    "Its log lines", f'resource.attributes.{names.APPLICATION.name}:"${{__value.text}}"'
)
RUNS_OF_CELL: Final = board("pipeline-runs", "Runs of this pipeline", pipeline="${__value.text}")
QUALITY_OF_CELL: Final = board("data-quality", "Quality of this pipeline", pipeline="${__value.text}")
TRACE_OF_CELL: Final = explore("jaeger", "This trace", {"query": "${__value.text}"})
LOGS_OF_RUN: Final = logs("Log lines of this run", f'attributes.{names.RUN_ID.name}:"${{__value.text}}"')
REPORT_OF_RUN: Final = Link("Its report", "${reports}/${__value.text}.html")
TRACES_OF_CELL: Final = traces("Traces of its runs", operation=names.RUN_SPAN.of("${__value.text}"))
BATCHES_OF_CELL: Final = traces(
    "Traces of its micro-batches",
    service="${__data.fields.Application}",
    operation=spark_names.BATCH_SPAN.of("${__value.text}"),
)
LOGS_OF_CELL: Final = logs("Its log lines", f'attributes.{names.PIPELINE.name}:"${{__value.text}}"')

OVERVIEW: Final = board("platform-overview", "Platform overview")
RUNS: Final = board("pipeline-runs", "Pipeline runs")
QUALITY: Final = board("data-quality", "Data quality")
STREAMING: Final = board("streaming", "Streaming")
MODELS: Final = board("machine-learning", "Machine learning")
CLUSTER: Final = board("spark-cluster", "Spark cluster")
PERFORMANCE: Final = board("spark-performance", "Spark performance")
PERFORMANCE_OF: Final = board("spark-performance", "This application", application=_of_series(names.APPLICATION))
PATH: Final = board("telemetry-path", "Telemetry path")
REPORTS: Final = Link("Reports", "${reports}/")
ALERTS: Final = Link("Alert rules", "/alerting/list")
ALL_TRACES: Final = traces("Traces of runs")
TROUBLE: Final = logs("Warnings and errors", "severity_text:(WARN OR ERROR OR FATAL)")
DAEMONS: Final = logs(
    "Logs of master and workers", "resource.attributes.service.name:(spark\\-master OR spark\\-worker*)"
)
EXECUTORS: Final = logs("Logs of executors", 'resource.attributes.service.name:"spark-executor"')
