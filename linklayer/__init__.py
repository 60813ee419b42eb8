"""The link layer: SLACP and the other link schemes, queues, and the real-time station loop."""

import common  # noqa: F401 (finds the compiled cores)
