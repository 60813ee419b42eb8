"""Access control of the dashboard.

Read first: OWASP's cheat sheets on cross-site request forgery and on session management; the W3C's "Fetch metadata".

Rules kept
- Every request must have a known host name, or an address: a name of another site that resolves to this server is
  refused (DNS rebinding).
- A change needs the token (`Authorization: Bearer`) or a session (a cookie that scripts cannot read and other sites
  cannot send), and must come from this page, by the headers of the browser. Data goes to no other site's page either.
- A session is a date and its HMAC under the token. The server stores no sessions; they stay valid after a restart, and
  become invalid with another token.
- Secrets are compared in constant time. The token's length makes guessing hopeless, so the right one opens at any time:
  neither an attacker's noise nor others behind the same proxy lock its owner out. Wrong ones are counted by address,
  and too many are told to wait.
- A client's address is that of its connection. Proxies that are known (`app.py`) name the clients behind them.

Left out: users and roles; TLS, which a reverse proxy adds.
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
#: octets of a token at least: 96 bits in base 64
LEAST_TOKEN = 16
#: wrong tokens from one address in this time that are only called wrong
_TRIES, _TRIES_S = 10, 60.0
_ADDRESSES = 1024


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """A request that is refused: HTTP status and one line."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Guard:
    """Checks requests. `hosts` are the valid host names of the server.

    Raises ValueError for a token that could be guessed.
    """

    def __init__(self, token: str, hosts: Collection[str]) -> None:
        if len(token) < LEAST_TOKEN:
            raise ValueError(
                f"the dashboard's token has {len(token)} characters: give it {LEAST_TOKEN} random ones or more"
            )
        self._token = token.encode()
        self._hosts = frozenset(host.lower() for host in hosts)
        self._lock = threading.Lock()
        #: the times of wrong tokens, by address, oldest use first
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()

    def check_host(self, request: Request) -> None:
        """Refuse a request for another host name."""
        try:
            host = urlsplit(f"//{request.host}").hostname or ""
        except ValueError:
            host = ""
        if host not in self._hosts and not _is_address(host):
            raise Refused(400, "this name is not the dashboard's: open it by its address, or allow the name")

    def check_site(self, request: Request) -> None:
        """Refuse a request that a browser makes for another site's page, by its word alone."""
        if request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site"):
            raise Refused(403, "another site's page asks for this: open it from the dashboard, or type its address")

    def check_origin(self, request: Request) -> None:
        """Refuse a change that does not come from the dashboard's own page, or from a program with the token."""
        site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
        if origin == "null" and site is not None:
            # a page with Referrer-Policy no-referrer may send this; the other header decides
            origin = None
        foreign = origin is not None and urlsplit(origin).netloc.lower() != request.host.lower()
        # a program with the token is not a browser and sends neither header
        silent = site is None and origin is None and "Authorization" not in request.headers
        if foreign or silent or site not in (None, "same-origin"):
            raise Refused(403, "only the dashboard's own page may do this, or a program that shows the token")

    def authorised(self, request: Request) -> bool:
        """Return whether a request has the token or a session. Refuses one wrong token too many of its address."""
        if self._session_holds(request.cookies.get(self.cookie_name(request), "")):
            return True
        kind, _, shown = request.headers.get("Authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.token_holds(shown.strip(), request.remote_addr or "")

    def token_holds(self, shown: str, address: str) -> bool:
        """Return whether this is the token. Refuses one wrong token too many of this address."""
        if hmac.compare_digest(_octets(shown), self._token):
            return True
        now = time.monotonic()
        with self._lock:
            wrong = self._wrong.get(address, deque())
            while wrong and wrong[0] < now - _TRIES_S:
                wrong.popleft()
            if len(wrong) >= _TRIES:
                raise Refused(429, f"too many wrong tokens: wait {_TRIES_S:.0f} s")
            wrong.append(now)
            self._wrong[address] = wrong
            self._wrong.move_to_end(address)
            if len(self._wrong) > _ADDRESSES:
                self._wrong.popitem(last=False)
            return False

    def make_session(self) -> str:
        """Return a new session, for a client that has shown the token."""
        expires = str(int(time.time()) + SESSION_S)
        return f"{expires}.{self._sign(expires)}"

    def cookie_name(self, request: Request) -> str:
        """Return the name of the session cookie, with the port: cookies are shared by all ports of a host."""
        port = request.host.rpartition(":")[2]
        return f"fadelab-{port}" if port.isdigit() else "fadelab"

    def _session_holds(self, session: str) -> bool:
        expires, _, signature = session.partition(".")
        holds = hmac.compare_digest(_octets(signature), _octets(self._sign(expires)))
        return holds and expires.isdigit() and int(expires) > time.time()

    def _sign(self, expires: str) -> str:
        return hmac.new(self._token, _octets(f"fadelab session {expires}"), hashlib.sha256).hexdigest()


def _octets(text: str) -> bytes:
    # the text may contain surrogates
    return text.encode(errors="surrogatepass")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
