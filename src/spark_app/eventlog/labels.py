"""Whom an application belongs to, by its event log: user, namespace, cluster, team, and what the configuration adds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from spark_app.eventlog.model import kubernetes_pods
from spark_app.eventlog.model.application import Application
from spark_app.redaction import excerpt, setting
from spark_app.settings import Settings
from spark_app.vocabulary.spark_names import KUBERNETES_NAMESPACE

USER: Final = "user"
"""The label that an application has without a Spark property: who started its driver."""
NAMESPACE: Final = "namespace"
"""The label that an application on Kubernetes has without a Spark property: Spark's default namespace."""
ATTRIBUTES: Final = {NAMESPACE: KUBERNETES_NAMESPACE.name, "cluster": "k8s.cluster.name"}
"""The attributes of labels that OpenTelemetry has a name for; others are attributes by their own names."""
TAGS: Final = "tags"
"""The label whose value is a list with commas, as YARN has it."""
MAX_VALUE: Final = 100
"""Characters of a value; longer ones are cut."""
_UNIT: Final = "\x1f"
"""Separates a name and labels; ASCII's unit separator, which no Spark property has."""


@dataclass(frozen=True, slots=True)
class LabelSources:
    """Where the labels of applications are.

    Attributes:
        properties: The Spark properties that each label may be in; the first that the application has is taken.
        shared: What applications without such a property have: all of those that a program with
            `OTEL_RESOURCE_ATTRIBUTES=k8s.cluster.name=east` reads are of this cluster.
        of_metrics: The labels that spans and metrics have, too; each of their values is a series of its own.
    """

    properties: Mapping[str, Sequence[str]] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)
    of_metrics: Sequence[str] = ()

    @classmethod
    def configured(cls, settings: Settings, shared: Mapping[str, str]) -> Self:
        """As the configuration names them."""
        return cls(settings.label_properties, shared, settings.metric_labels)

    def of(self, app: Application) -> dict[str, str]:
        """The labels of an application; without those that it has no value for."""
        found = {
            label: _first(app, names) or self._shared(label) or _without_property(app, label)
            for label, names in self.properties.items()
        }
        return {label: value for label, value in found.items() if value}

    def labelled_name(self, app: Application, *, unnamed: str) -> str:
        """The name of an application with the labels of metrics, as `name_and_attributes` takes it apart."""
        if app.name is None:
            return unnamed
        metric_labels = LabelSources(
            {label: self.properties[label] for label in self.of_metrics if label in self.properties}, self.shared
        )
        attributes = {_attribute(label): value for label, value in metric_labels.of(app).items()}
        return _UNIT.join([app.name.replace(_UNIT, " "), *map("=".join, attributes.items())])

    def _shared(self, label: str) -> str:
        return excerpt(setting(label, self.shared.get(_attribute(label), "")), MAX_VALUE)


NO_LABELS: Final = LabelSources()


def name_and_attributes(labelled_name: str) -> tuple[str, dict[str, str]]:
    """The name of an application, and its labels as attributes of telemetry."""
    name, *attributes = labelled_name.split(_UNIT)
    pairs = (attribute.partition("=") for attribute in attributes)
    return name, {attribute: value for attribute, _, value in pairs}


def _without_property(app: Application, label: str) -> str:
    values = {USER: app.user, NAMESPACE: kubernetes_pods.namespace(app.properties)}
    return excerpt(values.get(label) or "", MAX_VALUE)


def _attribute(label: str) -> str:
    return ATTRIBUTES.get(label, label)


def _first(app: Application, names: Sequence[str]) -> str:
    values = (excerpt(setting(name, app.properties.get(name, "")), MAX_VALUE) for name in names)
    return next(filter(None, values), "")
