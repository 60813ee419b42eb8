"""The one exception the hosts layer raises for a machine that cannot do what was asked.

Rule kept: the message is one line that says what is wrong and what to do about it, fit to be shown as it is.
"""


class HostError(RuntimeError):
    """The kernel, its rights or its present state do not allow what was asked."""
