"""What UHD said to the stations of a run."""

from pathlib import Path

from testbed.results import show
from testbed.results.store import station_log


def test_warnings_of_uhd_are_shown_once_each_with_the_station(tmp_path: Path) -> None:
    station_log(tmp_path, "st").write_text(
        "OO[INFO] [B200] Operating over USB 2.\n"
        "[WARNING] [B200] Operating over USB 2 [slow].\n"
        "usrp_source :error: In the last 800 ms, 3 overflows occurred.\n"
        "[ERROR] [UDP] The recv buffer could not be resized.\nTarget: 50000000 bytes\n"
        "[WARNING] [B200] Operating over USB 2 [slow].\n"
    )
    station_log(tmp_path, "bas").write_bytes(b"[WARNING] [CORES] odd \xff decimation\n")
    assert show.radio_warnings(tmp_path) == [
        "station bas: CORES: odd \ufffd decimation",
        "station st: B200: Operating over USB 2 \\[slow].",
        "station st: UDP: The recv buffer could not be resized.",
    ]
    assert show.radio_warnings(tmp_path / "none") == []
