"""The virtual USRPs and the native blocks as packages of their own: built, installed and used without fadelab."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / ".build" / "native"

# half a minute of compilation, on a machine that may be busy
pytestmark = [pytest.mark.slow, pytest.mark.patient, pytest.mark.timeout(900)]

#: an outsider's program: makes an air and counts the devices that are on it
AIR_PROGRAM = r"""
#include <fadelab_air.h>
#include <stdio.h>

int main(int argc, char **argv) {
    const fadelab_air_options options = {0, 5, 0};
    fadelab_device devices[8];
    fadelab_air *air = argc == 2 ? fadelab_air_create(argv[1], &options, FADELAB_WHILE_USED) : NULL;
    if (air == NULL) {
        puts(fadelab_air_error());
        return 1;
    }
    printf("seed %d, %d devices\n", (int)fadelab_air_seed(air), fadelab_air_devices(air, devices, 8));
    fadelab_air_close(air);
    return 0;
}
"""

#: an outsider's CMake project: links a block
BLOCK_PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(outsider CXX)
find_package(fadelab 0.1 REQUIRED)
add_executable(outsider outsider.cpp)
target_link_libraries(outsider gnuradio::gnuradio-fadelab)
"""
BLOCK_PROGRAM = """
#include <gnuradio/fadelab/idle_filler.h>
#include <cstdio>

int main() { std::puts(gr::fadelab::idle_filler::make(64)->name().c_str()); }
"""


def run(*command: str | Path, at: Path, **environment: str) -> str:
    """Return the output of a command that must succeed."""
    done = subprocess.run(
        command, cwd=at, env=os.environ | environment, capture_output=True, text=True, timeout=800, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def exported(part: str, to: Path) -> Path:
    """Return a folder with what the repository has of a part, as it is now, and with nothing beside it."""
    for name in run("git", "ls-files", "-z", part, at=ROOT / "flowgraphs").split("\0")[:-1]:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "flowgraphs" / name, to / name)
    return to / part


def only(folder: Path, name: str) -> Path:
    (found,) = folder.rglob(name)
    return found


def test_vusrp_builds_installs_and_packs_from_its_folder_alone(tmp_path: Path) -> None:
    need("cmake", "g++", "git", "pkg-config", "uhd_find_devices", "dpkg-shlibdeps")
    source, build, root = exported("vusrp", tmp_path), tmp_path / "build", tmp_path / "root"
    # as Debian packs, without a build type of its own: optimisation takes a third of the time, and packs nothing else
    options = ("-DCMAKE_BUILD_TYPE=None", "-DCMAKE_COMPILE_WARNING_AS_ERROR=ON")
    run("cmake", "-S", source, "-B", build, *options, at=tmp_path)
    run("cmake", "--build", build, "--parallel", "2", at=tmp_path)
    run("cmake", "--install", build, at=tmp_path, DESTDIR=str(root))

    # UHD and Debian's packages agree about the place
    library = Path(run("pkg-config", "--variable=libdir", "uhd", at=tmp_path).strip())
    module = root / library.relative_to("/") / "uhd" / "modules" / "libvusrp.so"
    air = f"packages-{os.getpid()}"
    listed = run("uhd_find_devices", "--args", f"type=vusrp,air={air}", at=tmp_path, UHD_MODULE_PATH=str(module.parent))
    assert "serial: V1" in listed

    (tmp_path / "outsider.c").write_text(AIR_PROGRAM)
    pc = only(root, "fadelab-air.pc")
    flags = run("pkg-config", "--cflags", "--libs", "fadelab-air", at=tmp_path, PKG_CONFIG_PATH=str(pc.parent)).split()
    run("gcc", "-Wall", "-Werror", "-o", "outsider", "outsider.c", *flags, at=tmp_path)
    assert "[libfadelab-air.so.0.1]" in run("readelf", "-d", "outsider", at=tmp_path)
    libraries = str(only(root, "libfadelab-air.so").parent)
    assert run("./outsider", air, at=tmp_path, LD_LIBRARY_PATH=libraries) == "seed 5, 0 devices\n"

    run("cpack", "-G", "DEB", at=build)
    (package,) = build.glob("fadelab-vusrp_*.deb")
    contents = run("dpkg-deb", "--contents", package, at=tmp_path)
    for name in ("libfadelab-air.so.0.1.0", "fadelab_air.h", "pkgconfig/fadelab-air.pc"):
        assert f"{name}\n" in contents
    assert f".{library}/uhd/modules/libvusrp.so\n" in contents
    assert "libuhd" in run("dpkg-deb", "--field", package, "Depends", at=tmp_path)


def test_native_blocks_install_where_cmake_python_and_companion_look(tmp_path: Path) -> None:
    need("cmake", "g++")
    if not (NATIVE / "fadelabConfigVersion.cmake").exists():
        pytest.skip("the native blocks are not built: start ./fadelab once")
    root = tmp_path / "root"
    run("cmake", "--install", NATIVE, "--prefix", root, at=tmp_path)

    (tmp_path / "CMakeLists.txt").write_text(BLOCK_PROJECT)
    (tmp_path / "outsider.cpp").write_text(BLOCK_PROGRAM)
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={root}", at=tmp_path)
    run("cmake", "--build", tmp_path / "build", at=tmp_path)
    assert "libgnuradio-fadelab.so.0.1]" in run("readelf", "-d", "build/outsider", at=tmp_path)
    assert run("build/outsider", at=tmp_path) == "idle filler\n"

    site = only(root, "gnuradio/fadelab/__init__.py").parents[2]
    program = "from gnuradio import fadelab; print(fadelab.__file__, fadelab.idle_filler(64).name())"
    printed = run("/usr/bin/python3", "-c", program, at=tmp_path, PYTHONPATH=str(site))
    assert printed == f"{site}/gnuradio/fadelab/__init__.py idle filler\n"

    blocks = {path.name for path in (root / "share" / "gnuradio" / "grc" / "blocks").iterdir()}
    assert blocks == {path.name for path in (ROOT / "flowgraphs" / "native" / "grc").iterdir()}
