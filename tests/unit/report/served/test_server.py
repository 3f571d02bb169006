"""The server of pages: whom it answers, and what it refuses."""

import http.client
import threading
from collections.abc import Iterator, Mapping

import pytest

from spark_app.errors import MachineError
from spark_app.report.served.server import Answer, PageServer


def respond(path: str, query: Mapping[str, str]) -> Answer:
    """A page that says what was asked; one path fails."""
    if path == "/bug":
        raise ValueError("<b>")
    return Answer(f"{path} {dict(query)}".encode())


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    """A server on a free port."""
    with PageServer(0, respond) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield listening
        listening.shutdown()


def answer(server: PageServer, path: str = "/", method: str = "GET", host: str | None = None) -> tuple[int, str]:
    """The status and the text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    response = connection.getresponse()
    return response.status, response.read().decode()


def test_pages_are_served_to_this_machine_only(server: PageServer) -> None:
    """It listens on loopback."""
    assert server.server_address[0] == "127.0.0.1"
    assert answer(server, "/a%20b?x=1") == (200, "/a b {'x': '1'}")


def test_another_host_is_refused(server: PageServer) -> None:
    """A page of another site, whose name was made to lead to loopback, reads nothing."""
    port = server.server_port
    assert answer(server, host=f"localhost:{port}")[0] == 200
    for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", "127.0.0.1:1", ""):
        assert answer(server, host=host)[0] == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "ANYTHING"])
def test_only_get_is_answered(server: PageServer, method: str) -> None:
    """Nothing can be changed from a browser."""
    assert answer(server, method=method)[0] == 405


def test_a_bug_is_told_as_text(server: PageServer) -> None:
    """No markup of a message reaches a page, and the next request is answered."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request("GET", "/bug")
    response = connection.getresponse()
    assert response.status == 500
    assert response.getheader("Content-Type") == "text/plain; charset=utf-8"
    assert response.getheader("X-Content-Type-Options") == "nosniff"
    assert answer(server)[0] == 200


def test_a_port_that_is_taken_is_said(server: PageServer) -> None:
    """The message names the port and the option."""
    with pytest.raises(MachineError, match=f"port {server.server_port} is in use: choose another with --port"):
        PageServer(server.server_port, respond)
