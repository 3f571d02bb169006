"""Certificates for tests: an authority, and what it signs."""

import datetime
import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


@dataclass
class Authority:
    """An authority whose own certificate is in `ca.pem` of a folder."""

    folder: Path
    _key: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def __post_init__(self) -> None:
        """Signs its own certificate."""
        self.file = self.folder / "ca.pem"
        signed = self._signed(f"authority {self.folder.name}", self._key.public_key(), days=30, is_authority=True)
        self.file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def certificate(self, *, address: str = "127.0.0.1", days: float = 90) -> Path:
        """A file with a new key and its certificate for an address; negative days have passed since it has ended."""
        key = ec.generate_private_key(ec.SECP256R1())
        signed = self._signed("server", key.public_key(), days=days, address=address)
        file = self.folder / f"{address}-{days}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
        return file

    def _signed(
        self, name: str, key: Any, *, days: float, is_authority: bool = False, address: str = ""
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(_name(f"authority {self.folder.name}"))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 100 * DAY)
            .not_valid_after(now + days * DAY)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if address:
            names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())
