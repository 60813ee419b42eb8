"""The exception for all faults of the input or of the machine, which the user can repair.

Rule kept: the message is one line with the fault and the remedy; the command line prints it and exits with status 2.
"""


class FadelabError(RuntimeError):
    """A request that cannot be fulfilled; the message gives the cause and the remedy."""
