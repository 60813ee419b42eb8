"""The server's certificate, made from a seed.

Its key is an Ed25519 one (RFC 8032): the seed determines it, and its signatures have one length. An ECDSA signature in
DER has no fixed length, and with it would vary the sizes of datagrams and every time after. The client does not verify
the certificate, so its validity has no meaning.
"""

from datetime import UTC, datetime
from random import Random
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

_KEY_BYTES: Final = 32
_NAME: Final = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fadelab")])


def make_certificate(rng: Random) -> tuple[x509.Certificate, Ed25519PrivateKey]:
    """Return a self-signed certificate and its key; equal generators give equal octets."""
    key = Ed25519PrivateKey.from_private_bytes(rng.randbytes(_KEY_BYTES))
    builder = x509.CertificateBuilder(
        issuer_name=_NAME,
        subject_name=_NAME,
        public_key=key.public_key(),
        serial_number=1,
        not_valid_before=datetime(2000, 1, 1, tzinfo=UTC),
        not_valid_after=datetime(9999, 12, 31, tzinfo=UTC),
    )
    return builder.sign(key, None), key
