"""The certificates of components that are asked by HTTPS, and of Kafka beside them: until when they are good.

Trusted are the authorities of this machine, or those in the file that `SSL_CERT_FILE` names.
"""

import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from spark_app.doctor.backends import TIMEOUT_SECONDS
from spark_app.errors import MachineError
from spark_app.formatting import quantity
from spark_app.settings import Backends

DAY_SECONDS: Final = 86400
SOON_DAYS: Final = 30
"""A start of the stack makes a certificate anew that ends sooner (config/tls/make_certificates.sh)."""
_EXPIRED: Final = 10
_MISMATCHES: Final = (62, 64)
_UNTRUSTED: Final = (7, 18, 19, 20, 21, 30)
"""Codes of OpenSSL's verification (X509_V_ERR_*); 7 and 30 are of an authority that has the name of another one."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a server has shown; the problem is empty while it is good."""

    server: str
    ends: float | None = None
    problem: str = ""


def certificates_health(backends: Backends) -> str | None:
    """How long the certificates of those that answer are good, or None where nothing is asked by HTTPS.

    Raises:
        MachineError: A certificate has expired, ends soon, or is not to be trusted; the message names each.
    """
    servers = dict(_servers(backends))
    if not servers:
        return None
    with ThreadPoolExecutor(len(servers)) as pool:
        shown = [each for each in pool.map(shown_by, servers, servers.values()) if each.ends or each.problem]
    problems = [f"{each.server}: {each.problem}" for each in shown if each.problem]
    if problems:
        raise MachineError("; ".join(problems))
    if not shown:
        return None
    first = min(shown, key=lambda each: each.ends or 0)
    days = int(((first.ends or 0) - time.time()) / DAY_SECONDS)
    return f"{quantity(len(shown), 'certificate')}; the first to end, of {first.server}, is good for {days} days"


def shown_by(server: str, address: tuple[str, int]) -> Certificate:
    """The certificate of a server, by its name and its address; without an end if it does not answer."""
    context = ssl.create_default_context()
    try:
        with (
            socket.create_connection(address, timeout=TIMEOUT_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=address[0]) as secure,
        ):
            ends = ssl.cert_time_to_seconds(str((secure.getpeercert() or {})["notAfter"]))
    except ssl.SSLCertVerificationError as error:
        return Certificate(server, problem=verdict(error, address[0]))
    except ssl.SSLError as error:
        return Certificate(server, problem=broken(error, address[1]))
    except OSError:  # the check of the component reports it
        return Certificate(server)
    days = (ends - time.time()) / DAY_SECONDS
    return Certificate(server, ends, f"its certificate ends in {days:.0f} days" if days < SOON_DAYS else "")


def verdict(error: ssl.SSLCertVerificationError, host: str) -> str:
    """What is wrong with a certificate, and what to do where that is not to make another."""
    if error.verify_code == _EXPIRED:
        return "its certificate has expired"
    if error.verify_code in _MISMATCHES:
        return f"its certificate is that of another host, and not of {host}"
    if error.verify_code in _UNTRUSTED:
        return "its certificate is of an authority that is not trusted here: name its file in SSL_CERT_FILE"
    return f"its certificate is refused: {error.verify_message}"


def broken(error: ssl.SSLError, port: int) -> str:
    """Why a server that has answered has shown no certificate, or none that is its own."""
    if isinstance(error, ssl.SSLEOFError):
        return "it ends the connection before it shows a certificate: it is starting, or has no TLS"
    if error.reason == "BAD_SIGNATURE":
        return "its key is not that of its certificate"
    if "ALERT" in (error.reason or ""):
        return f"it refuses the connection: {error.reason}"
    return f"port {port} has no TLS"


def _servers(backends: Backends) -> Iterator[tuple[str, tuple[str, int]]]:
    """Those that are asked by HTTPS, and Kafka if any is."""
    addresses: Mapping[str, str | None] = dict(backends)
    secure = {name: urlsplit(url) for name, url in addresses.items() if url and url.startswith("https://")}
    for name, url in secure.items():
        yield name, (url.hostname or "", url.port or 443)
    if secure and backends.kafka:
        host, _, port = backends.kafka.rpartition(":")
        yield "kafka", (host, int(port))
