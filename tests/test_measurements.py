"""The page of measurements: each figure says how it was made, its commands parse, and its data give it again."""

import argparse
import csv
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import click
import pytest

from testbed.cli.app import cli

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "measurements.md"
#: a checkout with less than the whole history, as a shallow clone, does not have it
FIRST_COMMIT = "91f8f22aeb4b"
DATA = PAGE.with_suffix("")

_HEADING = re.compile(r"^#{2,3} (.+)$", re.MULTILINE)


def sections() -> dict[str, str]:
    """The text below each heading, up to the next one; without those that have parts and no figures of their own."""
    parts = _HEADING.split(PAGE.read_text())[1:]
    found: dict[str, str] = {}
    above = ""
    level = {name: marks for marks, name in re.findall(r"^(#{2,3}) (.+)$", PAGE.read_text(), re.MULTILINE)}
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        above = name if level[name] == "##" else above
        if "```sh" in text:
            found[name if name == above else f"{above}: {name}"] = text
    return found


SECTIONS = sections()
every_section = pytest.mark.parametrize("name", SECTIONS)


@every_section
def test_a_figure_has_commit_seed_tier_and_data(name: str) -> None:
    about = " ".join(SECTIONS[name].split("```sh")[0].split())
    assert re.search(r"\bCommit [0-9a-f]{7,12}\b", about), about
    assert re.search(r"\bseeds? \d|\bno seed\b", about), about
    assert re.search(r"\btier\b", about), about
    found = re.search(r"Data: (?:not kept\.|\[[\w.-]+\]\((measurements/[\w.-]+\.csv)\))", about)
    assert found, about
    if found[1]:
        assert (PAGE.parent / found[1]).is_file()


def is_commit(name: str) -> bool:
    found = subprocess.run(["git", "-C", str(ROOT), "cat-file", "-t", name], capture_output=True, text=True)
    return found.stdout.strip() == "commit"


@pytest.mark.skipif(not is_commit(FIRST_COMMIT), reason="this checkout has no whole history")
def test_commits_are_in_the_history() -> None:
    commits = set(re.findall(r"\bCommit ([0-9a-f]{7,12})\b", PAGE.read_text()))
    assert {commit for commit in commits if not is_commit(commit)} == set()


def test_tables_stand_below_a_command() -> None:
    text = PAGE.read_text()
    for part in re.split(r"^#{2,3} ", text, flags=re.MULTILINE)[1:]:
        if "\n|---" in part:
            assert part.index("```sh") < part.index("\n|---"), part.splitlines()[0]


