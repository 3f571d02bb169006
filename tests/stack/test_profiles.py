"""Stack samples of a real job reach the collector of the stack as profiles, with the spans that its traces have."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.eventlog import reader
from spark_app.observe import profile_export
from spark_app.settings import load_settings
from spark_app.stack_samples import stack_profile
from tests.observing import log_of, observed
from tests.polling import poll_until
from tests.receivers import receiver
from tests.stack.test_collector import CONFIG, collector

PROGRAM: Final = """
import sys
from pyspark.sql import SparkSession, functions as F


def spin(turns):
    total = 0
    for index in range(turns):
        total += index % 7
    return total


spark = SparkSession.builder.master("local[2]").appName("split").config("spark.ui.enabled", "false").getOrCreate()
spun = spark.range(0, 60_000, 1, 4).select(F.udf(lambda n: spin(500), "long")("id").alias("n"))
print(spun.agg(F.sum("n")).first()[0])
sys.exit(3)
"""
GATE: Final = "--feature-gates=service.profilesSupport"


@dataclass(frozen=True)
class Arrived:
    """What a command has printed, its log, and what the collector has of it."""

    code: int
    stderr: str
    log: Path
    spans: dict[str, str]
    requests: list[dict[str, Any]]


@pytest.fixture(scope="module")
def arrived(tmp_path_factory: pytest.TempPathFactory) -> Arrived:
    """An observed job whose spans and profiles go through the collector."""
    folder = tmp_path_factory.mktemp("collector")
    layer = folder / "profiles.yaml"
    text = CONFIG.with_name("collector-profiles-otlp.yaml").read_text(encoding="utf-8")
    layer.write_text(text.replace("/var/lib/otelcol", str(folder)), encoding="utf-8")
    with (
        receiver() as back_end,
        collector(
            folder,
            f"--config={layer}",
            GATE,
            traces=back_end.grpc_endpoint,
            metrics=back_end.http_endpoint,
        ) as found,
    ):
        sent = {"OTEL_PROFILES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": found.otlp}
        done = observed(folder, PROGRAM, "--profile", **sent)
        profiles = folder / "profiles.jsonl"
        poll_until(
            lambda: (
                profiles.exists()
                and profiles.read_text(encoding="utf-8").endswith("\n")
                and any(span.name == "application split" for span in [*back_end.spans])
            ),
            lambda: done.stderr[-2000:],
        )
        spans = {span.span_id.hex(): span.name for span in back_end.spans}
    lines = profiles.read_text(encoding="utf-8").splitlines()
    return Arrived(done.returncode, done.stderr, log_of(folder), spans, list(map(json.loads, lines)))


def samples(request: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The samples of a request, with what they count."""
    texts = request["dictionary"]["stringTable"]
    for resource in request["resourceProfiles"]:
        for profile in resource["scopeProfiles"][0]["profiles"]:
            for sample in profile["samples"]:
                yield texts[profile["sampleType"]["typeStrindex"]], sample


def test_values_sum_to_the_samples_and_name_spans_that_arrived(arrived: Arrived) -> None:
    """As the report has them: the time of each place is that of the samples with its span."""
    assert (arrived.code, "profiles" in arrived.stderr) == (3, False), arrived.stderr
    stacks, found = stack_profile.of_log(arrived.log), Counter[str]()
    assert stacks is not None
    for request in arrived.requests:
        links = request["dictionary"]["linkTable"]
        for _, sample in samples(request):
            found[arrived.spans[links[sample["linkIndex"]]["spanId"]]] += sum(map(int, sample["values"]))
    assert sum(found.values()) / 1e6 == pytest.approx(stacks.all.shown.ms)
    assert found["application split"] / 1e6 == pytest.approx(stacks.of(["driver", "executor", "unknown"]).shown.ms)
    of_stages = sum(part.shown.ms for place, part in stacks.parts.items() if isinstance(place, tuple))
    assert sum(value for name, value in found.items() if name.startswith("stage ")) / 1e6 == pytest.approx(of_stages)
    assert of_stages > 500


def test_the_function_of_the_program_is_in_a_profile(arrived: Arrived) -> None:
    """With its file and the type of its frame."""
    functions = Counter[tuple[str, str]]()
    for request in arrived.requests:
        dictionary = request["dictionary"]
        texts = dictionary["stringTable"]
        for function in dictionary["functionTable"][1:]:
            functions[texts[function["nameStrindex"]], texts[function.get("filenameStrindex", 0)]] += 1
    assert ("spin", "split.py") in functions


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_collector_without_the_pipeline_is_one_remark(
    arrived: Arrived, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    """It says what the collector has answered."""
    remarks: list[str] = []
    with (
        receiver() as back_end,
        collector(tmp_path, traces=back_end.grpc_endpoint, metrics=back_end.http_endpoint) as found,
    ):
        monkeypatch.setenv("OTEL_PROFILES_EXPORTER", "otlp")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        endpoint = found.grpc if protocol == "grpc" else found.otlp
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        profile_export.send([reader.read(arrived.log)], load_settings(), patience=2.5, note=remarks.append)
    [remark] = remarks
    assert ("UNIMPLEMENTED" if protocol == "grpc" else "404") in remark
