import pytest

from spark_app.eventlog.parse.history_server import HistoryApplication, application

SERVER = "http://history:18080"


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        (SERVER, HistoryApplication(SERVER)),
        (f"{SERVER}/", HistoryApplication(SERVER)),
        (f"{SERVER}/history/app-1", HistoryApplication(SERVER, "app-1")),
        (f"{SERVER}/history/app-1/jobs/job/?id=3", HistoryApplication(SERVER, "app-1")),
        (f"{SERVER}/history/app-1/2/jobs/", HistoryApplication(SERVER, "app-1", "2")),
        (f"{SERVER}/api/v1/applications/app-1/2/logs", HistoryApplication(SERVER, "app-1", "2")),
        ("https://me:x@gate/proxy/history/app-1/", HistoryApplication("https://me:x@gate/proxy", "app-1")),
        ("https://host/logs/app-1.zstd", None),
        ("s3://history/app-1", None),
    ],
)
def test_the_url_of_a_page_names_an_application(location: str, expected: HistoryApplication | None) -> None:
    """Any page of it, also behind a proxy; the server alone means the newest one."""
    assert application(location) == expected
