"""What a run has shown: summary, ground truth, the run store, tables and plots."""
