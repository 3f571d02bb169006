"""Applications on Kubernetes: the pod of a driver leads to the folder of its event log, and says what became of it.

The cluster is asked by kubectl, which knows the contexts and the log-ins of its user; the storage of the log is read by
this machine, as if its URL had been given.
"""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, Final

from spark_app.errors import InputError, MachineError
from spark_app.eventlog.parse.locations import LogPath, is_remote, log_path
from spark_app.eventlog.parse.log_files import logs_in
from spark_app.eventlog.parse.log_tailer import application_of, parts
from spark_app.eventlog.parse.storage import without_secrets
from spark_app.formatting import quantity
from spark_app.redaction import excerpt
from spark_app.report.clusters import ClusterApplication

SECONDS: Final = 30
"""How long kubectl may take."""
MAX_NAMES: Final = 3
"""How many applications a message names."""
DRIVER: Final = "spark-kubernetes-driver"
"""The name of a driver's container, unless a template of pods has another one."""
_APPLICATION: Final = re.compile(r"k8s://([a-z0-9][a-z0-9-]*)/([^/]+)/?")
_ID: Final = "spark-app-selector"
"""The label with the id of the application, of the pods of a driver and its executors."""
_NAMES: Final = (_ID, "spark-app-name", "sparkoperator.k8s.io/app-name")
"""Labels of drivers that name an application; the last one is that of Kubeflow's operator."""
_VOLUME: Final = "spark-conf-volume-driver"
_PROPERTIES: Final = "spark.properties"
"""What the ConfigMap of that volume has, which spark-submit makes."""
_ESCAPED: Final = re.compile(r"\\(.)")
_STARTING: Final = ("ContainerCreating", "PodInitializing", "Completed")
"""Reasons that are no trouble."""
_LATER: Final = "object stores show a part of a log when it is full, and the last when the application ends"

Json = dict[str, Any]
Ask = Callable[..., list[Json]]
"""Takes a namespace, a kind of objects and a selector, and gives the objects."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod, as the API server describes it.

    Attributes:
        content: Its manifest and its status.
    """

    content: Json

    @property
    def labels(self) -> dict[str, str]:
        """Its labels."""
        labels: dict[str, str] = self.content["metadata"].get("labels", {})
        return labels

    @property
    def names(self) -> list[str]:
        """What its application is called, if it is the pod of a driver: by its own name first."""
        return [self.content["metadata"]["name"], *(self.labels[name] for name in _NAMES if name in self.labels)]

    @property
    def properties(self) -> str | None:
        """The ConfigMap with the Spark properties of a driver; None where spark-submit has not mounted one."""
        volumes = self.content["spec"].get("volumes", [])
        return next((each["configMap"]["name"] for each in volumes if each["name"] == _VOLUME), None)

    @property
    def exit_code(self) -> int | None:
        """The exit code of the driver; None before its end, and where its container did not end by itself."""
        statuses = self._containers
        ended = next((each for each in statuses if each["name"] == DRIVER), statuses[0] if statuses else {})
        code: int | None = ended.get("state", {}).get("terminated", {}).get("exitCode")
        return code

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.content["status"].get("phase") not in ("Succeeded", "Failed")

    @property
    def trouble(self) -> str | None:
        """Why it does not start, or why it ended, in the words of Kubernetes; None where it does not say so."""
        return next(self._troubles(), None)

    @property
    def _containers(self) -> list[Json]:
        statuses: list[Json] = self.content["status"].get("containerStatuses", [])
        return statuses

    def _troubles(self) -> Iterator[str]:
        status = self.content["status"]
        conditions = {each["type"]: each for each in status.get("conditions", [])}
        states = [state for each in self._containers for state in each.get("state", {}).values()]
        wanted = ("DisruptionTarget", "True"), ("PodScheduled", "False")
        held = [conditions[name] for name, value in wanted if conditions.get(name, {}).get("status") == value]
        for said in (status, *held, *states):
            reason, code = said.get("reason"), said.get("exitCode")
            if reason and reason not in _STARTING:
                yield excerpt(": ".join(filter(None, (reason, said.get("message"), code and f"exit code {code}"))), 300)


