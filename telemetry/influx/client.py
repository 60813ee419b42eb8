"""One InfluxDB database over HTTP.

Read first: InfluxDB 1.x API reference, `/ping`, `/write` and `/query`; "InfluxDB 1.x compatibility API" of 2.x and 3.x.

Rules kept
- Only `/ping`, `/write?db=&precision=ns` and `/query` are used, which all versions serve.
- Values never become part of a query's text here: callers bind them (`params`), or quote names with `identifier`.
- Every failure is an InfluxError of one line; its class tells whether a retry can help (`errors.py`).

Left out: UDP, chunked answers, and other query languages than InfluxQL.
"""

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, LocationParseError, NewConnectionError, ReadTimeoutError
from urllib3.util import Url, make_headers, parse_url

from telemetry.influx.errors import AwayError, InfluxError, RefusedError, TooLargeError

DATABASE = "fadelab"

_CONNECT_S = 2.0
_CONNECTIONS = 16

#: not dropped=0, which 1.x reports for lines that do not parse and so have no points
_PARTIAL_WRITE = re.compile(r"partial write: .*\bdropped=([1-9]\d*)$")


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an answer; times are Unix, ns."""

    name: str
    tags: dict[str, str]
    columns: tuple[str, ...]
    values: list[list[Any]]


class Influx:
    """A database and its access; connects on use. May be shared between threads.

    `token` is a 2.x or 3.x API token, or `user:password`. Waits up to `timeout_s` for an answer. Raises InfluxError
    for an invalid URL.
    """

    def __init__(self, url: str, token: str | None = None, database: str = DATABASE, *, timeout_s: float = 5.0) -> None:
        parts = _checked(url)
        self.url = parts.url.rstrip("/")
        self.database = database
        #: as in fadelab@127.0.0.1:8086; valid as a file name
        self.label = f"{database}@{parts.netloc}{parts.path or ''}".rstrip("/").replace("/", "_")
        self._has_token = token is not None
        self._headers = _authorization(token)
        self._http = urllib3.PoolManager(
            maxsize=_CONNECTIONS,
            retries=False,
            timeout=urllib3.Timeout(connect=min(_CONNECT_S, timeout_s), read=timeout_s),
        )

    def write(self, lines: bytes) -> None:
        """Write line protocol with times in ns. Raises AwayError, RefusedError or TooLargeError."""
        self.write_packed(pack(lines))

    def write_packed(self, body: bytes) -> None:
        """Write a result of `pack`; as `write`."""
        headers = {"Content-Encoding": "gzip", "Content-Type": "text/plain; charset=utf-8"}
        answer = self._request("POST", "/write", {"db": self.database, "precision": "ns"}, headers, body)
        if answer.status in (200, 204):
            return
        if answer.status == 413:
            raise TooLargeError(f"{self._name}: {_complaint(answer)}")
        if answer.status in (400, 422):
            complaint = _complaint(answer)
            dropped = _PARTIAL_WRITE.match(complaint)
            raise RefusedError(f"{self._name}: {complaint}", int(dropped[1]) if dropped else None)
        raise self._away(answer)

    def query(self, influxql: str, params: Mapping[str, Any] | None = None) -> list[Series]:
        """Return the series of one statement, or of several separated by `;`.

        `params` are bound to `$name` in WHERE clauses. Raises AwayError, and InfluxError when a statement fails.
        """
        arguments = {"db": self.database, "epoch": "ns", "q": influxql}
        if params:
            arguments["params"] = json.dumps(dict(params))
        # 1.x requires POST for changes; 3.x reads parameters from the URL only
        method = "GET" if influxql.lstrip()[:4].upper() in ("SELE", "SHOW") else "POST"
        answer = self._request(method, "/query", arguments)
        if answer.status == 400:
            raise InfluxError(f"{self._name}: {_complaint(answer)}")
        if answer.status != 200:
            raise self._away(answer)
        try:
            results = answer.json()["results"]
        except (ValueError, KeyError, TypeError):
            raise self._not_influx() from None
        found = []
        for result in results:
            if "error" in result:
                raise InfluxError(f"{self._name}: {self._explained(result['error'])}")
            for series in result.get("series", ()):
                # `partial` is ignored: 1.6 sets it on every series of more than 10,000 rows, also on complete ones
                tags = series.get("tags", {})
                found.append(Series(series.get("name", ""), tags, tuple(series["columns"]), series.get("values", [])))
        return found

    def version(self) -> str:
        """Return the server's version. Raises AwayError, also when another server answers."""
        answer = self._request("GET", "/ping")
        if answer.status in (401, 403):
            raise self._away(answer)
        version = answer.headers.get("X-Influxdb-Version")
        if answer.status not in (200, 204) or version is None:
            raise self._not_influx()
        return version

    def check(self) -> None:
        """Raise AwayError, with the reason, unless the database exists and this token may write."""
        self.version()
        # 2.x and later may refuse an empty request, but only after they have checked the token
        with suppress(RefusedError):
            self.write(b"")

    def create_database(self, retention_days: int) -> None:
        """Create the database unless it exists, with a retention of so many days. InfluxDB 1.x only.

        Raises InfluxError for later versions, which need an administrator, and for missing rights.
        """
        version = self.version()
        if not version.lstrip("v").startswith("1."):
            raise InfluxError(
                f"{self._name}: it is version {version}, where the administrator makes databases (docs/telemetry.md)"
            )
        database = identifier(self.database)
        self.query(
            f"CREATE DATABASE {database};"
            f"ALTER RETENTION POLICY autogen ON {database} DURATION {retention_days}d SHARD DURATION 1d DEFAULT"
        )

    def _explained(self, error: str) -> str:
        # the only message of 1.6 for several statements on a missing database
        return f"{error}; is there a database {self.database}?" if error == "not executed" else error

    @property
    def _name(self) -> str:
        return f"InfluxDB at {self.url}"

    def _request(
        self,
        method: str,
        path: str,
        arguments: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> urllib3.BaseHTTPResponse:
        url = f"{self.url}{path}?{urlencode(arguments or {})}"
        try:
            return self._http.request(
                method, url, body=body, headers={**self._headers, **(headers or {})}, redirect=False
            )
        except ReadTimeoutError:
            raise AwayError(f"{self._name}: no answer in time; it is overloaded, or hangs, or is no InfluxDB") from None
        except HTTPError as error:
            raise AwayError(f"{self._name}: {_reason(error)}; check that it runs, and the URL") from None

    def _away(self, answer: urllib3.BaseHTTPResponse) -> AwayError:
        said = _said(answer)
        if answer.status in (401, 403):
            credentials = "the token is not accepted" if self._has_token else "it demands a token"
            return AwayError(f"{self._name}: {credentials} ({_complaint(answer)})")
        if said is None and answer.status in (301, 302, 307, 308, 404, 405, 501):
            return self._not_influx()
        if answer.status == 404:
            return AwayError(f"{self._name}: no database {self.database} ({said}); create it, or name another")
        return AwayError(f"{self._name}: {_complaint(answer)}")

    def _not_influx(self) -> AwayError:
        return AwayError(f"{self.url}: the server there is not InfluxDB; check the URL")


def pack(lines: bytes) -> bytes:
    """Compress a request's body."""
    # level 1: higher levels take twice the time and save a tenth of the size
    return gzip.compress(lines, 1, mtime=0)


def identifier(name: str) -> str:
    """Quote the name of a database, measurement, tag or field for InfluxQL."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def read_token(path: Path) -> str:
    """Return the token in a file of one line. Raises InfluxError.

    The permissions of the file are not checked: secrets in containers are world-readable.
    """
    try:
        lines: Sequence[str] = path.read_text().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise InfluxError(f"token file {path}: {reason}") from None
    if not lines[0].strip() or any(line.strip() for line in lines[1:]):
        raise InfluxError(f"token file {path}: it must hold one line, the token or user:password")
    return lines[0].strip()


def _checked(url: str) -> Url:
    try:
        parts = parse_url(url)
    except LocationParseError:
        parts = Url()
    if parts.scheme not in ("http", "https") or not parts.host or parts.query or parts.fragment:
        raise InfluxError(f"InfluxDB's URL {url!r}: it must look like http://127.0.0.1:8086")
    if parts.auth:
        raise InfluxError("InfluxDB's URL: put user:password into the token file, where no process list shows it")
    return parts


def _authorization(token: str | None) -> dict[str, str]:
    if token is None:
        return {}
    if not token.isascii() or not token.isprintable():
        raise InfluxError("InfluxDB's token: it has characters that no token has")
    return make_headers(basic_auth=token) if ":" in token else {"Authorization": f"Token {token}"}


def _reason(error: HTTPError) -> str:
    """Return the kernel's message, without urllib3's object names."""
    if isinstance(error, ConnectTimeoutError) and not isinstance(error, NewConnectionError):
        return "cannot be reached"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(error.args[-1]) if error.args else type(error).__name__


def _complaint(answer: urllib3.BaseHTTPResponse) -> str:
    """Return the error of an answer, in one line."""
    return _said(answer) or f"status {answer.status} {answer.reason or ''}".rstrip()


def _said(answer: urllib3.BaseHTTPResponse) -> str | None:
    """Return the server's error message: 1.x sends it in a header, 2.x and 3.x in JSON; None without one."""
    text = answer.headers.get("X-Influxdb-Error")
    if text is None:
        try:
            content = answer.json()
            text = content.get("message") or content.get("error")
        except (ValueError, AttributeError):
            return None
    return " ".join(str(text).split())[:300] if text else None
