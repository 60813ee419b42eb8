"""`doctor`: what it reports is whole, and its status follows from it."""

import io
import json

import pytest
from rich.console import Console

from testbed.cli import app, doctor
from testbed.cli.doctor import network
from testbed.cli.doctor.look import Check

pytestmark = pytest.mark.slow

PRESENT = Check("kernel", True, "6.1", "", ("demo",))
MISSING = Check("radio", False, "none [here]", "apt-get install radio", ("usrp",))
NEEDED = Check("tun", False, "gone", "modprobe tun", ("demo", "run"))


def test_json_of_this_machine_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    status = app.main(["doctor", "--json"])
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert shown.err == ""
    assert status == (0 if report["ready"] else 2)
    names = [check["name"] for check in report["checks"]]
    assert len(names) == len(set(names)) > 10
    for check in report["checks"]:
        assert check["needed_for"], check
        assert check["detail"], check
        assert bool(check["remedy"]) is not check["ok"], check
        assert check["required"] is ("demo" in check["needed_for"]), check


def test_only_needs_of_main_job_decide() -> None:
    assert doctor.ready([PRESENT, MISSING])
    assert not doctor.ready([PRESENT, MISSING, NEEDED])


def test_rendering_names_the_remedies() -> None:
    out = io.StringIO()
    doctor.render([PRESENT, MISSING, NEEDED], Console(file=out, width=100))
    lines = out.getvalue().splitlines()
    assert "  radio (optional): apt-get install radio" in lines
    assert "  tun: modprobe tun" in lines
    assert any("none [here]" in line for line in lines)
    assert lines[-1] == "demo is missing tun"


def test_doctor_answers_without_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    network.tried.cache_clear()
    monkeypatch.setattr(network, "try_here", lambda: {"namespace": "Operation not permitted"})
    found = {check.name: check for check in doctor.checks()}
    for name in ("network namespaces", "/dev/net/tun", "queueing disciplines", "transparent proxy"):
        assert not found[name].ok
        assert found[name].remedy
