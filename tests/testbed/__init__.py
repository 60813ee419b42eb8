"""Tests of the testbed: scenarios, runs, what they keep and show."""
