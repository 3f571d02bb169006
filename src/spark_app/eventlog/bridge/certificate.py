"""A server of this program by HTTPS, whose certificate is read again when it was renewed."""

import ssl
from contextlib import suppress
from http.server import ThreadingHTTPServer
from pathlib import Path

from spark_app.errors import MachineError


def _server_context() -> ssl.SSLContext:
    return ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)


class ServerCertificate:
    """What serves by HTTPS with a key and its certificate.

    Attributes:
        context: For new connections.
    """

    def __init__(self, file: Path) -> None:
        """Reads them.

        Raises:
            MachineError: The file cannot be read, or there is no such pair.
        """
        self.context = _server_context()
        self._file, self._changed = file, 0.0
        try:
            self._load()
        except OSError as error:  # what OpenSSL raises is one, too
            why = "it needs a key and its certificate, as PEM" if isinstance(error, ssl.SSLError) else error.strerror
            raise MachineError(f"cannot serve by HTTPS with {file}: {why}") from error

    def refresh(self) -> None:
        """Reads them again if they were renewed; keeps what it has while they do not fit each other."""
        with suppress(OSError):
            if self._file.stat().st_mtime != self._changed:
                self._load()

    def _load(self) -> None:
        changed, key = self._file.stat().st_mtime, self._file.with_name("key.pem")
        for context in (_server_context(), self.context):  # a pair that does not fit would spoil the one that serves
            context.load_cert_chain(self._file, key if key.exists() else None)
        self._changed = changed


class CertifiedServer(ThreadingHTTPServer):
    """A server whose threads do not keep the process alive, by HTTPS if it has a certificate."""

    daemon_threads = True
    certificate: ServerCertificate | None = None

    def certify(self, certificate: ServerCertificate) -> None:
        """Serves by HTTPS from now on.

        The handshake happens in the thread of the request: a silent client holds up no other.
        """
        self.certificate = certificate
        self.socket = certificate.context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def service_actions(self) -> None:
        """Looks for a renewed certificate, between two requests."""
        if self.certificate is not None:
            self.certificate.refresh()

    def handle_error(self, *_: object) -> None:
        """Ignores clients that disconnect before they get their answer."""
