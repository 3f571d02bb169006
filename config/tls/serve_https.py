"""Serves a folder over HTTPS, for services of the stack whose own server has no TLS: `serve_https.py PORT [FOLDER]`.

Prometheus and browsers read files only; nothing lists more than the folder has. `/tls` has the certificate.
"""

from __future__ import annotations

import ssl
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

CERTIFICATE = "/tls/key-and-certificate.pem"


class Handler(SimpleHTTPRequestHandler):
    """Answers GET and HEAD; a client that says nothing is dropped."""

    timeout = 10

    def log_message(self, *_: object) -> None:
        """Logs no requests."""


class Server(ThreadingHTTPServer):
    """Each client has a thread, in which its handshake happens, too."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignores clients that break off."""


def server(port: int, folder: str, certificate: str = CERTIFICATE) -> Server:
    """A server of the folder that listens, on any free port if that is 0."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    serving = Server(("", port), partial(Handler, directory=folder))
    serving.socket = context.wrap_socket(serving.socket, server_side=True, do_handshake_on_connect=False)
    return serving


if __name__ == "__main__":
    with server(int(sys.argv[1]), *sys.argv[2:] or ["."]) as serving:
        serving.serve_forever()
