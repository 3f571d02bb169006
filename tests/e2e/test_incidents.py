"""Each incident of `spark-app incident` is seen where it says, and its alert reaches the webhook."""

import pytest

from spark_app.annexes.incidents.catalogue import incidents
from tests.e2e import backends
from tests.e2e.signals import Planted
from tests.e2e.stack import run_in


@pytest.mark.parametrize("name", incidents())
def test_an_incident_is_seen_in_time_and_undone(planted: Planted, name: str) -> None:
    """Its alert, its panel and what names its cause, within the seconds that it declares."""
    document = planted.documents[name]
    assert document["error"] is None
    assert [sign for sign, seconds in document["seconds"].items() if seconds is None] == []


def test_the_command_succeeds_if_all_was_seen(planted: Planted) -> None:
    """As a script asks it; nothing is left in the containers then."""
    assert planted.exit_code == 0
    assert (
        run_in("spark-master", "find", "/tmp/incidents", "/data/incidents", "-mindepth", "1", check=False).stdout == ""
    )


def test_alerts_reach_the_webhook(planted: Planted) -> None:
    """That of each incident, with the section of the runbook that says what to do."""
    assert {incident.alert.name for incident in incidents().values()} <= set(planted.alerts)
    for annotations in planted.alerts.values():
        url, _, section = annotations["runbook_url"].partition("#")
        assert f'id="{section}">' in backends.page(url)
