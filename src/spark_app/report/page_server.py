"""Serves pages: only GET, and to a browser that asks for this host or has the password; as a rule on loopback."""

import base64
import errno
import secrets
import signal
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from spark_app.errors import MachineError
from spark_app.eventlog.bridge.certificate import CertifiedServer, ServerCertificate

HOST: Final = "127.0.0.1"
NAMES: Final = (HOST, "localhost")
"""What a browser may call this machine. A page of another site whose name resolves to loopback calls it otherwise."""
HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
}
"""The policy adds to that in each page, which names the hash of its script: what either refuses is refused."""
WHO: Final = {"WWW-Authenticate": 'Basic realm="spark-app", charset="UTF-8"'}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: a page, or a sentence about what is wrong."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    kind: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a server listens, and whom it answers.

    Attributes:
        port: 0 is any that is free.
        host: The address; another one than that of loopback is for the network.
        password: What a browser has to know; without one it has to ask for this host by a name of this machine, so
            that a page of another site, whose name leads here, gets nothing.
        certificate: A PEM file with a certificate, and its key if no `key.pem` is beside it: for HTTPS.
    """

    port: int
    host: str = HOST
    password: str | None = None
    certificate: Path | None = None

    def is_named(self, host: str, port: int) -> bool:
        """Whether a `Host` is a name of this machine; the port of a container is published as another one."""
        name, _, given = host.lower().partition(":")
        if self.host in NAMES:
            return name in NAMES and given == str(port)
        return name in (*NAMES, self.host, socket.gethostname().lower())

    def allows(self, authorization: str) -> bool:
        """Whether the `Authorization` of a request has the password; the name of the user is any."""
        try:
            kind, _, value = authorization.partition(" ")
            _, _, given = base64.b64decode(value, validate=True).decode().partition(":")
        except ValueError:
            return False
        return kind.lower() == "basic" and secrets.compare_digest(given.encode(), (self.password or "").encode())


def refusal(status: HTTPStatus, sentence: str) -> Answer:
    """A sentence as text, in which a browser sees no markup."""
    return Answer(sentence.encode("utf-8", "replace") + b"\n", status, "text/plain; charset=utf-8")


Respond = Callable[[str, Mapping[str, str]], Answer]
"""Answers a path and its query."""


class PageServer(CertifiedServer):
    """A server of pages; `url` is its address."""

    def __init__(self, listening: int | Listening, respond: Respond) -> None:
        """Takes the port, of loopback if nothing else is said.

        Raises:
            MachineError: The port is taken, or not allowed, or the certificate is none.
        """
        self.listening = Listening(listening) if isinstance(listening, int) else listening
        host, port = self.listening.host, self.listening.port
        file = self.listening.certificate
        certificate = ServerCertificate(file) if file else None
        try:
            super().__init__((host, port), partial(_Handler, respond))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise MachineError(f"cannot listen on port {port} of {host}: {error.strerror}") from error
            raise MachineError(f"port {port} is in use: choose another with --port, or any with --port 0") from error
        if certificate:
            self.certify(certificate)
        self.url = f"{'https' if certificate else 'http'}://{host}:{self.server_port}/"
        self._answering, self._done = 0, threading.Condition()

    def start(self, *beside: Callable[[], None]) -> None:
        """Serves pages, and runs other things beside, on threads that do not keep the process alive."""
        for run in (self.serve_forever, *beside):
            _start(run)

    def stop(self, patience: float) -> None:
        """Serves no more, once the requests in hand are answered, or some seconds have passed."""
        self.shutdown()
        with self._done:
            self._done.wait_for(lambda: not self._answering, patience)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers a request, and counts it as one in hand."""
        with self._done:
            self._answering += 1
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._done:
                self._answering -= 1
                self._done.notify_all()

    def server_bind(self) -> None:
        """Binds without asking a name server for the name of this machine."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]


def _start(run: Callable[[], None]) -> None:
    """Starts a thread that gets no signals: the main thread, which waits for them, must get them all."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        threading.Thread(target=run, daemon=True).start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = 10
    server_version, sys_version = "spark-app", ""

    def __init__(self, respond: Respond, *arguments: object) -> None:
        self._respond = respond
        super().__init__(*arguments)  # type: ignore[arg-type] # as socketserver passes them

    def parse_request(self) -> bool:
        """Reads the head of a request; refuses other methods and other hosts at once."""
        if not super().parse_request():
            return False
        listening, host = self.server.listening, self.headers.get("Host", "")
        if listening.password is None and not listening.is_named(host, self.server.server_port):
            self._send(refusal(HTTPStatus.FORBIDDEN, f"ask for http://{HOST}, not for another host"))
        elif listening.password is not None and not listening.allows(self.headers.get("Authorization", "")):
            self._send(replace(refusal(HTTPStatus.UNAUTHORIZED, "the password, please"), headers=WHO))
        elif self.command != "GET":
            self._send(refusal(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is answered"))
        else:
            return True
        return False

    def do_GET(self) -> None:
        """Answers with a page."""
        address = urlsplit(self.path)
        try:
            answer = self._respond(unquote(address.path), dict(parse_qsl(address.query)))
        except Exception as error:  # noqa: BLE001 - other pages are still served
            answer = refusal(HTTPStatus.INTERNAL_SERVER_ERROR, f"a bug of spark-app: {type(error).__name__}: {error}")
        self._send(answer)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answers a malformed request, without repeating it."""
        del message, explain
        self._send(refusal(HTTPStatus(code), HTTPStatus(code).phrase))

    def log_message(self, *_: object) -> None:
        """Prints nothing: the terminal belongs to the command."""

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        headers = HEADERS | {"Content-Type": answer.kind, "Content-Length": str(len(answer.body))}
        for name, value in {**headers, **answer.headers, **({"Allow": "GET"} if answer.status == 405 else {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
