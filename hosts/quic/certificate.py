"""Certificates of servers, made from a seed.

That of workload `quic` has an Ed25519 key (RFC 8032): the seed determines it, and its signatures have one length. An
ECDSA signature in DER has no fixed length, and with it would vary the sizes of datagrams and every time after. Browsers
know no Ed25519: a page's server has an ECDSA key. No client verifies a certificate, so its validity has no meaning.
"""

import base64
from datetime import UTC, datetime
from hashlib import sha256
from ipaddress import ip_address
from random import Random
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey, derive_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

_KEY_BYTES: Final = 32
#: of the group of P-256 (FIPS 186-5)
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_NAME: Final = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fadelab")])


class WebCertificate(NamedTuple):
    """What a server of pages has, as PEM, and by what a browser can know it."""

    certificate: bytes
    key: bytes
    #: SHA-256 of the public key (SubjectPublicKeyInfo), in base64
    fingerprint: str


def make_certificate(rng: Random) -> tuple[x509.Certificate, Ed25519PrivateKey]:
    """Return a self-signed certificate and its key; equal generators give equal octets."""
    key = Ed25519PrivateKey.from_private_bytes(rng.randbytes(_KEY_BYTES))
    return _builder(key.public_key()).sign(key, None), key


def make_web_certificate(rng: Random, address: str) -> WebCertificate:
    """Return a self-signed certificate of a server at an IP address; equal generators give equal keys."""
    key = derive_private_key(rng.randrange(1, _ORDER), SECP256R1())
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
    signed = _builder(key.public_key()).add_extension(names, critical=False).sign(key, SHA256())
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return WebCertificate(
        signed.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        base64.b64encode(sha256(public).digest()).decode(),
    )


def _builder(key: Ed25519PublicKey | EllipticCurvePublicKey) -> x509.CertificateBuilder:
    return x509.CertificateBuilder(
        issuer_name=_NAME,
        subject_name=_NAME,
        public_key=key,
        serial_number=1,
        not_valid_before=datetime(2000, 1, 1, tzinfo=UTC),
        not_valid_after=datetime(9999, 12, 31, tzinfo=UTC),
    )
