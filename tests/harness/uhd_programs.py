"""UHD's own programs, and what each does on a device of each family: for tests and `benchmarks.uhd_programs`.

The programs are those of Debian's uhd-host. A device refuses a program for one of two reasons: a real one of its family
would, too (`refused`), or the virtual one lacks a part of it (`left_out`).
"""

import os
import pty
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

EXAMPLES = Path("/usr/libexec/uhd/examples")

#: profiles, and a sample rate that each has
RATES = {"ideal": "1e6", "b200": "1e6", "b210": "1e6", "n210-sbx": "1e6", "x310-ubx": "1e6", "n310": "1.25e6"}

#: appended to the arguments of a virtual device whose air keeps step with the program
LOCKSTEP = ",air_clock=lockstep,wait_streams=1"


@dataclass(frozen=True)
class Program:
    """A command line, in which ARGS, RATE, LOCKSTEP and PORT are replaced; what it says, as a pattern."""

    command: str
    says: str = ""
    #: the reason, by profile, as a pattern of what the program says
    refused: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    #: what is typed
    keys: str = ""

    @property
    def name(self) -> str:
        return self.command.split()[0]

    def reason(self, profile: str) -> str | None:
        """Return what the program says where it fails, None where it passes."""
        return self.refused.get(profile) or self.left_out.get(profile)

    def words(self, args: str, profile: str, *, virtual: bool = True) -> list[str]:
        lockstep = LOCKSTEP if virtual else ""
        return [
            word.replace("ARGS", args).replace("RATE", RATES[profile]).replace("LOCKSTEP", lockstep)
            for word in self.command.split()
        ]


def _but(*passing: str, reason: str) -> dict[str, str]:
    return {profile: reason for profile in RATES if profile not in passing}


_NO_CAL = "does not have the CAL antenna option"
_NO_GPSDO = "not installed the GPSDO correctly"
_NO_RFNOC = "No RFNoC devices found"
_OTHERS = _but("x310-ubx", "n310", reason=_NO_RFNOC)
_RFNOC = dict.fromkeys(("x310-ubx", "n310"), _NO_RFNOC)
_CAL = "--args ARGSLOCKSTEP --freq_start 1e9 --freq_stop 1e9 --verbose"

