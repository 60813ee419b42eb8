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
from random import Random
from typing import TYPE_CHECKING

from hosts.engine.programs import Command
from hosts.engine.results import Told
from hosts.workloads.programs import Place, Program
from hosts.workloads.programs.caddy import WORDS, configuration

if TYPE_CHECKING:
    from hosts.quic.certificate import WebCertificate

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
    certificate, key, _ = _certificate(place)
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
    trust = (
        f"--origin-to-force-quic-on={where}",
        f"--ignore-certificate-errors-spki-list={_certificate(place).fingerprint}",
    )
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


def _certificate(place: Place) -> "WebCertificate":
    # cryptography is slow to import, and this file is read for the list of programs
    from hosts.quic.certificate import make_web_certificate

    return make_web_certificate(Random(f"{place.seed}/key"), place.address)


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
