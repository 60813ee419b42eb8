"""The link layer: SLACP and the other link schemes, queues, and the real-time station loop."""