PROGRAMS = (
    Program("uhd_find_devices --args ARGS", "serial: "),
    Program("uhd_usrp_probe --args ARGS", "TX Frontend: "),
    Program("uhd_config_info --print-all", "UHD "),
    Program("usrp_list_sensors --args ARGS"),
    Program("/usr/libexec/uhd/utils/usrp_burn_mb_eeprom --args ARGS --read-all", "EEPROM"),
    Program(
        "benchmark_rate --args ARGS --rx_rate RATE --tx_rate RATE --duration 1",
        r"dropped samples: +0\s.*sequence errors \(Tx\): +0\s.*late commands: +0\s",
    ),
    Program("python/benchmark_rate.py --args ARGS --rx_rate RATE --tx_rate RATE --duration 1"),
    Program("rx_samples_to_file --args ARGS --rate RATE --freq 1e9 --nsamps 100000 --setup 0.1 --file iq"),
    Program("rx_samples_to_udp --addr 127.0.0.1 --port PORT --args ARGS --rate RATE --freq 1e9 --nsamps 100000"),
    Program("rx_samples_c -a ARGS -o iq -n 100000 -r RATE -f 1e9"),
    Program("tx_samples_c -a ARGS -n 100000 -r RATE -f 1e9"),
    Program("tx_waveforms --args ARGS --rate RATE --freq 1e9 --nsamps 300000"),
    Program("python/tx_waveforms.py -a ARGS -f 1e9 -r RATE -d 0.5 -c 0 -w sine --wave-freq 1e5"),
    Program("tx_bursts --args ARGS --rate RATE --freq 1e9 --nsamps 5000"),
    Program("tx_timed_samples --args ARGS --rate RATE", "success"),
    Program("rx_timed_samples --args ARGS --rate RATE"),
    Program("rx_multi_samples --args ARGS --rate RATE --channels 0"),
    Program("python/rx_to_file.py -a ARGS -o iq.npy -f 1e9 -r RATE -d 0.2 -c 0"),
    Program(
        "txrx_loopback_to_file --tx-args ARGS --rx-args ARGS --tx-rate RATE --rx-rate RATE --tx-freq 1e9 "
        "--rx-freq 1e9 --file iq --nsamps 200000 --settling 0.5"
    ),
    Program("latency_test --args ARGS --nruns 30 --rate RATE", "Other errors: +0"),
    Program("test_messages --args ARGS --ntests 12 --test-chain", r"(\d+ successes, +0 failures.*){5}"),
    Program("test_timed_commands --args ARGS", "actual and expected time delta: 0.000000 us"),
    Program("test_pps_input --args ARGS", "Success!"),
    Program(
        "test_dboard_coercion --args ARGS --tx --rx --freq-step 1e9 --gain-step 10",
        refused={"ideal": "daughterboard is unrecognized"},
    ),
    Program("rx_ascii_art_dft --args ARGS --freq 1e9 --rate RATE --frame-rate 10", "Done!", keys="q\n"),
    Program("uhd_rx_cfile -a ARGS -f 1e9 --samp-rate RATE -N 200000 iq"),
    Program("uhd_siggen -a ARGS -f 1e9 -s RATE --sine -x 1e5", "Press Enter", keys="\n"),
    Program(
        "gpio --args ARGS --dwell 0.2 --rx_rate 0.5e6 --tx_rate 0.5e6",
        "All tests passed",
        refused={"ideal": "Path not found"},
        left_out={"n210-sbx": "Path not found"},  # a real one has the pins of its daughterboard
    ),
    Program(
        "uhd_cal_rx_iq_balance " + _CAL,
        r"best suppression [5-9]\d\.",
        refused=_but("n210-sbx", "x310-ubx", reason=_NO_CAL),
    ),
    Program(
        "uhd_cal_tx_iq_balance " + _CAL,
        # of 31 dB its search makes 35 or 43 dB, by which of its threads begins first
        r"best suppression \d+\.\d+ dB, corrected ([4-9]|\d\d)\.",
        refused=_but("n210-sbx", "x310-ubx", reason=_NO_CAL),
    ),
    Program("uhd_cal_tx_dc_offset " + _CAL, refused=_but("n210-sbx", "x310-ubx", reason=_NO_CAL)),
    Program(
        "sync_to_gps --args ARGS",
        refused=_but("n310", reason=_NO_GPSDO),
        left_out={"n310": _NO_GPSDO},  # a real one has a receiver in it
    ),
    Program("test_clock_synch --clock-args addr=127.0.0.1 --usrp-args ARGS", refused=_but(reason="No devices found")),
    Program(
        "twinrx_freq_hopping --args ARGS",
        refused=_but("x310-ubx", reason="with an X-Series motherboard") | {"x310-ubx": "with a TwinRX daughterboard"},
    ),
    Program("spi --args ARGS", refused=_but(reason="not supported on this device")),
    Program("rfnoc_rx_to_file --args ARGS --file iq --duration 0.2", refused=_OTHERS, left_out=_RFNOC),
    Program("rfnoc_radio_loopback --args ARGS --duration 1", refused=_OTHERS, left_out=_RFNOC),
    Program("uhd_adc_self_cal --args ARGS", refused=_OTHERS, left_out=_RFNOC),
)


def path_of(name: str) -> str | None:
    """Return where a program is, None where it is not installed."""
    return str(EXAMPLES / name) if (EXAMPLES / name).exists() else shutil.which(name)


def completed(
    words: Sequence[str], folder: Path, modules: Path | None, keys: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, which is its home, too, to its end. Raises FileNotFoundError for one there is not.

    PORT is one of the machine's own UDP ports, at which somebody listens.
    """
    path = path_of(words[0])
    if path is None:
        raise FileNotFoundError(words[0])
    (folder / ".local/share").mkdir(parents=True, exist_ok=True)  # where UHD keeps calibrations
    environment = {**os.environ, "HOME": os.fspath(folder), "TERM": "xterm"}
    if modules is not None:
        environment["UHD_MODULE_PATH"] = os.fspath(modules)
    with _typed(keys) as stdin, socket.socket(type=socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
        arguments = [port if word == "PORT" else word for word in words[1:]]
        return subprocess.run(
            [*([sys.executable] if path.endswith(".py") else []), path, *arguments],
            cwd=folder,
            env=environment,
            stdin=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )


def verdict(program: Program, profile: str, done: subprocess.CompletedProcess[str]) -> str | None:
    """Return what is wrong with a program's end on a device of a family, None where it is as the table says."""
    said = done.stdout + done.stderr
    reason = program.reason(profile)
    if (done.returncode == 0) != (reason is None):
        return f"ended with {done.returncode}: {said[-2000:]}"
    if "Traceback" in said or not re.search(reason or program.says, said, re.DOTALL):
        return f"does not say {reason or program.says!r}: {said[-2000:]}"
    return None


@contextmanager
def _typed(keys: str) -> Iterator[int]:
    if not keys:
        yield subprocess.DEVNULL
        return
    keyboard, terminal = pty.openpty()
    try:
        os.write(keyboard, keys.encode())
        yield terminal
    finally:
        os.close(keyboard)
        os.close(terminal)
