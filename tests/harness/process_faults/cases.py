"""All cases."""

from typing import Final

from tests.harness.process_faults import campaigns, disks, live, services
from tests.harness.process_faults.stage import Case

CASES: Final[tuple[Case, ...]] = (*live.CASES, *disks.CASES, *services.CASES, *campaigns.CASES)
