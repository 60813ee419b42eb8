"""Runs for other programs: the packets and frames of a run (`timeline.py`), as qlog and as a Perfetto trace."""
