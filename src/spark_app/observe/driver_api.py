"""The stages that run, by the REST API of the driver: Spark flushes its log only when jobs and stages end.

The API is the one of Spark's UI (`spark.ui.enabled`), on the host that the log names and on the first of the ports that
Spark tries. Nothing needs it: where it is off, out of reach or slow, there are no stages.
"""

import time
import urllib.request
from collections.abc import Iterator, Mapping
from datetime import datetime
from http.client import HTTPException
from typing import Any, Final

import msgspec

from spark_app.eventlog.model.application import Application
from spark_app.report.sections.now import RunningStage

FIRST_PORT: Final = 4040
PORTS: Final = 17
"""Ports that Spark tries for its UI, by its defaults of `spark.ui.port` and `spark.port.maxRetries`."""
ANSWER_SECONDS: Final = 0.5
"""How long an answer may take; the page waits for it, and the application does not."""
SEARCH_SECONDS: Final = 1.0
"""How long all ports together may take."""
AGAIN_SECONDS: Final = 10.0
"""How long after a search without a result, or a failure, the driver is not asked."""
MOST_BYTES: Final = 8_000_000


class _Stays(urllib.request.HTTPRedirectHandler):
    """Goes to no other host, as the proxy of a cluster manager would have it."""

    def redirect_request(self, *_: Any) -> None:
        """Refuses."""


_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Stays())


class _Stage(msgspec.Struct, rename="camel"):
    stage_id: int
    attempt_id: int
    num_tasks: int
    num_active_tasks: int
    num_complete_tasks: int
    name: str = ""
    submission_time: str | None = None

    def running(self) -> RunningStage:
        tasks = self.num_complete_tasks, self.num_active_tasks, self.num_tasks
        return RunningStage(self.stage_id, self.attempt_id, self.name, _instant(self.submission_time), *tasks)


_STAGES: Final = msgspec.json.Decoder(list[_Stage])


class DriverApi:
    """The REST API of the driver of an application."""

    def __init__(self) -> None:
        """Asks nothing yet."""
        self._url: str | None = None
        self._not_before = 0.0

    def stages(self, app: Application) -> list[RunningStage]:
        """The stages that run now, by their numbers; empty where the driver does not say."""
        if not app.id or app.ended is not None or time.monotonic() < self._not_before:
            return []
        began = time.monotonic()
        for url in [self._url] if self._url else _urls(app.id, app.properties):
            found = _stages_at(url) if time.monotonic() - began < SEARCH_SECONDS else None
            if found is not None:
                self._url = url
                return sorted(found, key=lambda stage: (stage.id, stage.attempt))
        self._url, self._not_before = None, time.monotonic() + AGAIN_SECONDS
        return []


def _urls(application: str, properties: Mapping[str, str]) -> Iterator[str]:
    """Where the stages of an application may be; nowhere where its log does not say, or its UI is off."""
    host, port = properties.get("spark.driver.host"), properties.get("spark.ui.port", f"{FIRST_PORT}")
    is_on = properties.get("spark.ui.enabled", "true").lower() == "true"
    if not host or not is_on or not port.isdecimal() or not int(port):
        return
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    for each in range(int(port), int(port) + PORTS):
        yield f"http://{name}:{each}/api/v1/applications/{application}/stages?status=active"


def _stages_at(url: str) -> list[RunningStage] | None:
    """The stages at a URL; None where nobody answers, or the driver of another application does."""
    try:
        with _OPENER.open(url, timeout=ANSWER_SECONDS) as answer:
            return [stage.running() for stage in _STAGES.decode(answer.read(MOST_BYTES))]
    except (OSError, HTTPException, ValueError):
        return None


def _instant(text: str | None) -> int | None:
    """A time of the API, `2026-01-01T00:00:00.000GMT`, in milliseconds since the epoch."""
    try:
        return None if text is None else round(datetime.fromisoformat(text.replace("GMT", "+00:00")).timestamp() * 1000)
    except ValueError:
        return None
