"""Who may read, and who may change things.

Read first: OWASP's cheat sheets on cross-site request forgery and on session management; the W3C's "Fetch metadata".

Rules kept
- Every request names a host of ours: a name that someone else's DNS points here is refused (DNS rebinding). Addresses
  cannot be pointed anywhere and are let through.
- Whoever changes something shows the token (`Authorization: Bearer`) or a session made with it (a cookie that scripts
  cannot read and other sites cannot send), and comes from this page: browsers say where from.
- A session is a date and its HMAC under the token. Nothing is kept, sessions outlive a restart, and with another token
  none holds.
- Secrets are compared in constant time; wrong tokens are counted by address, and too many close the door for a while.

Left out: users and roles; TLS, which a proxy in front adds.
"""

import hashlib
import hmac
import ipaddress
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Collection
from urllib.parse import urlsplit

from flask import Request

SESSION_S = 7 * 24 * 3600
#: wrong tokens from one address in that time
_TRIES, _TRIES_S = 10, 60.0
_ADDRESSES = 1024


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """A request that is refused: HTTP status and one line."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Guard:
    """Decides about requests. `hosts` are the names under which the server may be asked."""

    def __init__(self, token: str, hosts: Collection[str]) -> None:
        if not token:
            raise ValueError("the dashboard's token is empty: give it one")
        self._token = token.encode()
        self._hosts = frozenset(host.lower() for host in hosts)
        self._lock = threading.Lock()
        #: the times of wrong tokens, by address; the address used longest ago goes first
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()

    def check_host(self, request: Request) -> None:
        """Refuse a request that was meant for somebody else's name."""
        try:
            host = urlsplit(f"//{request.host}").hostname or ""
        except ValueError:
            host = ""
        if host not in self._hosts and not _is_address(host):
            raise Refused(400, "this name is not the dashboard's: open it by its address, or allow the name")

    def check_origin(self, request: Request) -> None:
        """Refuse a request that another site's page has made."""
        site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
        if origin == "null" and site is not None:
            # a page that tells nobody its referrer may send this; the other header says more
            origin = None
        foreign = origin is not None and urlsplit(origin).netloc.lower() != request.host.lower()
        # A program that shows the token is no browser, and says nothing of a site.
        silent = site is None and origin is None and "Authorization" not in request.headers
        if foreign or silent or site not in (None, "same-origin"):
            raise Refused(403, "only the dashboard's own page may do this, or a program that shows the token")

    def authorised(self, request: Request) -> bool:
        """Return whether a request shows the token or a session. Refuses when too many wrong tokens came from there."""
        if self._session_holds(request.cookies.get(self.cookie_name(request), "")):
            return True
        kind, _, shown = request.headers.get("Authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.token_holds(shown.strip(), request.remote_addr or "")

    def token_holds(self, shown: str, address: str) -> bool:
        """Return whether this is the token. Refuses when too many wrong ones came from this address."""
        now = time.monotonic()
        with self._lock:
            wrong = self._wrong.get(address, deque())
            while wrong and wrong[0] < now - _TRIES_S:
                wrong.popleft()
            if len(wrong) >= _TRIES:
                raise Refused(429, f"too many wrong tokens: wait {_TRIES_S:.0f} s")
            if hmac.compare_digest(_octets(shown), self._token):
                return True
            wrong.append(now)
            self._wrong[address] = wrong
            self._wrong.move_to_end(address)
            if len(self._wrong) > _ADDRESSES:
                self._wrong.popitem(last=False)
            return False

    def make_session(self) -> str:
        """Return a new session for whoever has shown the token."""
        expires = str(int(time.time()) + SESSION_S)
        return f"{expires}.{self._sign(expires)}"

    def cookie_name(self, request: Request) -> str:
        """Return the cookie of a session: browsers mix up the ports of one host."""
        port = request.host.rpartition(":")[2]
        return f"fadelab-{port}" if port.isdigit() else "fadelab"

    def _session_holds(self, session: str) -> bool:
        expires, _, signature = session.partition(".")
        holds = hmac.compare_digest(_octets(signature), _octets(self._sign(expires)))
        return holds and expires.isdigit() and int(expires) > time.time()

    def _sign(self, expires: str) -> str:
        return hmac.new(self._token, _octets(f"fadelab session {expires}"), hashlib.sha256).hexdigest()


def _octets(text: str) -> bytes:
    # what came over the wire may hold half a character
    return text.encode(errors="surrogatepass")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
