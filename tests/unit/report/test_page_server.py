"""The server of pages: whom it answers, and what it refuses."""

import base64
import http.client
import socket
import ssl
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark_app.errors import MachineError
from spark_app.report.page_server import Answer, Listening, PageServer
from tests.certificates import Authority


def respond(path: str, query: Mapping[str, str]) -> Answer:
    """A page that says what was asked; one path fails."""
    if path == "/bug":
        raise ValueError("<b>")
    return Answer(f"{path} {dict(query)}".encode())


@contextmanager
def serving(listening: Listening) -> Iterator[PageServer]:
    """A server that answers."""
    with PageServer(listening, respond) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    """A server on a free port."""
    with serving(Listening(0)) as listening:
        yield listening


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


def test_a_container_is_asked_at_the_port_that_publishes_it() -> None:
    """By the names of this machine, and by its own in its network; not by that of another site."""
    with serving(Listening(0, "0.0.0.0")) as server:
        for host in ("localhost:9000", "127.0.0.1:9000", f"{socket.gethostname()}:1"):
            assert answer(server, host=host)[0] == 200
        assert answer(server, host="evil.example:9000")[0] == 403


def test_beyond_this_machine_only_who_has_the_password_is_answered() -> None:
    """By whatever name the machine is asked for; the browser is told to ask for it."""
    with serving(Listening(0, "0.0.0.0", password="s:cret é")) as server:
        url = f"http://localhost:{server.server_port}/"
        for given in ("", "Basic", "Basic !!!", "Bearer x", authorization("wrong"), authorization("s")):
            connection = http.client.HTTPConnection("localhost", server.server_port, timeout=10)
            connection.request("GET", "/", headers={"Authorization": given})
            response = connection.getresponse()
            assert (response.status, response.read()) == (401, b"the password, please\n")
            assert (response.getheader("WWW-Authenticate") or "").startswith("Basic realm=")
        headers = {"Authorization": authorization("s:cret é"), "Host": "host.example"}
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as page:
            assert page.read() == b"/ {}"


def authorization(password: str) -> str:
    """What a browser sends."""
    return f"Basic {base64.b64encode(f'any:{password}'.encode()).decode()}"


def test_pages_are_served_by_https_with_a_certificate(tmp_path: Path) -> None:
    """Whoever trusts the authority reads them."""
    authority = Authority(tmp_path)
    with serving(Listening(0, certificate=authority.certificate())) as server:
        context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
        with urllib.request.urlopen(server.url, context=context, timeout=10) as page:
            assert page.read() == b"/ {}"


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
