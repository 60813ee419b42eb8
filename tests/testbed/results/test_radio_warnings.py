"""What UHD said to the stations of a run."""

from pathlib import Path

import pytest

from testbed.cli import app
from testbed.errors import FadelabError
from testbed.results.store import noting_warnings, radio_warnings, station_log


def test_warnings_of_uhd_are_shown_once_each_with_the_station(tmp_path: Path) -> None:
    station_log(tmp_path, "st").write_text(
        "OO[INFO] [B200] Operating over USB 2.\n"
        "[WARNING] [B200] Operating over USB 2 [slow].\n"
        "usrp_source :error: In the last 800 ms, 3 overflows occurred.\n"
        "[ERROR] [UDP] The recv buffer could not be resized.\nTarget: 50000000 bytes\n"
        "[WARNING] [B200] Operating over USB 2 [slow].\n"
    )
    station_log(tmp_path, "bas").write_bytes(b"[WARNING] [CORES] odd \xff decimation\n")
    warnings = [
        "station bas: CORES: odd \ufffd decimation",
        "station st: B200: Operating over USB 2 [slow].",
        "station st: UDP: The recv buffer could not be resized.",
    ]
    assert radio_warnings(tmp_path) == warnings
    assert radio_warnings(tmp_path / "none") == []


def test_command_that_fails_shows_the_warnings_before_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        with noting_warnings(tmp_path):
            raise FadelabError("station st: no samples for 1 s")

    station_log(tmp_path, "st").write_text("[WARNING] [B200] Operating over USB 2.\n")
    monkeypatch.setattr(app.cli, "main", fail)
    assert app.main([]) == 2
    assert capsys.readouterr().err == (
        "warning: station st: B200: Operating over USB 2.\nfadelab: station st: no samples for 1 s\n"
    )
