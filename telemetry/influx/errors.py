"""What can go wrong with a database, told apart by what its user does next.

Rule kept: the message is one line that says what is wrong, where, and what to do about it, fit to be shown as it is.
"""


class InfluxError(RuntimeError):
    """The database cannot do what was asked."""


class AwayError(InfluxError):
    """Not now: it is down, unreachable, full, or its administrator has something to set right. Try again later."""


class RefusedError(InfluxError):
    """Never: it has looked at these points and does not take them, or not all of them.

    `points` is how many it left out, None when it did not say.
    """

    def __init__(self, message: str, points: int | None = None) -> None:
        super().__init__(message)
        self.points = points


class TooLargeError(InfluxError):
    """Not at once: more than it takes in one request."""
