"""Looks at GNU Radio, UHD and the libraries of the PHYs."""

import shutil

from testbed.cli.doctor.look import MAIN_JOB, RADIOS, Look, Seen, apt, ask, ask_system_python
from testbed.paths import root
from testbed.tiers import tier_with

_UHD_MODULES = root() / ".build" / "vusrp" / "uhd"
_NATIVE = root() / ".build" / "native" / "python"
_LIQUID = """
import ctypes, glob
folders = '/usr/local/lib', '/usr/lib/*'
names = [name for folder in folders for name in sorted(glob.glob(folder + '/libliquid.so*'))]
assert names, 'no libliquid.so'
version = ctypes.CDLL(names[0]).liquid_libversion
version.restype = ctypes.c_char_p
print(version().decode())
"""


def _uhd() -> Seen:
    programs = Seen(False, "no uhd_find_devices on PATH")
    if shutil.which("uhd_find_devices"):
        # the Python module does not tell its version
        programs = ask(("uhd_config_info", "--version"))
    module = ask_system_python("import uhd; print(uhd.usrp.MultiUSRP.__name__)")
    detail = programs.detail if module.ok else f"{programs.detail}, no Python module: {module.detail}"
    lacking = [package for package, seen in (("uhd-host", programs), ("python3-uhd", module)) if not seen.ok]
    return Seen(not lacking, detail, apt(*lacking))


def _vusrp() -> Seen:
    path = _UHD_MODULES.relative_to(root())
    if not any(_UHD_MODULES.glob("*.so")):
        return Seen(False, f"no module in {path}")
    seen = ask(("uhd_find_devices", "--args", "type=vusrp"), UHD_MODULE_PATH=str(_UHD_MODULES))
    return Seen(True, f"UHD finds them through {path}") if seen.ok else Seen(False, seen.detail or "UHD finds none")


def _native() -> Seen:
    if not any(_NATIVE.glob("gnuradio/fadelab/*.so")):
        return Seen(False, f"no module in {_NATIVE.relative_to(root())}")
    path = f"import sys; sys.path.insert(0, {str(_NATIVE)!r})"
    return ask_system_python(
        f"{path}; from gnuradio import fadelab; print('with liquid-dsp', fadelab.liquid_version())"
    )


LOOKS = (
    Look(
        "GNU Radio",
        lambda: ask_system_python("from gnuradio import gr; print(gr.version())"),
        apt("gnuradio"),
        (MAIN_JOB, *RADIOS),
    ),
    Look("UHD", _uhd, "", (MAIN_JOB, *RADIOS)),
    Look(
        "virtual USRPs",
        _vusrp,
        "remove .build/vusrp and start ./fadelab again, which builds it; .build/setup.log says what went wrong",
        (MAIN_JOB, tier_with("virtual")),
    ),
    Look(
        "native blocks",
        _native,
        "remove .build/native and start ./fadelab again, which builds them; .build/setup.log says what went wrong",
        (MAIN_JOB, *RADIOS),
    ),
    Look("liquid-dsp", lambda: ask_system_python(_LIQUID), apt("libliquid1"), (MAIN_JOB, *RADIOS)),
    Look(
        "gr-ieee802-11",
        lambda: ask_system_python("import ieee802_11; print('importable')"),
        "build the project bastibl/gr-ieee802-11, branch maint-3.10 (and bastibl/gr-foo, which it needs), "
        "against GNU Radio; only the `wifi` PHY uses it",
        ("wifi PHY",),
    ),
)
