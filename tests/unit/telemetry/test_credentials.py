"""A secret in the standard variables reaches the endpoint and no message."""

import logging
from typing import Final
from urllib.parse import quote

import pytest
from opentelemetry.sdk.metrics.export import MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from spark_app.telemetry.credentials import Credentials
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.otlp_client import otlp_client
from tests.receivers import Protocol, dead_port

SPAN: Final = ReadableSpan("one", SpanContext(1, 1, is_remote=False), start_time=1, end_time=2)
HEADERS: Final = "OTEL_EXPORTER_OTLP_HEADERS"
ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
TOKEN: Final = "s3cr3t-t0ken"

CASES: Final[dict[str, tuple[Protocol, dict[str, str]]]] = {
    "no = in a header": ("http/protobuf", {HEADERS: f"authorization Bearer {TOKEN}"}),
    "no = in one of gRPC": ("grpc", {HEADERS: f"authorization Bearer {TOKEN}"}),
    "no = in that of a signal": ("http/protobuf", {"OTEL_EXPORTER_OTLP_TRACES_HEADERS": f"x=1,{TOKEN}"}),
    "no ASCII": ("http/protobuf", {HEADERS: f"authorization=Bearer {TOKEN}\u20ac"}),
    "no ASCII in gRPC": ("grpc", {HEADERS: f"authorization=Bearer%20{TOKEN}%E2%82%AC"}),
    "a line feed": ("http/protobuf", {HEADERS: f"authorization=Bearer%20{TOKEN}%0Ax"}),
    "a line feed in gRPC": ("grpc", {HEADERS: f"authorization=Bearer%20{TOKEN}%0Ax"}),
    "a query": ("http/protobuf", {TRACES: f"http://127.0.0.1:PORT/v1/traces?k={TOKEN}&n=1"}),
    "a password": ("grpc", {ENDPOINT: f"http://:{TOKEN}@127.0.0.1:PORT"}),
    "a user": ("grpc", {ENDPOINT: f"http://{TOKEN}@127.0.0.1:PORT"}),
    "a user of a host": ("grpc", {ENDPOINT: f"{TOKEN}@127.0.0.1:PORT"}),
    "a user over HTTP": ("http/protobuf", {ENDPOINT: f"http://{TOKEN}@127.0.0.1:PORT"}),
    "a password that is no URL's": ("http/protobuf", {ENDPOINT: f"http://me:{TOKEN}/x@127.0.0.1:PORT"}),
}


@pytest.mark.parametrize(("protocol", "variables"), CASES.values(), ids=CASES)
def test_no_error_contains_a_secret_of_the_variables(
    monkeypatch: pytest.MonkeyPatch, protocol: Protocol, variables: dict[str, str]
) -> None:
    """Whatever is wrong with the variables, the error is kept without the secret that the message has."""
    port = str(dead_port())
    given = {ENDPOINT: "http://127.0.0.1:PORT", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"} | variables
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    for name, value in given.items():
        monkeypatch.setenv(name, value.replace("PORT", port))
    for name in logging.root.manager.loggerDict:
        if name.startswith("opentelemetry."):  # the SDK says the same only once a minute
            monkeypatch.setattr(logging.getLogger(name), "filters", [])
    errors = TelemetryErrors()
    way = otlp_client(errors=errors)
    way.send_spans([SPAN])
    way.send_metrics(MetricsData([]))
    way.close()
    assert list(errors) != []
    assert TOKEN not in " ".join(errors)


@pytest.mark.parametrize("secret", [f"{TOKEN}/+x==", f"Basic {TOKEN}", f"{TOKEN}'\\q", f"{TOKEN}%", f"\u00e9{TOKEN}"])
@pytest.mark.parametrize("encode", [str, repr, ascii, quote, str.lower, lambda text: repr(text.encode())])
def test_a_secret_is_removed_in_any_encoding(secret: str, encode: object) -> None:
    """In the message, it may be quoted, escaped, encoded or in lower case; in the variable, raw or percent-encoded."""
    assert callable(encode)
    for value in (quote(secret), secret):
        text = Credentials({HEADERS: f"x=1,authorization={value}"}).hidden(f"bad: {encode(secret)} of 1")
        assert TOKEN not in text
        assert text.startswith("bad: ")
        assert text.endswith(" of 1")


def test_other_parts_of_the_variables_stay() -> None:
    """Hosts, ports and paths of endpoints and the names of headers stay, as does a text without a secret."""
    text = "POST http://collector:4318/v1/traces authorization failed in 1 s"
    variables = {HEADERS: "authorization=abcd,x=1", ENDPOINT: "http://collector:4318/v1", "OTHER_HEADERS": "a=traces"}
    assert Credentials(variables).hidden(text) == Credentials({}).hidden(text) == text
