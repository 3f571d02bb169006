"""Whom an application belongs to: which property wins, what is cut, and what is never shown."""

import pytest

from spark_app.eventlog.labels import MAX_VALUE, LabelSources, name_and_attributes
from spark_app.eventlog.model.application import Application
from spark_app.settings import load_settings
from tests.unit.eventlog import log

TEAM = "spark.kubernetes.driver.label.team"


def application(**properties: str) -> Application:
    """One that somebody called `me` started."""
    given = {name.replace("__", "."): value for name, value in properties.items()}
    return log.application([log.started(), log.environment(given)])


def test_the_first_property_that_an_application_has_is_taken() -> None:
    """Labels without a value are left out; the user is who started the driver."""
    app = application(spark__team="", spark__other="web")
    properties = {"team": ["spark.team", "spark.other"], "cluster": ["spark.cluster"], "user": []}
    assert LabelSources(properties).of(app) == {"team": "web", "user": "me"}


def test_a_property_may_say_who_the_user_is() -> None:
    """On Kubernetes all drivers are started by the same user; without the label there is none."""
    app = application(spark__owner="ada")
    assert LabelSources({"user": ["spark.owner"]}).of(app) == {"user": "ada"}
    assert LabelSources().of(app) == {}


def test_values_are_short_and_without_secrets() -> None:
    """A value is one line, and what looks like a password in it is masked."""
    app = application(spark__team="x" * 1000, spark__cluster="https://me:sesame@host", spark__tags="a\nb")
    found = LabelSources({"team": ["spark.team"], "cluster": ["spark.cluster"], "tags": ["spark.tags"]}).of(app)
    assert len(found["team"]) == MAX_VALUE
    assert found["tags"] == "a b"
    assert "sesame" not in found["cluster"]


@pytest.mark.parametrize(
    ("name", "value", "label"),
    [
        (TEAM, "web", {"team": "web"}),
        ("spark.kubernetes.driver.label.app.kubernetes.io/part-of", "web", {"team": "web"}),
        ("spark.kubernetes.namespace", "jobs", {"namespace": "jobs"}),
        ("spark.databricks.clusterUsageTags.clusterName", "etl", {"databricks_cluster": "etl"}),
        ("spark.yarn.queue", "root.web", {"queue": "root.web"}),
        ("spark.yarn.tags", "daily,web", {"tags": "daily,web"}),
    ],
)
def test_labels_are_where_users_have_them(name: str, value: str, label: dict[str, str]) -> None:
    """The configuration that this program comes with."""
    app = log.application([log.started(), log.environment({name: value})])
    assert LabelSources.configured(load_settings(), {}).of(app) == {"user": "me"} | label


def test_what_the_reader_says_of_all_logs_holds_where_an_application_says_nothing() -> None:
    """And only for labels that the configuration has."""
    shared = {"k8s.cluster.name": "east", "team": "ops", "service.name": "the bridge"}
    sources = LabelSources({"team": ["spark.team"], "cluster": ["spark.cluster"]}, shared)
    assert sources.of(application(spark__team="web")) == {"team": "web", "cluster": "east"}
    assert LabelSources({"user": []}, {"user": "ada"}).of(application()) == {"user": "ada"}


def test_a_name_has_the_labels_of_metrics_only() -> None:
    """The user and the tags of an application make no series."""
    app = application(spark__team="web = shop", spark__tags="a,b")
    sources = LabelSources(
        {"user": [], "team": ["spark.team"], "tags": ["spark.tags"]}, of_metrics=["team", "cluster", "namespace"]
    )
    assert name_and_attributes(sources.labelled_name(app, unnamed="unknown")) == ("shop", {"team": "web = shop"})


def test_a_name_without_labels_is_the_name() -> None:
    """So it was in the checkpoints of bridges that knew no labels."""
    shipped = LabelSources.configured(load_settings(), {})
    assert shipped.labelled_name(application(), unnamed="unknown") == "shop"
    assert name_and_attributes("shop") == ("shop", {})
    assert shipped.labelled_name(log.application([]), unnamed="unknown") == "unknown"
