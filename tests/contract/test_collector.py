"""The collector's pipelines, once its layers are merged, are the intended ones."""

from pathlib import Path
from typing import Any, Final

import yaml

CONFIG: Final = Path(__file__).resolve().parents[2] / "config" / "otel"


def layered(*names: str) -> dict[str, Any]:
    """The configuration of several files as the collector merges them: mappings are merged, other values replaced."""
    merged: dict[str, Any] = {}
    for name in names:
        merged = _merged(merged, yaml.safe_load((CONFIG / name).read_text(encoding="utf-8")))
    return merged


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    both = {key: _merged(under[key], over[key]) for key in under.keys() & over.keys() if isinstance(over[key], dict)}
    return under | over | both


FULL: Final = layered("collector.yaml", "collector-kafka.yaml")


def test_signals_flow_through_these_pipelines() -> None:
    """Signals go where the dashboards look for them; Kafka's layer adds one pipeline and changes none."""
    pipelines = {
        name: (pipeline["receivers"], pipeline["processors"], pipeline["exporters"])
        for name, pipeline in FULL["service"]["pipelines"].items()
    }
    limited = ["memory_limiter"]
    assert pipelines == {
        "traces": (["otlp"], limited, ["otlp_grpc/jaeger"]),
        "traces/metrics": (["otlp"], [*limited, "transform/spark_spans"], ["span_metrics"]),
        "metrics": (["otlp"], [*limited, "deltatocumulative"], ["otlp_http/prometheus"]),
        "metrics/spans": (["span_metrics"], limited, ["otlp_http/prometheus"]),
        "metrics/kafka": (["kafka_metrics"], [*limited, "resource/kafka"], ["otlp_http/prometheus"]),
        "logs": (["otlp", "file_log"], [*limited, "resource/logs"], ["elasticsearch"]),
    }
    without_kafka = layered("collector.yaml")["service"]["pipelines"]
    assert without_kafka == {
        name: pipeline for name, pipeline in FULL["service"]["pipelines"].items() if "kafka" not in name
    }


def test_every_component_is_configured_and_used() -> None:
    """No component is left over, and none is missing."""
    used: dict[str, set[str]] = {"receivers": set(), "processors": set(), "exporters": set()}
    for pipeline in FULL["service"]["pipelines"].values():
        for kind, names in used.items():
            names |= set(pipeline[kind])
    connectors = set(FULL["connectors"])
    assert used["receivers"] - connectors == set(FULL["receivers"])
    assert used["processors"] == set(FULL["processors"])
    assert used["exporters"] - connectors == set(FULL["exporters"])
    assert set(FULL["service"]["extensions"]) == set(FULL["extensions"])


def test_memory_is_limited_first() -> None:
    """When memory is full, the collector refuses data instead of being killed."""
    assert {pipeline["processors"][0] for pipeline in FULL["service"]["pipelines"].values()} == {"memory_limiter"}


def test_every_exporter_has_a_bounded_queue_and_retries() -> None:
    """Hours without a back end lose nothing, nor does a restart, and the queue does not fill the disk."""
    for exporter in FULL["exporters"].values():
        assert 0 < exporter["sending_queue"]["queue_size"] <= 10_000
        assert exporter["sending_queue"]["storage"] in FULL["service"]["extensions"]
        assert "retry_on_failure" in exporter or exporter["retry"]["enabled"]
