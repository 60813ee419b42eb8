"""The module against other versions of UHD than the one that is installed."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from flowgraphs.air import LIBRARY
from tests.vusrp.conftest import Programs

SOURCES = Path(__file__).resolve().parents[2] / "flowgraphs" / "vusrp"
HEADERS = Path("/usr/include/uhd")

#: what UHD 4.8 added to rx_streamer and tx_streamer (host/include/uhd/stream.hpp)
ACTIONS = {"rx": "post_input_action", "tx": "post_output_action"}


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    """Return a folder of headers to come before the installed ones: UHD 4.8's version and streamers."""
    if not (shutil.which("g++") and (HEADERS / "stream.hpp").exists()):
        pytest.skip("g++ and UHD's headers are not installed")
    (tmp_path / "include" / "uhd").mkdir(parents=True)
    stream = (HEADERS / "stream.hpp").read_text()
    if ACTIONS["rx"] not in stream:
        for direction, action in ACTIONS.items():
            last = stream.index("};", stream.index(f"class UHD_API {direction}_streamer"))
            arguments = "const std::shared_ptr<uhd::rfnoc::action_info>& action, const size_t port"
            method = f"virtual void {action}({arguments}) = 0;\n"
            stream = stream[:last] + method + stream[last:]
        stream = stream.replace(
            "#include <uhd/config.hpp>", "#include <uhd/config.hpp>\n#include <uhd/rfnoc/actions.hpp>"
        )
    (tmp_path / "include" / "uhd" / "stream.hpp").write_text(stream)
    version = '#pragma once\n#define UHD_VERSION_ABI_STRING "4.8.0"\n#define UHD_VERSION 4080000\n'
    declarations = (
        "#include <uhd/config.hpp>\n#include <string>\nnamespace uhd { UHD_API std::string get_abi_string(); }\n"
    )
    (tmp_path / "include" / "uhd" / "version.hpp").write_text(version + declarations)
    return tmp_path / "include"


def compile_(headers: Path, *arguments: str) -> None:
    command = ["g++", "-std=c++17", "-O0", f"-I{headers}", f"-I{SOURCES}", f"-I{SOURCES / 'src'}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"


def test_the_streamers_compile_with_the_pure_virtuals_of_uhd_4_8(headers: Path) -> None:
    """A device makes both streamers, which must not be abstract."""
    compile_(headers, "-fsyntax-only", str(SOURCES / "src" / "device.cpp"))


def test_a_module_built_for_another_uhd_is_not_used(headers: Path, programs: Programs, tmp_path: Path) -> None:
    objects = LIBRARY.parent / "CMakeFiles" / "vusrp.dir"
    others = [str(path) for path in objects.rglob("*.o") if path.name != "module.cpp.o"]
    (tmp_path / "uhd").mkdir()
    module = ["-fPIC", "-shared", "-o", str(tmp_path / "uhd" / "libvusrp.so"), str(SOURCES / "src" / "module.cpp")]
    archives = [str(LIBRARY.parent / "libair.a"), str(LIBRARY.parent / "medium" / "libmedium.a")]
    compile_(headers, *module, *others, *archives, "-luhd", "-lpthread")
    programs.modules = tmp_path / "uhd"
    said = programs.run("uhd_find_devices", "--args", programs.args, code=1)
    assert "built for UHD 4.8.0 and loaded by UHD 4.3.0: build it again" in said
