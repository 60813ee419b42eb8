"""The TCP of a scenario's hosts: a profile by its name, or one of our own with other options (docs/scenarios.md)."""

from collections.abc import Mapping
from dataclasses import asdict
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import Discriminator, Tag, model_serializer, model_validator

from hosts.kernel.profiles import PROFILES, USER_PREFIX
from hosts.tcp.config import SEAMS, choose
from hosts.tcp.growth import GROWTHS
from hosts.tcp.profiles import USER_PROFILES
from hosts.tcp.recovery import RECOVERIES
from testbed.scenario.plugin_options import Choice, Part
from testbed.tiers import Tier


def user_tcp(tcp: str) -> str:
    """Return the name of a userspace TCP without the prefix that live tiers need."""
    return tcp.removeprefix(USER_PREFIX)


class SeamPart(Part):
    """A loss recovery or a window growth, and its options."""

    name: str


class TcpPart(Part):
    """One of our own TCPs with another loss recovery or window growth, or other options of its own."""

    profile: str
    #: loss recovery; options left out are the profile's, where it has them; None: the profile's
    recovery: Annotated[SeamPart, Choice(RECOVERIES.values(), "name", SeamPart)] | None = None
    #: window growth, likewise; None: the profile's
    growth: Annotated[SeamPart, Choice(GROWTHS.values(), "name", SeamPart)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, raw: Any) -> Any:
        """Fill in the names and options of the profile, so that a stored scenario has all of them."""
        if not isinstance(raw, dict) or not isinstance(raw.get("profile"), str):
            return raw
        profile = USER_PROFILES.get(user_tcp(raw["profile"]))
        if profile is None:
            raise ValueError(_not_ours(raw["profile"]))
        filled = dict(raw)
        for seam, plugins in SEAMS.items():
            given = {"name": raw[seam]} if isinstance(raw.get(seam), str) else raw.get(seam)
            if isinstance(given, dict):
                own = getattr(profile.config, seam)
                values = {key: value for key, value in given.items() if value is not None}
                name = values.get("name", own.name)
                kept = asdict(choose(seam, name, own.options).options) if name in plugins else {}
                filled[seam] = {"name": name, **kept, **values}
        return filled

    @model_serializer
    def _dump(self) -> dict[str, Any]:
        # also the options with default values, which are not the profile's
        return {"profile": self.profile, **self.changes()}

    def changes(self) -> dict[str, dict[str, Any]]:
        """Return the recovery and the growth, as far as they are given, each with its name and its options."""
        parts = {seam: getattr(self, seam) for seam in SEAMS}
        return {seam: part.model_dump(mode="json") for seam, part in parts.items() if part is not None}

    def __str__(self) -> str:
        own = USER_PROFILES[user_tcp(self.profile)].config
        words = [self.profile]
        for seam, given in self.changes().items():
            was = getattr(own, seam)
            before = {"name": was.name, **asdict(choose(seam, given["name"], was.options).options)}
            words += [f"{seam}.{key}={value}" for key, value in given.items() if before[key] != value]
        return " ".join(words)


#: the kinds of a TCP, which pydantic's paths contain
KINDS = ("by name", "with options")
Tcp = Annotated[
    Annotated[str, Tag(KINDS[0])] | Annotated[TcpPart, Tag(KINDS[1])],
    Discriminator(lambda raw: KINDS[isinstance(raw, dict | TcpPart)]),
]


def shortened(raw: Any, key: str, default: str, *, kernel: bool) -> Any:
    """Return the TCP at a key in the form of a scenario: a name if nothing else is given; without one, `default`'s.

    Raises ValueError when a TCP of the kernel's, where there is one, has a recovery or a growth.
    """
    if not isinstance(raw, Mapping):
        return default if raw is None else raw
    given = {key: value for key, value in raw.items() if value is not None}
    name = given.setdefault("profile", default)
    if len(given) == 1:
        return name
    if kernel and isinstance(name, str) and not name.startswith(USER_PREFIX):
        raise ValueError(f"{key}: {_not_ours(name)}")
    return given


def check_tcp(tier: Tier, name: str, key: str) -> None:
    """Raise ValueError unless a tier has the TCP of that name; `key` is its key in the scenario."""
    if not tier.kernel:
        if user_tcp(name) not in USER_PROFILES:
            ours = ", ".join(USER_PROFILES)
            near = [each for each in USER_PROFILES if name and name in each] or get_close_matches(name, USER_PROFILES)
            hint = f" (did you mean {' or '.join(near)}?)" if near else ""
            raise ValueError(
                f"{key} {name!r} cannot run on tier {tier.name}, which has no kernel{hint}: choose from {ours}"
            )
    elif name not in PROFILES and not (name.startswith(USER_PREFIX) and user_tcp(name) in USER_PROFILES):
        raise ValueError(f"{key} {name!r} is no profile: choose from {', '.join(PROFILES)}, or of our own TCPs {_OURS}")


_OURS = ", ".join(f"{USER_PREFIX}{name}" for name in USER_PROFILES)


def _not_ours(name: str) -> str:
    return f"only our own TCPs have recovery and growth, and {name!r} is none: leave them out, or choose from {_OURS}"
