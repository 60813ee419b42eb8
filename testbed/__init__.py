"""The testbed: scenarios, tiers, runs and the command line."""
