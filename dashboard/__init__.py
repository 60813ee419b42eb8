"""The dashboard: live runs, past runs and the controls of a demo, in a browser."""
