"""The compose files keep what docs/compose.md promises.

No container is started here. Two services run in namespaces that have what a container gives them: a /dev/net/tun of
its own, a network of its own, and the capabilities of the compose file.
"""

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import pytest
import yaml

from dashboard.grafana_boards.provisioning import DATASOURCES
from hosts.kernel.profiles import PROFILES
from testbed.cli.app import cli
from testbed.scenario.file import load
from testbed.scenario.schema import Scenario
from tests.harness.radios import needs_vusrp
from tests.harness.waiting import PATIENCE_S
from tests.hosts.harness import needs_network

ROOT = Path(__file__).parents[1]
#: what the override wants to be told
USRPS = {"ST_DEVICE": "type=b200,serial=31A1", "BAS_DEVICE": "type=b200,serial=31B2", "RADIO_PATH": "cabled=true"}
#: ${NAME:-default} or ${NAME:?complaint}
VARIABLE = re.compile(r"\$\{(\w+):(?:-([^}]*)|\?[^}]*)\}")

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
OVERRIDE = yaml.safe_load((ROOT / "docker-compose.usrp.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service["image"] == "fadelab"]
ROUTED = ("st", "bas", "h1", "h2")

every_service = pytest.mark.parametrize("name", SERVICES)


def fadelab(service: dict[str, Any]) -> list[str] | None:
    """The arguments with which a service calls `fadelab`; None when it does not."""
    script = service.get("entrypoint", ["docker/service"])[0]
    if script not in ("docker/service", "docker/air"):
        return None
    command = service["command"]
    words = shlex.split(VARIABLE.sub(value, command)) if isinstance(command, str) else command
    return [*(("air", "create") if script == "docker/air" else ()), *words]


def value(variable: re.Match[str]) -> str:
    """What a variable of the file holds where nobody has set it but for the USRPs."""
    name, default = variable.groups()
    return USRPS[name] if default is None else default


def parsed(args: list[str]) -> dict[str, Any]:
    """What click makes of a command line, which is not run. Raises click.UsageError."""
    command: click.Command = cli
    # with the settings of the command line itself: a command keeps the help option that its first context gives it
    above = None
    while isinstance(command, click.Group):
        above = click.Context(command, parent=above, **command.context_settings)
        name, *args = args
        assert name in command.commands, f"there is no command {name}"
        command = command.commands[name]
    return command.make_context("fadelab", args, parent=above).params


def scenario() -> Scenario:
    """The one all services go by."""
    [path] = {parsed(args)["scenario"] for name in ("air", *ROUTED) if (args := fadelab(SERVICES[name]))}
    return load(ROOT / path)


# -- rights --------------------------------------------------------------------------------------------------


@every_service
def test_a_service_has_no_rights_but_those_it_needs(name: str) -> None:
    service = SERVICES[name]
    added = {"NET_ADMIN", "SETUID", "SETGID"} if name in ROUTED else set()
    added |= {"SYS_NICE"} if name in ("st", "bas") else set()
    assert service["cap_drop"] == ["ALL"]
    assert set(service.get("cap_add", ())) == added
    assert service.get("user") == ("root" if name in ROUTED else None)
    assert service.get("devices") == (["/dev/net/tun"] if name in ("st", "bas") else None)
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert service.get("network_mode", "none") == "none"
    assert "privileged" not in service
    assert {"mem_limit", "pids_limit", "logging"} <= service.keys()


@every_service
def test_nothing_is_published_beyond_this_machine(name: str) -> None:
    published = {"dashboard": ["127.0.0.1:8050:8050"], "grafana": ["127.0.0.1:3000:3000"]}
    assert SERVICES[name].get("ports", []) == published.get(name, [])


def test_those_on_the_air_share_its_memory_and_its_process_numbers_and_no_one_else_does() -> None:
    sharing = {name for name, service in SERVICES.items() if "pid" in service}
    assert sharing == {"st", "bas", "dashboard"}
    assert {(SERVICES[name]["pid"], SERVICES[name]["ipc"]) for name in sharing} == {("service:air", "service:air")}
    assert SERVICES["air"]["ipc"] == "shareable"
    assert {name for name, service in SERVICES.items() if "ipc" in service} == {*sharing, "air"}


# -- secrets -------------------------------------------------------------------------------------------------

#: the users of the database: whether a sink's check passes, and whether they may write and read
USERS = {
    "dashboard": [True, True, True],
    "stations": [True, True, False],
    "grafana": [False, False, True],
}
#: the volume of secrets of each service that has one
SECRETS = {
    **dict.fromkeys(ROUTED, "station-secrets"),
    "influxdb": "influxdb-secrets",
    "dashboard": "dashboard-secrets",
    "grafana": "grafana-secrets",
}
#: the group by which Grafana's container may read its own
GRAFANA = 472
#: the user fadelab of the tests' containers
USER = 64077
#: what stands in /var/lib in place of this machine's; then a command, as the user fadelab, or another one
STATE = """
set -e
mount -t tmpfs -o mode=755 none /media
mkdir /media/house
mount --bind "$1" /media/house
mount --bind "$2" /var/lib
ip link set lo up
cd /media/house
shift 2
exec "$@"
"""


@every_service
def test_a_service_sees_no_secrets_but_its_own(name: str) -> None:
    mounts = [mount.split(":") for mount in SERVICES[name].get("volumes", ())]
    secret = [(mount[0], mount[-1] == "ro") for mount in mounts if "secrets" in mount[0]]
    if name == "secrets":
        assert sorted(secret) == [(volume, False) for volume in sorted(set(SECRETS.values()))]
    else:
        assert secret == ([(SECRETS[name], True)] if name in SECRETS else [])
    assert SERVICES[name].get("group_add") == ([str(GRAFANA)] if name in ("secrets", "grafana") else None)


def state(folder: Path) -> Path:
    """A /var/lib in which the image's folders are, the user fadelab's."""
    [made] = re.findall(
        r"install -d -o fadelab -g fadelab ((?:[^\n]+\\\n)*[^\n]+)", (ROOT / "docker/Dockerfile").read_text()
    )
    for path in made.replace("\\", "").split():
        there = folder / Path(path).relative_to("/var/lib")
        there.mkdir(parents=True)
    for path in (folder / "fadelab", *(folder / "fadelab").rglob("*")):
        os.chown(path, USER, USER)
    folder.chmod(0o755)
    return folder


def contained(folder: Path, *command: str, groups: tuple[int, ...] = (USER,), user: int = USER) -> list[str]:
    """The command line that runs a command with `folder` as /var/lib, with no rights, in a network of its own."""
    rights = ("--inh-caps", "-all", "--bounding-set", "-all", "--no-new-privs")
    who = (f"--reuid={user}", f"--regid={groups[0]}", f"--groups={','.join(map(str, groups))}")
    inside = ("setpriv", *who, *rights, *command)
    return ["unshare", "--mount", "--net", "bash", "-c", STATE, "sh", str(ROOT), str(folder), *inside]


def make_secrets(folder: Path) -> None:
    subprocess.run(contained(folder, "docker/secrets", groups=(USER, GRAFANA)), check=True, timeout=PATIENCE_S)


@pytest.fixture
def open_path(tmp_path: Path) -> Iterator[Path]:
    """A folder that other users may pass through."""
    with TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.net
@needs_network[1]
def test_a_secret_is_for_its_service_alone_and_stays(open_path: Path) -> None:
    made = state(open_path) / "fadelab/secrets"
    make_secrets(open_path)
    files = {str(path.relative_to(made)): path for path in made.rglob("*") if path.is_file()}
    assert set(files) == {
        *("dashboard/page-token", "dashboard/influxdb", "stations/influxdb"),
        *("grafana/admin-password", "grafana/influxdb-authorization"),
        *("influxdb/dashboard", "influxdb/stations", "influxdb/grafana"),
    }
    for name, path in files.items():
        grafana = name.startswith("grafana")
        for place, mode in ((path, 0o440 if grafana else 0o600), (path.parent, 0o750 if grafana else 0o700)):
            found = place.stat()
            owner = (USER, GRAFANA if grafana else USER, mode)
            assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == owner, place
    said = {name: path.read_text().strip() for name, path in files.items()}
    drawn = [said[name] for name in ("dashboard/page-token", "grafana/admin-password")]
    drawn += [said[f"influxdb/{user}"] for user in ("dashboard", "stations", "grafana")]
    # 24 octets in base 64
    assert {len(password) for password in drawn} == {32}
    assert len(set(drawn)) == 5
    for user in ("dashboard", "stations"):
        assert said[f"{user}/influxdb"] == f"{user}:{said[f'influxdb/{user}']}"
    kind, _, encoded = said["grafana/influxdb-authorization"].partition(" ")
    assert (kind, b64decode(encoded).decode()) == ("Basic", f"grafana:{said['influxdb/grafana']}")
    files["grafana/admin-password"].unlink()
    make_secrets(open_path)
    again = {name: path.read_text().strip() for name, path in files.items()}
    assert {name for name in files if again[name] != said[name]} == {"grafana/admin-password"}


#: what a user of the database may do: a check of a sink, a point, a query, a change
ASK = """
import json, sys, time
from telemetry.influx import Influx, InfluxError
def may(act, *arguments):
    try:
        act(*arguments)
    except InfluxError:
        return False
    return True
found = {}
for user, token in json.load(sys.stdin).items():
    influx = Influx("http://127.0.0.1:8086", token)
    found[user] = [
        may(influx.check), may(influx.write, b"m v=1 %d" % time.time_ns()),
        may(influx.query, "SELECT v FROM m"), may(influx.query, "CREATE DATABASE other"),
    ]
print(json.dumps(found))
"""
#: the database, until docker/healthy finds it well; then what comes in goes to $1, a program in Python
DATABASE = """
docker/influxdb >/var/lib/said 2>&1 &
server=$!
for _ in $(seq 300); do docker/healthy influxdb 2>/dev/null && break; sleep 0.1; done
docker/healthy influxdb
PYTHONPATH=. .venv/bin/python -P -c "$1"
# as Docker ends it; a job that has ended may be forgotten, the status of a process is not
kill "$server"
wait "$server"
"""


@pytest.mark.net
@pytest.mark.patient
@needs_network[1]
def test_each_user_of_the_database_may_do_what_its_service_does(open_path: Path) -> None:
    made = state(open_path) / "fadelab/secrets"
    make_secrets(open_path)
    # its container has the volume of its own there
    (made / "influxdb").rename(open_path / "mounted")
    shutil.rmtree(made)
    (open_path / "mounted").rename(made)
    passwords = {user: (made / user).read_text().strip() for user in USERS}
    tokens: dict[str, str | None] = {user: f"{user}:{password}" for user, password in passwords.items()}
    tokens |= {"nobody": None, "admin": "admin:admin", "another's": f"grafana:{passwords['stations']}"}
    (open_path / "said").touch()
    os.chown(open_path / "said", USER, USER)

    def ask() -> Any:
        command = contained(open_path, "bash", "-c", DATABASE, "sh", ASK)
        ran = subprocess.run(command, input=json.dumps(tokens), capture_output=True, text=True, timeout=PATIENCE_S)
        said = (open_path / "said").read_text()
        assert ran.returncode == 0, ran.stderr + said
        assert not [user for user, password in passwords.items() if password in said + ran.stderr]
        return json.loads(ran.stdout)

    expected = {user: [*rights, False] for user, rights in USERS.items()}
    expected |= dict.fromkeys(("nobody", "admin", "another's"), [False] * 4)
    assert ask() == expected
    # a later start, with another password for a user that is there
    (made / "stations").write_text("another_password\n")
    tokens |= {"stations": "stations:another_password", "nobody": tokens["stations"]}
    assert ask() == expected


def test_the_database_asks_each_service_for_its_own_password() -> None:
    for name in (*ROUTED, "dashboard"):
        for services in (SERVICES, OVERRIDE["services"]):
            args = fadelab(SERVICES[name] | services.get(name, {}))
            assert args is not None
            assert parsed(args)["token_file"] == Path("/var/lib/fadelab/secrets/influxdb")


def test_grafana_reads_its_password_from_a_file() -> None:
    mounts = dict(mount.split(":")[:2] for mount in SERVICES["grafana"]["volumes"])
    given = "./docker/grafana/influxdb.yaml"
    assert mounts[given] == "/etc/grafana/provisioning/datasources/fadelab.yaml"
    ours = (ROOT / given).read_text()
    assert yaml.safe_load(ours.replace("$__file{/run/secrets/influxdb-authorization}", "$INFLUX_AUTHORIZATION")) == (
        yaml.safe_load(DATASOURCES)
    )
    assert mounts[SECRETS["grafana"]] == "/run/secrets"
    passwords = [value for key, value in SERVICES["grafana"]["environment"].items() if "PASSWORD" in key]
    assert passwords == ["/run/secrets/admin-password"]


# -- what is named is there ----------------------------------------------------------------------------------


@every_service
def test_what_a_service_mounts_and_starts_is_there(name: str) -> None:
    service = SERVICES[name]
    for mount in service.get("volumes", ()):
        source = mount.split(":")[0]
        if source.startswith("."):
            assert mount.endswith(":ro")
            assert (ROOT / source).exists()
        else:
            assert source in COMPOSE["volumes"]
    if name in OURS:
        [script] = service.get("entrypoint", ["docker/service"])
        assert os.access(ROOT / script, os.X_OK)


@every_service
def test_a_service_says_whether_it_is_well_and_others_wait_for_that(name: str) -> None:
    service = SERVICES[name]
    if name == "secrets":
        # comes to an end
        assert service["restart"] == "no"
    else:
        assert service["restart"] == "unless-stopped"
        checked = service["healthcheck"]["test"]
        assert checked[0] == "CMD"
        if name in OURS:
            assert checked[1] == "docker/healthy"
            assert re.search(rf"^{checked[2]}\) ", (ROOT / "docker/healthy").read_text(), re.MULTILINE)
    for needed, how in service.get("depends_on", {}).items():
        expected = "service_completed_successfully" if needed == "secrets" else "service_healthy"
        assert how["condition"] == expected


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("services", [SERVICES, OVERRIDE["services"]], ids=["base", "usrp"])
def test_the_command_line_knows_what_services_say(name: str, services: dict[str, Any]) -> None:
    args = fadelab(SERVICES[name] | services.get(name, {}))
    if args is None:
        assert name in ("influxdb", "secrets")
        return
    try:
        params = parsed(args)
    except click.UsageError as error:
        pytest.fail(f"{name}: {error.format_message()}")
    for mounted in [value for value in params.values() if isinstance(value, Path) and value.is_absolute()]:
        volumes = [mount.split(":")[1] for mount in SERVICES[name]["volumes"]]
        assert any(mounted.is_relative_to(volume) for volume in volumes)


# -- the network ---------------------------------------------------------------------------------------------


def test_a_hosts_sysctls_are_its_scenarios_tcp() -> None:
    expected = {f"net.ipv4.{key}": value for key, value in PROFILES[scenario().tcp_of("h1")].sysctls.items()}
    expected["net.ipv6.conf.all.disable_ipv6"] = "1"
    for name in ("h1", "h2"):
        assert SERVICES[name]["sysctls"] == expected


def test_packets_find_their_way_across_and_back() -> None:
    address = {
        (name, net): ip_address(options["ipv4_address"])
        for name in ROUTED
        for net, options in SERVICES[name]["networks"].items()
        if options
    }
    subnet = {net: ip_network(COMPOSE["networks"][net]["ipam"]["config"][0]["subnet"]) for net in ("net1", "net2")}
    assert all(own in subnet[net] for (_, net), own in address.items())
    routes = {name: SERVICES[name]["environment"]["FADELAB_ROUTES"] for name in ROUTED}
    assert routes["h1"] == f"default via {address['st', 'net1']}"
    assert routes["h2"] == f"default via {address['bas', 'net2']}"
    taps = {name: SERVICES[name]["environment"]["FADELAB_TAP"].removesuffix("/30") for name in ("st", "bas")}
    assert routes["st"] == f"{subnet['net2']} via {taps['bas']}"
    assert routes["bas"] == f"{subnet['net1']} via {taps['st']}"
    for name, peer in (("h1", ("h2", "net2")), ("h2", ("h1", "net1"))):
        args = fadelab(SERVICES[name])
        assert args is not None
        assert parsed(args)["peer"] == str(address[peer])


# -- /dev/net/tun --------------------------------------------------------------------------------------------

#: $1: mode of /dev/net/tun, $2: the checkout, $3: capabilities; then the service's command line. The launcher is left
#: out: it would prepare the checkout anew under its other name.
CONTAINER = """
set -e
mount -t tmpfs -o mode=755 none /dev/net
mknod /dev/net/tun c 10 200
chmod "$1" /dev/net/tun
mount -t tmpfs -o mode=1777 none /dev/shm
mount -t tmpfs -o mode=755 none /media
mkdir /media/house
install -d -o 64077 -g 64077 /media/runs
mount --bind "$2" /media/house
sed '/^fadelab:/d' /etc/passwd > /media/passwd
sed '/^fadelab:/d' /etc/group > /media/group
echo fadelab:x:64077:64077::/media/runs:/bin/false >> /media/passwd
echo fadelab:x:64077: >> /media/group
mount --bind /media/passwd /etc/passwd
mount --bind /media/group /etc/group
cat > /media/fadelab <<'END'
#!/bin/bash
[[ -r /dev/net/tun ]] && echo "user $(id -u) may open it" >&2 || echo "user $(id -u) may not open it" >&2
exec "$PYTHON" -P -m testbed "$@"
END
chmod 755 /media/fadelab
mount --bind /media/fadelab /media/house/fadelab
ip link set lo up
ip link add eth0 type veth peer name far
ip address add 10.77.1.2/24 dev eth0
ip link set eth0 up
ip link set far up
cd /media/house
capabilities=$3
shift 3
exec setpriv --inh-caps -all --bounding-set "-all,$capabilities" --no-new-privs docker/service "$@"
"""


def run_service(name: str, mode: str, *args: str) -> list[str]:
    """What a service says that has ended well: begun as root where /dev/net/tun has `mode`, with `args` besides."""
    service = SERVICES[name]
    words = fadelab(service)
    assert words is not None
    # records stay here, and real-time priority is not for a test
    words = [*words[: words.index("--influx")], "--out", "/media/runs", *args]
    capabilities = ",".join(f"+{added.lower()}" for added in service["cap_add"] if added != "SYS_NICE")
    inside = str(ROOT)
    environment = {
        **os.environ,
        **service["environment"],
        "COLUMNS": "200",
        "FADELAB_ROOT": "/media/house",
        "HOME": "/media/runs",
        "PYTHON": sys.executable.replace(inside, "/media/house", 1),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": "/media/house",
        "UHD_MODULE_PATH": "/media/house/.build/vusrp/uhd",
    }
    command = ["unshare", "--mount", "--net", "bash", "-c", CONTAINER, "sh", mode, inside, capabilities, *words]
    ran = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stderr.splitlines()


@pytest.mark.net
@pytest.mark.patient
@needs_network[1]
@needs_vusrp
@pytest.mark.parametrize(("mode", "may"), [("600", "may not"), ("666", "may")])
def test_a_station_has_its_tap_whoever_may_open_the_device(mode: str, may: str) -> None:
    said = run_service("st", mode, "--seconds", "0.5")
    assert said[:2] == [
        f"user 64077 {may} open it",
        "station st: type=vusrp,air=demo,serial=ST, TAP fl0; Ctrl-C ends it",
    ]
    # it did run
    assert said[-1].startswith("/media/runs/")
    assert said[-1].endswith("-station-st/  station.json, traces")


@pytest.mark.net
@pytest.mark.patient
@needs_network[1]
def test_a_host_has_its_tun_whoever_may_open_the_device() -> None:
    assert run_service("h1", "600", "--set", "tcp=user:sack", "--seconds", "0.5")[:2] == [
        "user 64077 may not open it",
        "host h1: TCP user:sack, peer 10.77.2.2; Ctrl-C ends it",
    ]


# -- the image -----------------------------------------------------------------------------------------------


def test_the_image_leaves_out_only_packages_there_are() -> None:
    [pattern] = re.findall(r"grep -vxE '([^']*)'", (ROOT / "docker/Dockerfile").read_text())
    listed = [line.split()[0] for line in (ROOT / "packages.apt").read_text().splitlines() if line[:1].isalpha()]
    left_out = [name for name in listed if re.fullmatch(pattern, name)]
    assert len(left_out) == len(pattern.split("|"))


@pytest.mark.slow
def test_docker_compose_takes_the_files() -> None:
    if shutil.which("docker-compose") is None:
        pytest.skip("docker-compose is not installed")
    for files in (("docker-compose.yml",), ("docker-compose.yml", "docker-compose.usrp.yml")):
        options = [word for file in files for word in ("--file", file)]
        command = ["docker-compose", *options, "config", "--quiet"]
        ran = subprocess.run(command, cwd=ROOT, env={**os.environ, **USRPS}, capture_output=True, text=True)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
