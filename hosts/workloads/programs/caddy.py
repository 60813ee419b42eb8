"""A download from caddy, whose QUIC is quic-go, by aioquic over HTTP/3 (RFC 9114).

The client compares the octets with those that the server was given. The delay is the time of the handshake, a round
trip. Nothing of the run's own QUIC is in it: both ends are processes with sockets of Linux.
"""

import json
import sys
from random import Random
from typing import Any

from hosts.engine.programs import Command
from hosts.engine.results import Told
from hosts.workloads.programs import Place, Program

#: of the server
WORDS = ("caddy", "run", "--config", "caddy.json")
#: words: address, port, number of octets, and the seed of their generator
_CLIENT = """\
import asyncio, json, random, ssl, sys, time
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset

class Download(QuicConnectionProtocol):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http, self.status, self.data = H3Connection(self._quic), b"", bytearray()
        self.over = self._loop.create_future()

    def get(self, authority):
        words = {":method": "GET", ":scheme": "https", ":authority": authority, ":path": "/file"}
        headers = [(name.encode(), word.encode()) for name, word in words.items()]
        self.http.send_headers(self._quic.get_next_available_stream_id(), headers, end_stream=True)
        self.transmit()

    def quic_event_received(self, event):
        if isinstance(event, (ConnectionTerminated, StreamReset)) and not self.over.done():
            self.over.set_exception(ConnectionError(getattr(event, "reason_phrase", "") or "ended by the server"))
        for found in self.http.handle_event(event):
            if isinstance(found, HeadersReceived):
                self.status = dict(found.headers).get(b":status", self.status)
            elif isinstance(found, DataReceived):
                self.data += found.data
            else:
                continue
            if found.stream_ended and not self.over.done():
                self.over.set_result(None)

async def main(address, port, count, seed):
    began = time.monotonic()
    configuration = QuicConfiguration(alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE)
    async with connect(address, int(port), configuration=configuration, create_protocol=Download) as download:
        connected = time.monotonic()
        download.get(f"{address}:{port}")
        await download.over
        ended = time.monotonic()
    if download.status != b"200" or download.data != random.Random(seed).randbytes(int(count)):
        sys.exit(f"HTTP status {download.status.decode()}: {len(download.data)} octets, not the file's")
    print(json.dumps({"bytes": len(download.data), "s": ended - began, "connect_s": connected - began}))

asyncio.run(main(*sys.argv[1:]))
"""


def _server(place: Place) -> Command:
    assert place.bytes is not None, "the workload demands it"
    tls = {
        "certificates": {"automate": [place.address]},
        "automation": {"policies": [{"issuers": [{"module": "internal"}]}]},
    }
    return Command(
        words=WORDS,
        files=(("caddy.json", configuration(place, tls)), ("file", Random(str(place.seed)).randbytes(place.bytes))),
    )


def configuration(place: Place, tls: dict[str, Any]) -> bytes:
    """Return what caddy reads: it serves its folder over HTTP/3 alone, and writes nothing outside of it.

    `tls` has its certificates, as caddy's app "tls" takes them.
    """
    server = {
        "listen": [f":{place.port}"],
        "protocols": ["h3"],
        "routes": [{"handle": [{"handler": "file_server", "root": "."}]}],
        # a client that names an address sends no name
        "tls_connection_policies": [{"default_sni": place.address}],
        "automatic_https": {"disable": True},
    }
    values = {
        "admin": {"disabled": True, "config": {"persist": False}},
        "storage": {"module": "file_system", "root": "data"},
        "apps": {
            "http": {"servers": {"files": server}},
            "pki": {"certificate_authorities": {"local": {"install_trust": False}}},
            "tls": tls,
        },
    }
    return json.dumps(values).encode()


def _client(place: Place) -> Command:
    numbers = (place.port, place.bytes, place.seed)
    # the interpreter that has aioquic
    return Command(words=(sys.executable, "-P", "-c", _CLIENT, place.address, *map(str, numbers)))


def _parse(output: str) -> Told:
    found = json.loads(output)
    return Told(bytes=found["bytes"], duration_s=found["s"], delay_ms=found["connect_s"] * 1e3)


PROGRAM = Program(
    name="caddy",
    summary="a download by aioquic from caddy (quic-go) over HTTP/3, compared octet by octet; needs `bytes`",
    package="caddy",
    sends="server",
    limit="size",
    ready="certificate obtained successfully",
    server=_server,
    client=_client,
    parse=_parse,
)
