"""What a run has shown: summary, ground truth, the run store, observers, tables and plots."""
