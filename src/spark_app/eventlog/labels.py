"""Whom an application belongs to, by its event log: user, namespace, cluster, team, and what the configuration adds."""

from collections.abc import Mapping, Sequence
from typing import Final

from spark_app.eventlog.model.application import Application
from spark_app.redaction import excerpt, setting

USER: Final = "user"
"""The label that an application has without a Spark property: who started its driver."""
MAX_VALUE: Final = 100
"""Characters of a value; longer ones are cut."""


def labels(app: Application, properties: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The labels of an application; without those that it has no value for.

    Args:
        app: The application.
        properties: The Spark properties that each label may be in; the first that the application has is taken.
    """
    found = {label: _first(app, names) for label, names in properties.items()}
    if USER in found:
        found[USER] = found[USER] or excerpt(app.user or "", MAX_VALUE)
    return {label: value for label, value in found.items() if value}


def _first(app: Application, names: Sequence[str]) -> str:
    values = (excerpt(setting(name, app.properties.get(name, "")), MAX_VALUE) for name in names)
    return next(filter(None, values), "")
