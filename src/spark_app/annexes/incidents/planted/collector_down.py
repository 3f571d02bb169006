"""The collector of telemetry is killed."""

from typing import Final

from spark_app.annexes.incidents.incident import Alert, Incident, Panel

COLLECTOR: Final = "otel-collector"

INCIDENT: Final = Incident(
    does="kills the collector: spans, metrics and log lines wait where they were made",
    ends="the collector is started again",
    touches=(COLLECTOR,),
    alert=Alert("CollectorDown", 'job="otel-collector"'),
    panel=Panel("telemetry-path", "Targets", 'min by (job, instance) (up{job="otel-collector"}) == 0'),
    cause=None,
    plant=lambda planting: planting.docker.kill(COLLECTOR),
    undo=lambda planting: planting.docker.start(COLLECTOR),
    service="",
)
