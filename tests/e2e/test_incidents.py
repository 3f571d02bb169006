"""Each incident of `spark-app incident` is seen where it says, and its alert reaches the webhook."""

import pytest

from spark_app.annexes.incidents.catalogue import incidents
from spark_app.annexes.incidents.planting import DATA, FOLDER, MASTER
from tests.e2e import backends
from tests.e2e.signals import Planted
from tests.e2e.stack import run_in
from tests.polling import patience


@pytest.mark.parametrize("name", incidents())
def test_an_incident_is_seen_in_time_and_undone(planted: Planted, name: str) -> None:
    """Its alert, its panel and what names its cause, within the seconds that it declares for a quiet machine."""
    document = planted.documents[name]
    assert document["error"] is None
    assert [sign for sign, seconds in document["seconds"].items() if seconds is None] == []
    assert max(document["seconds"].values()) <= patience(document["within"])


def test_nothing_of_an_incident_stays(planted: Planted) -> None:
    """No program, no table and no checkpoint in the container of the master."""
    assert planted.documents
    assert run_in(MASTER, "find", FOLDER, DATA, "-mindepth", "1", check=False).stdout == ""


def test_alerts_reach_the_webhook(planted: Planted) -> None:
    """That of each incident, with the section of the runbook that says what to do."""
    assert {incident.alert.name for incident in incidents().values()} <= set(planted.alerts)
    for annotations in planted.alerts.values():
        url, _, section = annotations["runbook_url"].partition("#")
        assert f'id="{section}">' in backends.page(url)
