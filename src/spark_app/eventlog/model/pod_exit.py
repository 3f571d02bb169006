"""Reads what Spark on Kubernetes says of an executor that is gone: how its container ended, and its pod.

Source: Spark's `ExecutorPodsLifecycleManager.findExitReason`, 3.5 to 4.3. What Kubernetes knows beside that (who
deleted a pod, and why) is in no event log.
"""

import re
from dataclasses import dataclass
from typing import Final

OUT_OF_MEMORY: Final = "OOMKilled"
"""Why a container ended that the kernel killed at its memory limit."""
EVICTED: Final = "Evicted"
"""The reason of a pod that the kubelet has evicted: it exceeded a limit of its own, or its node lacked something."""
PREEMPTING: Final = "Preempting"
"""The reason of a pod that the kubelet has ended in favour of a critical one."""
_EXITED: Final = re.compile(r"The executor with id \S+ exited with exit code (-?\d+)")
_DELETED: Final = re.compile(r"The executor with id \S+ was deleted by a user or the framework")
_MISSING: Final = re.compile(r"The executor with ID \S+ \(registered at .+ was not found in the cluster")
_REASON: Final = re.compile(r"^The API gave the following brief reason: (.+)$", re.MULTILINE)
_MESSAGE: Final = re.compile(r"^The API gave the following message: (.+)", re.MULTILINE | re.DOTALL)
_STATUSES: Final = "The API gave the following container statuses:"
_TERMINATION: Final = re.compile(r"termination reason: (\w+)")
_NO_CODE: Final = -1
_NOT_GIVEN: Final = "N/A"


@dataclass(frozen=True, slots=True)
class PodExit:
    """How the pod of an executor ended.

    Attributes:
        code: The exit code of its container; None where no container has ended.
        container: Why the container ended, in a word of Kubernetes (`OOMKilled`, `Error`); None where it does not say.
        reason, message: Why the pod ended; None where Kubernetes gives none, as of most pods.
        is_deleted: Whether the pod was deleted, or is not found any more.
    """

    code: int | None = None
    container: str | None = None
    reason: str | None = None
    message: str | None = None
    is_deleted: bool = False

    @property
    def summary(self) -> str:
        """The same in a sentence without numbers of executors, so that equal causes have equal texts."""
        if self.is_deleted:
            return "the pod was deleted"
        exited = [] if self.code is None else [f"exit code {self.code}"]
        exited += [] if self.container in (None, "Error") else [str(self.container)]
        pod = ": ".join(filter(None, (self.reason, self.message)))
        return " ".join(filter(None, (pod, f"({', '.join(exited)})" if pod and exited else ", ".join(exited))))


def pod_exit(text: str) -> PodExit | None:
    """What the reason of a removal says of a pod; None where it is not one that Spark gives on Kubernetes."""
    if _DELETED.search(text) or _MISSING.search(text):
        return PodExit(is_deleted=True)
    exited = _EXITED.search(text)
    if exited is None:
        return None
    pod, _, containers = text.partition(_STATUSES)
    reasons = _TERMINATION.findall(containers)
    container = OUT_OF_MEMORY if OUT_OF_MEMORY in reasons else next(iter(reasons), None)
    code = int(exited[1])
    return PodExit(None if code == _NO_CODE else code, container, _given(_REASON, pod), _given(_MESSAGE, pod))


def _given(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    given = found[1].strip() if found else ""
    return None if given in ("", _NOT_GIVEN) else given
