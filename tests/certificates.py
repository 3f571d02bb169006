"""Certificates for tests: an authority, and what it signs."""

import datetime
import ipaddress
from collections.abc import Sequence
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


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    """An authority signs certificates, and a server its answers."""
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


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

    def certificate(self, *, address: str = "127.0.0.1", names: Sequence[str] = (), days: float = 90) -> Path:
        """A file with a new key and its certificate for an address and names of hosts.

        Negative days have passed since it has ended.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        signed = self._signed("server", key.public_key(), days=days, address=address, hosts=names)
        file = self.folder / f"{address}-{days}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
        return file

    def _signed(
        self,
        name: str,
        key: Any,
        *,
        days: float,
        is_authority: bool = False,
        address: str = "",
        hosts: Sequence[str] = (),
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
            # What strict clients, such as Python from 3.13 on, ask for.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .add_extension(_usage(is_authority=is_authority), critical=True)
        )
        if address:
            known = [x509.IPAddress(ipaddress.ip_address(address)), *map(x509.DNSName, hosts)]
            names = x509.SubjectAlternativeName(known)
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())
