"""All cases."""

from typing import Final

from tests.harness.process_faults import campaigns, databases, disks, live, services
from tests.harness.process_faults.stage import Case

CASES: Final[tuple[Case, ...]] = (*live.CASES, *disks.CASES, *databases.CASES, *services.CASES, *campaigns.CASES)
