"""Programs of others: their command lines, the options that are not for them, and the results that they tell."""

import base64
import zlib
from hashlib import sha256
from random import Random

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from hosts.engine.results import Told
from hosts.workloads.program import ProgramTraffic
from hosts.workloads.programs import Place
from hosts.workloads.programs.caddy import PROGRAM as CADDY
from hosts.workloads.programs.chromium import PROGRAM as CHROMIUM
from hosts.workloads.programs.curl import PROGRAM as CURL
from hosts.workloads.programs.iperf3 import PROGRAM as IPERF3
from hosts.workloads.programs.irtt import PROGRAM as IRTT


@pytest.mark.parametrize("arguments", ["-P 2 -C reno", "-Creno", "-w 64K -Z --set-mss 1000", "-b1M --timestamps"])
def test_other_arguments_are_taken(arguments: str) -> None:
    ProgramTraffic(tool="iperf3", arguments=arguments)


def test_iperf3_gets_whole_seconds_and_never_none() -> None:
    """Of `--time 0.5` it would make 0, which is for ever."""
    for duration_s, told in ((0.5, "1"), (2.0, "2"), (2.5, "3"), (1e6, "1000000")):
        place = Place(address="10.0.0.1", port=1, host="h1", namespace="", duration_s=duration_s, bytes=None, seed=1)
        words = IPERF3.client(place).words
        assert words[words.index("--time") + 1] == told


def test_results_of_iperf3_are_those_of_the_receiver() -> None:
    """The fields as iperf3 3.12 writes them with --json."""
    output = """{"end": {"streams": [{"sender": {"mean_rtt": 52000}}],
        "sum_sent": {"bytes": 1100, "seconds": 10.0, "retransmits": 7},
        "sum_received": {"bytes": 1000, "seconds": 10.5}}}"""
    assert IPERF3.parse(output) == Told(bytes=1000, duration_s=10.5, retransmissions=7, delay_ms=52.0)


def test_results_of_curl_and_irtt_are_read() -> None:
    """The words of curl's -w, and the fields of irtt 0.9.0; its times are ns."""
    assert CURL.parse('{"bytes": 500, "s": 2.5, "connect_s": 0.05}') == Told(bytes=500, duration_s=2.5, delay_ms=50.0)
    output = """{"stats": {"bytes_received": 1600, "duration": 2000000000, "rtt": {"mean": 51000000},
        "packets_sent": 12, "packets_received": 10}}"""
    assert IRTT.parse(output) == Told(bytes=1600, duration_s=2.0, delay_ms=51.0, lost=2)


def test_caddy_serves_what_its_client_expects() -> None:
    place = Place(address="10.0.1.1", port=6001, host="h1", namespace="", duration_s=10, bytes=1000, seed=7)
    *_, option, client, _, _, count, seed = CADDY.client(place).words
    assert option == "-c"
    compile(client, "client", "exec")
    assert dict(CADDY.server(place).files)["file"] == Random(seed).randbytes(int(count))
    assert CADDY.parse('{"bytes": 500, "s": 2.5, "connect_s": 0.05}') == Told(bytes=500, duration_s=2.5, delay_ms=50.0)


def test_chromium_is_told_what_its_server_has() -> None:
    place = Place(address="10.0.1.1", port=6001, host="h1", namespace="", duration_s=10, bytes=1000, seed=7)
    files = dict(CHROMIUM.server(place).files)
    assert (len(files["script.js"]), files["script.js"].count(b'"')) == (1000, 2)
    words = CHROMIUM.client(place).words
    # the page sums what stands between the quotation marks, as RFC 1950 does
    _, received, _ = files["script.js"].split(b'"')
    assert words[-1] == f"https://10.0.1.1:6001/#{zlib.adler32(received)}"
    key = x509.load_pem_x509_certificate(files["certificate.pem"]).public_key()
    assert load_pem_private_key(files["key.pem"], None).public_key() == key
    octets = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    fingerprint = base64.b64encode(sha256(octets).digest()).decode()
    assert f"--ignore-certificate-errors-spki-list={fingerprint}" in words


def page(intact: str, protocols: str) -> str:
    told = f'{{"bytes":500,"intact":{intact},"protocols":{protocols},"ms":2500.5,"connect_ms":50.5}}'
    return f"<html><body>\n<pre>{told}</pre>\n<script></script></body></html>"


def test_a_page_of_chromiums_is_believed_only_intact_and_over_http_3() -> None:
    found = CHROMIUM.parse(page("true", '["h3","h3"]'))
    assert found == Told(bytes=500, duration_s=2.5005, delay_ms=50.5)
    for output in (page("false", '["h3","h3"]'), page("true", '["h3","http/1.1"]'), "<html><pre></pre></html>", ""):
        with pytest.raises(ValueError, match="Chromium"):
            CHROMIUM.parse(output)
