"""Errors of a database, one class per reaction.

Rule kept: the message is one line with fault, place and remedy, which programs show unchanged.
"""


class InfluxError(RuntimeError):
    """The database cannot fulfil a request."""


class AwayError(InfluxError):
    """The database is down, unreachable, full or misconfigured at present. Try again later."""


class RefusedError(InfluxError):
    """The database has refused some or all of these points for good.

    `points` is the number of refused points, None when unknown.
    """

    def __init__(self, message: str, points: int | None = None) -> None:
        super().__init__(message)
        self.points = points


class TooLargeError(InfluxError):
    """The request is larger than the database accepts."""
