"""The testbed: scenarios, tiers, runs and the command line."""

import common  # noqa: F401 (finds the compiled cores)
