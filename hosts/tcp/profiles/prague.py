"""`modern` with Prague in place of CUBIC, and with accurate ECN (docs/transports.md)."""

from hosts.tcp.profiles import UserProfile
from hosts.tcp.profiles.modern import PROFILE as MODERN

PROFILE = UserProfile(
    name="prague",
    summary="modern, Prague in place of CUBIC, accurate ECN",
    config=MODERN.config.but(growth="prague", accecn=True),
)
