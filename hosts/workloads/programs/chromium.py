"""A page that Chromium loads over HTTP/3 from caddy, whose QUIC is quic-go.

Chromium is told to speak QUIC to that address from the start, and to believe the key of that server, which the seed
determines. The page has one script, of the workload's octets, and stands with its last one: that is the end of the
time, which begins with the address. The delay is that of the handshake. All times are the browser's own (W3C Navigation
and Resource Timing).
"""

import base64
import json
import re
import zlib
from datetime import UTC, datetime
from hashlib import sha256
from ipaddress import ip_address
from random import Random
from typing import TYPE_CHECKING

from hosts.engine.programs import Command
from hosts.engine.results import Told
from hosts.workloads.programs import Place, Program
from hosts.workloads.programs.caddy import WORDS, configuration

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

#: the order of the group of P-256 (FIPS 186-5)
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
#: the script's octets before and behind those that are drawn
_BEFORE, _BEHIND = b'received="', b'"'
#: the page says what it has got, and whether it has the sum that the address ends with: Adler-32 (RFC 1950)
_PAGE = b"""\
<!doctype html><meta charset="ascii"><title>fadelab</title><link rel="icon" href="data:,">
<pre></pre>
<script src="script.js"></script>
<script>
let low = 1, high = 0;
for (let at = 0; at < received.length; at++) {
  low = (low + received.charCodeAt(at)) % 65521;
  high = (high + low) % 65521;
}
const [page] = performance.getEntriesByType("navigation");
const [script] = performance.getEntriesByName(new URL("script.js", location).href);
document.querySelector("pre").textContent = JSON.stringify({
  bytes: script.decodedBodySize, intact: location.hash === `#${high * 65536 + low}`,
  protocols: [page.nextHopProtocol, script.nextHopProtocol],
  ms: script.responseEnd, connect_ms: page.connectEnd - page.connectStart,
});
</script>
"""
#: nothing of the user's, no window, and no traffic but the page's
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--no-proxy-server", "--user-data-dir=profile", "--enable-quic"),
)


def _server(place: Place) -> Command:
    certificate, key = _certificate(place)
    tls = {"certificates": {"load_files": [{"certificate": "certificate.pem", "key": "key.pem"}]}}
    return Command(
        words=WORDS,
        files=(
            ("caddy.json", configuration(place, tls)),
            ("certificate.pem", certificate),
            ("key.pem", key),
            ("index.html", _PAGE),
            ("script.js", _BEFORE + _text(place) + _BEHIND),
        ),
    )


def _client(place: Place) -> Command:
    where = f"{place.address}:{place.port}"
    trust = (f"--origin-to-force-quic-on={where}", f"--ignore-certificate-errors-spki-list={_fingerprint(place)}")
    url = f"https://{where}/#{zlib.adler32(_text(place))}"
    return Command(words=("chromium", *_FLAGS, *trust, "--dump-dom", url))


def _parse(output: str) -> Told:
    """Raises ValueError, too, where octets are others than the server's, or came by another protocol."""
    told = re.search("<pre>(.*?)</pre>", output)
    if told is None or not told[1]:
        raise ValueError("Chromium shows no page of ours")
    found = json.loads(told[1])
    if not found["intact"] or found["protocols"] != ["h3", "h3"]:
        raise ValueError(f"Chromium has other octets, or not by HTTP/3: {told[1]}")
    return Told(bytes=found["bytes"], duration_s=found["ms"] / 1e3, delay_ms=found["connect_ms"])


def _text(place: Place) -> bytes:
    """What the script's string has: characters that need no quotation."""
    assert place.bytes is not None, "the workload demands it"
    count = max(place.bytes - len(_BEFORE + _BEHIND), 0)
    return base64.b64encode(Random(str(place.seed)).randbytes(count))[:count]


def _key(place: Place) -> "EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key

    return derive_private_key(Random(f"{place.seed}/key").randrange(1, _ORDER), SECP256R1())


def _certificate(place: Place) -> tuple[bytes, bytes]:
    """Return a certificate that the server signs itself, and its key, as PEM. Chromium takes no Ed25519."""
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = _key(place)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "fadelab")])
    builder = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=1,
        not_valid_before=datetime(2000, 1, 1, tzinfo=UTC),
        not_valid_after=datetime(9999, 12, 31, tzinfo=UTC),
    ).add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(place.address))]), critical=False)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM), secret


def _fingerprint(place: Place) -> str:
    """Return the SHA-256 of the server's public key (SubjectPublicKeyInfo), in base64."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    octets = _key(place).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(sha256(octets).digest()).decode()


PROGRAM = Program(
    name="chromium",
    summary="a page with a script of that size, loaded by Chromium from caddy (quic-go) over HTTP/3; needs `bytes`",
    package="chromium caddy",
    sends="server",
    limit="size",
    ready="serving initial configuration",
    server=_server,
    client=_client,
    parse=_parse,
    reserved=("--dump-dom", "--headless", "--user-data-dir", "--origin-to-force-quic-on"),
)
