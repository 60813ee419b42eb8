"""Disks that are full or cannot be written."""

from functools import partial

from tests.harness.process_faults.limits import fill, make_read_only, small_disk
from tests.harness.process_faults.stage import Case, Stage, require, require_failed, require_reported


def _from_the_start(fault: str, stage: Stage) -> None:
    with small_disk(stage.folder / "disk", 1 << 20) as disk:
        if fault == "full":
            fill(disk)
        else:
            require(make_read_only(disk), "the disk stays writable")
        end = stage.run(stage.scenario(), out=disk / "runs").end()
        reason = "No space left on device" if fault == "full" else "Read-only file system"
        require_failed(end, rf"({disk}/\S*: |the disk takes no more at {disk}/).*{reason}.*")


def _in_mid_run(stage: Stage) -> None:
    made = stage.scenario(workloads=[{"kind": "bulk", "bytes": 600_000}], capture=stage.rng.random() < 0.5)
    with small_disk(stage.folder / "disk", 4 << 20) as disk:
        command = stage.run(made, out=disk / "runs")
        stage.note(command.children(4))
        command.wait_crossed(stage.rng.randrange(20_000, 300_000))
        fill(disk)
        require_failed(command.end(), r".*No space left on device.*")
        [folder] = (disk / "runs").iterdir()
        require_reported(folder)


CASES = (
    Case("disk full from the start", "one line that names the folder", partial(_from_the_start, "full")),
    Case("disk read-only from the start", "one line that names the folder", partial(_from_the_start, "read-only")),
    Case("disk full in mid-run", "one line; the list of runs says that there is no result", _in_mid_run),
)