def called(block: str, folder: Path) -> list[list[str]]:
    """The commands that a shell calls for a block, each as its words; nothing but the shell is executed."""
    log = folder / "log"
    note = f"#!/usr/bin/python3\nimport json, sys\nopen({str(log)!r}, 'a').write(json.dumps(sys.argv) + '\\n')\n"
    stubs = ["fadelab", ".venv/bin/python", "tests/fresh.sh"]
    for name in stubs:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(note)
        (folder / name).chmod(0o755)
    (folder / "bin").mkdir()
    (folder / "bin" / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
    (folder / "bin" / "sudo").chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    subprocess.run(["bash", "-eu", "-c", block], cwd=folder, env=environment, check=True)
    return [json.loads(line) for line in log.read_text().splitlines()]


class Parsed(Exception):  # noqa: N818
    pass


def parse(words: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program that a command names parse its words, and do no more."""
    program, *rest = words
    if program.endswith("fadelab"):
        context = cli.make_context("fadelab", list(rest))
        while isinstance(context.command, click.Group):
            name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
            assert command is not None
            context = command.make_context(name, rest, parent=context)
        if (scenario := context.params.get("scenario")) is not None:
            from testbed.scenario.file import load

            load(ROOT / scenario, context.params["settings"], tier=context.params["tier"], tcp=context.params["tcp"])
        return
    if program.endswith("tests/fresh.sh"):
        assert (ROOT / program).is_file()
        return
    assert rest[0] == "-m", words
    parse_args = argparse.ArgumentParser.parse_args

    def stop(parser: argparse.ArgumentParser, *arguments: object) -> None:
        parse_args(parser)
        raise Parsed

    with monkeypatch.context() as patched:
        patched.setattr(sys, "argv", rest[1:])
        patched.setattr(argparse.ArgumentParser, "parse_args", stop)
        with pytest.raises(Parsed):
            importlib.import_module(rest[1]).main()


@every_section
def test_commands_parse(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", SECTIONS[name], re.DOTALL)
    commands = [words for index, block in enumerate(blocks) for words in called(block, _made(tmp_path / str(index)))]
    assert commands
    for words in commands:
        parse(words, monkeypatch)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_wrong_commands_do_not_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    of_benchmark = [".venv/bin/python", "-m", "benchmarks.simulator", "--x"]
    for words in (["./fadelab", "run", "x.yaml", "--no-such"], of_benchmark):
        with pytest.raises((click.UsageError, SystemExit)):
            parse(words, monkeypatch)


def test_data_give_the_goodput_of_the_page() -> None:
    text = SECTIONS["Goodput over a lossy link: Virtual time"]
    rows = _rows("goodput-model.csv")
    for per in ("0.01", "0.05", "0.1", "0.2"):
        cells = [_shown(rows, "goodput_bps", 1e-6, 2, per=per, scheme=scheme) for scheme in ("slacp", "none")]
        assert f"| {per} | {cells[0]} | {cells[1]} |" in text


def test_data_give_the_transfer_times_of_the_page() -> None:
    text = SECTIONS["The satellite path: Virtual time"]
    rows = _rows("satellite-model.csv")
    for scheme, words in (("none", "without SLACP"), ("slacp", "with SLACP")):
        assert f"| {words} | {_shown(rows, 'duration_s', 1, 1, scheme=scheme)} |" in text
    medians = [median(float(row["duration_s"]) for row in rows if row["scheme"] == name) for name in ("none", "slacp")]
    assert f"| ratio | {medians[0] / medians[1]:.2f} |" in text


def test_data_give_the_unplugged_runs_of_the_page() -> None:
    rows = _rows("unplugging.csv")
    for profile in ("b210", "x310-ubx"):
        calls = [row for row in rows if row["profile"] == profile]
        runs = sum(int(row["runs"]) for row in calls)
        well = sum(min(int(row[kind]) for kind in ("one_line", "complete", "nothing_left")) for row in calls)
        most_s = max(float(row["max_s"]) for row in calls)
        assert f"| {profile} | {well} of {runs} | {most_s:.1f} |" in SECTIONS["Unplugging"]


def test_data_give_the_speed_of_the_simulator_of_the_page() -> None:
    speed = {
        cores: [int(row["packets_per_cpu_s"]) for row in _rows("simulator.csv") if row["cores"] == cores]
        for cores in ("compiled", "interpreted")
    }
    text = " ".join(SECTIONS["Simulator: Compiled and interpreted, on a busy machine"].split())
    for cores, unit in (("compiled", 1000), ("interpreted", 100)):
        least, middle, most = (f"{round(f(speed[cores]) / unit) * unit:,}" for f in (min, median, max))
        assert f"{middle} ({least} to {most})" in text
    ratios = [compiled / slow for compiled, slow in zip(speed["compiled"], speed["interpreted"], strict=True)]
    assert f"{median(ratios):.1f} times as many ({min(ratios):.1f} to {max(ratios):.1f} in a round)" in text


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


def _shown(rows: Sequence[dict[str, str]], figure: str, scale: float, digits: int, **where: str) -> str:
    values = [float(row[figure]) * scale for row in rows if where.items() <= row.items()]
    assert values
    return f"{median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"
