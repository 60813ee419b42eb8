"""Papers made again: cells, jobs and workers."""
