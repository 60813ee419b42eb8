"""`modern` with BBRv3 in place of CUBIC (docs/transports.md)."""

from hosts.tcp.profiles import UserProfile
from hosts.tcp.profiles.modern import PROFILE as MODERN

PROFILE = UserProfile(name="bbr3", summary="modern, BBRv3 in place of CUBIC", config=MODERN.config.but(growth="bbr3"))
