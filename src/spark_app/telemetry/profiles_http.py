"""Sends profiles by OTLP over HTTP: the SDK has no exporter of them yet, so this uses the client of its exporters."""

from typing import Final

from opentelemetry.exporter.otlp.common.http import _OTLPHTTPClient
from opentelemetry.exporter.otlp.proto.http._common import (
    _build_transport,
    _resolve_compression,
    _resolve_headers,
    _resolve_timeout,
)
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest

_PREFIX: Final = "OTEL_EXPORTER_OTLP_PROFILES"


class OTLPProfilesExporter:
    """As the exporters of other signals: a variable of the signal goes before the general one."""

    def __init__(self, endpoint: str) -> None:
        """Opens the endpoint."""
        key, certificate = f"{_PREFIX}_CLIENT_KEY", f"{_PREFIX}_CLIENT_CERTIFICATE"
        self._client = _OTLPHTTPClient(
            _build_transport(None, None, None, f"{_PREFIX}_CERTIFICATE", key, certificate, session=None),
            endpoint,
            "profiles",  # type: ignore[arg-type] # what log records call it
            _resolve_timeout(f"{_PREFIX}_TIMEOUT"),
            _resolve_compression(f"{_PREFIX}_COMPRESSION"),
            _resolve_headers(None, f"{_PREFIX}_HEADERS"),
        )

    def export(self, request: ExportProfilesServiceRequest) -> bool:
        """Whether the endpoint accepted a request; if not, the SDK logs why."""
        return self._client.export(request.SerializeToString()).success

    def shutdown(self) -> None:
        """Ends a request under way."""
        self._client.shutdown()
