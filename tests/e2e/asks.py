"""What the back ends answer, as data."""

import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Final

PROMETHEUS: Final = "http://localhost:9090"
JAEGER: Final = "http://localhost:16686"
ELASTICSEARCH: Final = "http://localhost:9200"
MASTER: Final = "http://localhost:8080"


def get(url: str, **parameters: str) -> Any:
    """The JSON at an address; None where there is nothing or nobody."""
    query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
    try:
        with urllib.request.urlopen(url + query, timeout=10) as answer:
            return json.load(answer)
    except (urllib.error.URLError, ConnectionError, TimeoutError, json.JSONDecodeError):
        return None


def prometheus(query: str) -> dict[tuple[tuple[str, str], ...], float]:
    """The value of each series now, by its labels."""
    answer = get(f"{PROMETHEUS}/api/v1/query", query=query)
    series = answer["data"]["result"] if answer else []
    return {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in series}


def number(query: str) -> float | None:
    """The one value of a query; None if there is none.

    Raises:
        AssertionError: There are several.
    """
    values = list(prometheus(query).values())
    assert len(values) <= 1, f"{query} has {len(values)} series"
    return values[0] if values else None


def targets() -> dict[str, str]:
    """The health of each scrape target, by its address."""
    answer = get(f"{PROMETHEUS}/api/v1/targets")
    return {target["scrapeUrl"]: target["health"] for target in answer["data"]["activeTargets"]} if answer else {}


def exemplars(query: str) -> set[str]:
    """The trace ids of the exemplars of some series in the last hour."""
    now = get(f"{PROMETHEUS}/api/v1/query", query="time()")
    if now is None:
        return set()
    end = float(now["data"]["result"][0])
    answer = get(f"{PROMETHEUS}/api/v1/query_exemplars", query=query, start=str(end - 3600), end=str(end))
    return {
        exemplar["labels"]["trace_id"]
        for series in (answer or {"data": []})["data"]
        for exemplar in series["exemplars"]
        if "trace_id" in exemplar["labels"]
    }


def trace(trace_id: str) -> list[dict[str, Any]]:
    """The spans of a trace; none where there is no such trace (yet)."""
    answer = get(f"{JAEGER}/api/traces/{trace_id}")
    return answer["data"][0]["spans"] if answer and answer["data"] else []


def parents(span: dict[str, Any]) -> list[str]:
    """The ids of a span's parents."""
    return [reference["spanID"] for reference in span["references"] if reference["refType"] == "CHILD_OF"]


def tags(span: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a span."""
    return {tag["key"]: tag["value"] for tag in span["tags"]}


def logs(trace_id: str) -> dict[str, int]:
    """Lines of a trace by the service that wrote them."""
    query = {
        "size": 0,
        "query": {"term": {"trace_id": trace_id}},
        "aggs": {"services": {"terms": {"field": "resource.attributes.service.name"}}},
    }
    body = urllib.parse.quote(json.dumps(query))
    answer = get(f"{ELASTICSEARCH}/logs-spark*/_search?source_content_type=application/json&source={body}")
    buckets = answer["aggregations"]["services"]["buckets"] if answer and "aggregations" in answer else []
    return {bucket["key"]: bucket["doc_count"] for bucket in buckets}
