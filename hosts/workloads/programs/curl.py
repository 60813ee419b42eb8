"""curl, which loads a file from nginx over HTTP and the kernel's TCP.

The delay is the time to connect, a round trip.
"""

import json

from hosts.engine.programs import Command
from hosts.engine.results import Told
from hosts.workloads.programs import Place, Program

#: one process in the foreground, which writes nothing outside of its folder
_CONFIGURATION = """\
daemon off;
master_process off;
user root;
pid nginx.pid;
error_log stderr notice;
events {{}}
http {{
    access_log off;
    client_body_temp_path body;
    fastcgi_temp_path fastcgi;
    proxy_temp_path proxy;
    scgi_temp_path scgi;
    uwsgi_temp_path uwsgi;
    server {{
        listen {port};
        location / {{ root .; }}
    }}
}}
"""


def _server(place: Place) -> Command:
    assert place.bytes is not None, "the workload demands it"
    return Command(
        words=("nginx", "-p", ".", "-e", "stderr", "-c", "nginx.conf"),
        files=(
            ("nginx.conf", _CONFIGURATION.format(port=place.port).encode()),
            ("file", bytes(place.bytes)),
        ),
    )


def _client(place: Place) -> Command:
    told = '{"bytes": %{size_download}, "s": %{time_total}, "connect_s": %{time_connect}}'
    url = f"http://{place.address}:{place.port}/file"
    # neither the user's ~/.curlrc nor proxies
    alone = ("-q", "--noproxy", "*")
    return Command(words=("curl", *alone, "--silent", "--show-error", "--fail", "-o", "/dev/null", "-w", told, url))


def _parse(output: str) -> Told:
    found = json.loads(output)
    return Told(bytes=found["bytes"], duration_s=found["s"], delay_ms=found["connect_s"] * 1e3)


PROGRAM = Program(
    name="curl",
    summary="a download from nginx over HTTP; needs `bytes`",
    package="curl nginx",
    sends="server",
    limit="size",
    ready="using the .* event method",
    server=_server,
    client=_client,
    parse=_parse,
    reserved=("-o", "--output", "-w", "--write-out", "-I", "--head", "-T", "--upload-file"),
    flags="fgknqsvLS46",
)