def application(location: str, ask: Ask | None = None) -> ClusterApplication:
    """The newest application of a name.

    Args:
        location: k8s://NAMESPACE/APPLICATION: its name, its id, or the pod of its driver.
        ask: Lists objects of a namespace, as kubectl does by default.

    Raises:
        InputError: There is no such application, it writes no log, or one that this machine cannot read.
        MachineError: There is no kubectl, or no driver for the storage of the log.
    """
    match = _APPLICATION.fullmatch(location)
    if match is None:
        raise InputError(f"{location} names no application: write k8s://NAMESPACE/APPLICATION, with its name or its id")
    namespace, name = match.groups()
    ask = partial(ask or partial(_listed, location), namespace)
    drivers = [Pod(each) for each in ask("pods", "--selector=spark-role=driver")]
    named = [each for each in drivers if name in each.names]
    if not named:
        raise InputError(f"no application {name!r} in the namespace {namespace}: {_others(name, drivers)}")
    driver = max(named, key=lambda each: str(each.content["metadata"]["creationTimestamp"]))
    id_ = driver.labels.get(_ID, "")
    executors = [Pod(each) for each in ask("pods", f"--selector=spark-role=executor,{_ID}={id_}")]
    notes = tuple(_notes(driver, executors))
    maps = ask("configmaps", f"--field-selector=metadata.name={driver.properties}") if driver.properties else []
    folder = _folder(location, _properties(maps))
    return ClusterApplication(_log(folder, id_, notes), driver.exit_code, driver.is_running, notes)


def _folder(location: str, properties: dict[str, str]) -> str:
    """The folder of event logs that the properties of a driver name.

    Raises:
        InputError: They name none, or one that only its pod can read.
    """
    if properties.get("spark.eventLog.enabled") != "true":
        raise InputError(f"{location} writes no event log: set spark.eventLog.enabled=true and spark.eventLog.dir")
    folder = properties.get("spark.eventLog.dir", "Spark's default for spark.eventLog.dir")
    if not is_remote(folder):
        raise InputError(
            f"cannot read {location}: {folder} is a folder of its pod; set spark.eventLog.dir to a storage that this "
            "machine can read, or name the log where the volume of that folder is"
        )
    return folder


def _log(folder: str, id_: str, notes: tuple[str, ...]) -> LogPath:
    """The log of an application in a folder.

    Raises:
        InputError: It is not there; says what Kubernetes says of the pods.
        MachineError: There is no driver for its storage.
    """
    log = None
    with suppress(FileNotFoundError):
        log = next((each for each in logs_in(log_path(folder)).values() if application_of(each.key) == id_), None)
    if log is None or not parts(log.path):  # the folder of a rolled log is there before its first part
        raise InputError("; ".join([f"no event log of {id_} in {without_secrets(folder)} yet: {_LATER}", *notes]))
    return log.path


def _properties(config_maps: list[Json]) -> dict[str, str]:
    """The Spark properties in a ConfigMap, as `java.util.Properties` writes them; none where it is gone."""
    text = "\n".join(each.get("data", {}).get(_PROPERTIES, "") for each in config_maps)
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {_ESCAPED.sub(r"\1", name): _ESCAPED.sub(r"\1", value) for name, _, value in pairs}


def _notes(driver: Pod, executors: list[Pod]) -> Iterator[str]:
    if driver.trouble is not None:
        yield f"Kubernetes says of the driver: {driver.trouble}"
    for trouble, number in Counter(each.trouble for each in executors if each.trouble is not None).items():
        yield f"Kubernetes says of {quantity(number, 'executor')}: {trouble}"


def _others(name: str, drivers: list[Pod]) -> str:
    """What there is instead, the nearest names first."""
    known = list(dict.fromkeys(name for driver in drivers for name in driver.names))
    near = get_close_matches(name, known, n=MAX_NAMES, cutoff=0.5) or known[:MAX_NAMES]
    there = f"there is {', '.join(near)}" if near else "no pod has the label spark-role=driver"
    return f"{there}; of a driver whose pod was deleted, name the event log itself"


def _listed(location: str, namespace: str, *words: str) -> list[Json]:
    """The objects that kubectl lists.

    Raises:
        InputError: It has failed, or the cluster does not answer; says why.
        MachineError: It is not installed.
    """
    command = ["kubectl", "get", *words, "--namespace", namespace, "--output=json", f"--request-timeout={SECONDS}s"]
    run = partial(subprocess.run, command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    try:
        done = run(timeout=2 * SECONDS)
    except FileNotFoundError:
        raise MachineError(
            f"cannot read {location}: there is no kubectl on PATH, by which the cluster is asked"
        ) from None
    except subprocess.TimeoutExpired:
        raise InputError(f"cannot read {location}: kubectl did not answer within {2 * SECONDS} s") from None
    if done.returncode != 0:
        raise InputError(f"cannot read {location}: kubectl: {_last_line(done.stderr)}")
    found: list[Json] = json.loads(done.stdout)["items"]
    return found


def _last_line(errors: str) -> str:
    """What kubectl says in the end: before that, its library says the same in other words for each attempt."""
    return excerpt(errors.strip().rpartition("\n")[2], 300) or "it failed"
