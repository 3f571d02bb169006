"""The collector's pipelines, once its layers are merged, are the intended ones."""

from pathlib import Path
from typing import Any, Final

import yaml

CONFIG: Final = Path(__file__).resolve().parents[2] / "config" / "otel"


def layered(*names: str) -> dict[str, Any]:
    """What the collector makes of several files: mappings are merged, everything else is replaced."""
    merged: dict[str, Any] = {}
    for name in names:
        merged = _merged(merged, yaml.safe_load((CONFIG / name).read_text(encoding="utf-8")))
    return merged


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    both = {key: _merged(under[key], over[key]) for key in under.keys() & over.keys() if isinstance(over[key], dict)}
    return under | over | both


FULL: Final = layered("collector.yaml", "collector-kafka.yaml")


def test_the_pipelines_are_these() -> None:
    """Signals go where the dashboards look for them; Kafka's layer adds one pipeline and changes none."""
    told = {
        name: (pipeline["receivers"], pipeline["processors"], pipeline["exporters"])
        for name, pipeline in FULL["service"]["pipelines"].items()
    }
    limited = ["memory_limiter"]
    assert told == {
        "traces": (["otlp"], limited, ["otlp_grpc/jaeger", "span_metrics"]),
        "metrics": (["otlp"], [*limited, "deltatocumulative"], ["otlp_http/prometheus"]),
        "metrics/spans": (["span_metrics"], limited, ["otlp_http/prometheus"]),
        "metrics/kafka": (["kafka_metrics"], [*limited, "resource/kafka"], ["otlp_http/prometheus"]),
        "logs": (["otlp", "file_log"], [*limited, "resource/logs"], ["elasticsearch"]),
    }
    alone = layered("collector.yaml")["service"]["pipelines"]
    assert alone == {name: pipeline for name, pipeline in FULL["service"]["pipelines"].items() if "kafka" not in name}


def test_what_is_used_is_configured_and_what_is_configured_is_used() -> None:
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
    """Where it is full, nothing more is taken in."""
    assert {pipeline["processors"][0] for pipeline in FULL["service"]["pipelines"].values()} == {"memory_limiter"}


def test_every_exporter_has_a_bounded_queue_and_tries_again() -> None:
    """A back end that is away for minutes loses nothing, and one that is away for long does not fill the memory."""
    for exporter in FULL["exporters"].values():
        assert 0 < exporter["sending_queue"]["queue_size"] <= 10_000
        assert "retry_on_failure" in exporter or exporter["retry"]["enabled"]
