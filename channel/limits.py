"""Checks of constructor parameters, shared by the models.

Rules: every refusal is a ValueError of one sentence that names the parameter, its value and the valid values. Left
out: checks per frame; a model trusts the arguments of the hop.
"""


def probability(name: str, value: float) -> float:
    """Return `value` if it is a probability, else raise ValueError."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} is {value}; a probability lies between 0 and 1.")
    return value


def positive(name: str, value: int) -> int:
    """Return `value` if it is above zero, else raise ValueError."""
    if not value > 0:
        raise ValueError(f"{name} is {value}; it must be above zero.")
    return value


def not_negative(name: str, value: int) -> int:
    """Return `value` if it is zero or more, else raise ValueError."""
    if not value >= 0:
        raise ValueError(f"{name} is {value}; it must not be negative.")
    return value


def span(name: str, value: tuple[int, int]) -> tuple[int, int]:
    """Return the range `value` if its ends are in order and not negative, else raise ValueError."""
    low, high = value
    if not 0 <= low <= high:
        raise ValueError(f"{name} is {low} to {high}; a range must start at 0 or above and not end before it starts.")
    return value
