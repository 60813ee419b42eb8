"""The results of runs: summary, ground truth, the run store, tables and plots."""
