"""Campaigns: a plan of many runs, the workers that carry it out, and the folder that keeps the results."""
