"""The exception of `hosts` for a machine that cannot fulfil a request.

Rule kept: the message is one line with the fault and the remedy, which programs show unchanged.
"""


class HostError(RuntimeError):
    """The kernel, missing rights or the present state prevent a request."""
