"""Sends profiles by OTLP over gRPC: the SDK has no exporter of them yet, so this derives from the base of its own."""

from enum import Enum
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.grpc.exporter import OTLPExporterMixin, _get_credentials, environ_to_compression
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2_grpc import ProfilesServiceStub

from spark_app.settings import process_environment

_PREFIX: Final = "OTEL_EXPORTER_OTLP_PROFILES"


class _Result(Enum):
    SUCCESS = 0
    FAILURE = 1


class OTLPProfilesExporter(OTLPExporterMixin[Any, Any, Any, Any]):
    """As the exporters of other signals: a variable of the signal goes before the general one."""

    def __init__(self, endpoint: str) -> None:
        """Opens the endpoint."""
        variables = process_environment()
        insecure, timeout = variables.get(f"{_PREFIX}_INSECURE"), variables.get(f"{_PREFIX}_TIMEOUT")
        names = [f"{_PREFIX}_{name}" for name in ("CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE")]
        super().__init__(
            ProfilesServiceStub,
            _Result,
            endpoint,
            insecure=None if insecure is None else insecure.lower() == "true",
            credentials=_get_credentials(None, f"{_PREFIX}_CREDENTIALS", *names) if variables.get(names[0]) else None,
            headers=variables.get(f"{_PREFIX}_HEADERS"),
            timeout=float(timeout) if timeout else None,
            compression=environ_to_compression(f"{_PREFIX}_COMPRESSION"),
        )

    def export(self, request: ExportProfilesServiceRequest) -> bool:
        """Whether the endpoint accepted a request; if not, the SDK logs why."""
        return self._export(request) is _Result.SUCCESS

    def _translate_data(self, data: ExportProfilesServiceRequest) -> ExportProfilesServiceRequest:
        return data

    def _count_data(self, data: ExportProfilesServiceRequest) -> int:
        return sum(len(scope.profiles) for resource in data.resource_profiles for scope in resource.scope_profiles)

    @property
    def _exporting(self) -> str:
        return "profiles"
