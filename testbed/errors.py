"""The exception for everything that is the user's or the machine's to put right.

Rule kept: the message is one line that says what is wrong and what to do about it; the command line prints it
as it is and exits with status 2.
"""


class FadelabError(RuntimeError):
    """What was asked for cannot be done; the message says why and what to do."""
