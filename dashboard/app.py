"""The dashboard's web application: `create_app` makes it, `serve` runs its server.

    app = create_app(DashboardConfig(hub=hub, runs=Path("runs"), token=token))
    with serve(app, "127.0.0.1", 8000) as served:
        served.wait()

Read next: `auth.py` (access), `http_api.py` (requests), `stream.py` (live data). README.md has the whole interface to
the page.

Rules kept: every answer has the headers below; errors are one line, in JSON below /api; answers of /api are not cached;
the page loads nothing from other servers.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flask import Flask, Response, redirect, render_template, request, send_from_directory
from flask.json.provider import DefaultJSONProvider
from werkzeug.exceptions import HTTPException
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.sansio.response import Response as Answer

from dashboard.auth import SESSION_S, Guard, Refused
from dashboard.control import RunStarter
from dashboard.http_api import Streams, make_api
from dashboard.hub import Hub
from dashboard.serving import Served, ServerError, serve
from dashboard.shapes import to_json
from dashboard.store import StoreError
from dashboard.tour import Tour

__all__ = ["DashboardConfig", "Served", "ServerError", "create_app", "serve"]

ASSETS = Path("/usr/share/javascript")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")

_HEADERS = {
    # scripts, styles and data of this server only; this policy does not apply to styles that scripts set
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True, slots=True)
class DashboardConfig:
    """The sources of a dashboard's data, and the access to it."""

    hub: Hub
    #: the folder of run folders
    runs: Path
    #: required for changes
    token: str
    #: starts runs; None: the page only shows runs
    starter: RunStarter | None = None
    #: the guided tour, whose runs the starter starts; None: there is none
    tour: Tour | None = None
    #: returns the state of the database, as JSON: {"state", "message", ...}
    database: Callable[[], Mapping[str, Any]] | None = None
    #: tells the story of the lost frame of a run's folder that is nearest to a time (s), in a direction of the link or,
    #: empty, in both; raises ControlError. None: none is told
    tell: Callable[[Path, float, str], Mapping[str, Any]] | None = None
    #: host names under which the page may be requested; addresses always may
    hosts: Collection[str] = LOCAL_HOSTS
    #: whether reading requires the token, too: necessary when others can reach the port
    require_token_to_read: bool = False
    #: the number of proxies that each request passes: each adds its client to X-Forwarded-For and the scheme to
    #: X-Forwarded-Proto. Of 0 both headers are ignored, since any client can send them
    proxies: int = 0
    #: Debian's folder of JavaScript libraries
    assets: Path = ASSETS
    version: str = ""


class _Json(DefaultJSONProvider):
    """Encodes JSON for browsers."""

    def dumps(self, obj: Any, **options: Any) -> str:
        return to_json(obj)

    def loads(self, s: str | bytes, **options: Any) -> Any:
        try:
            return super().loads(s, **options)
        except RecursionError:
            raise ValueError("nested too deeply") from None


def create_app(config: DashboardConfig) -> Flask:
    """Return the application. Raises ServerError when a library of the page is not installed."""
    if not (config.assets / "dygraphs").is_dir():
        raise ServerError(f"{config.assets}/dygraphs: not there; install Debian's libjs-dygraphs")
    app = Flask(__name__)
    app.json = _Json(app)
    app.config["MAX_CONTENT_LENGTH"] = 1 << 16
    app.config["PROXIES"] = config.proxies
    # no redirects for wrong paths
    app.url_map.merge_slashes = False
    if config.proxies:
        # the type has all assignments to methods refused
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=config.proxies, x_proto=config.proxies)  # type: ignore[method-assign]
    guard = Guard(config.token, config.hosts)
    streams = Streams(config.hub)
    app.extensions["fadelab"] = streams
    app.register_blueprint(make_api(config, guard, streams))

    @app.before_request
    def check() -> None:
        guard.check_host(request)
        changes = request.method not in ("GET", "HEAD", "OPTIONS")
        if changes:
            guard.check_origin(request)
            if not request.is_json:
                raise Refused(415, "send application/json")
        elif request.path.startswith("/api/"):
            # another site cannot read answers, but can make this machine work for them
            guard.check_site(request)
        # the page contains no data, only its requests return data
        free = not request.path.startswith("/api/") or request.path in ("/api/state", "/api/login")
        if not free and (changes or config.require_token_to_read) and not guard.authorised(request):
            raise Refused(401, "this takes the dashboard's token")

    @app.after_request
    def harden(response: Response) -> Response:
        response.headers.update(_HEADERS)
        if request.path.startswith("/api/"):
            response.headers["Cache-Control"] = "no-store"
        return response

    @app.get("/")
    def page() -> str | Answer:
        token = request.args.get("token")
        if token is None:
            return render_template("index.html")
        if not guard.token_holds(token, request.remote_addr or ""):
            raise Refused(403, "this is not the dashboard's token: use the address it printed when it started")
        # removes the token from the address bar and the history
        answer = redirect("/", 303)
        answer.headers["Cache-Control"] = "no-store"
        _give_session(answer, guard)
        return answer

    @app.post("/api/login")
    def login() -> Answer:
        body = request.get_json(silent=True)
        token = body.get("token") if isinstance(body, dict) else None
        if not isinstance(token, str) or not guard.token_holds(token, request.remote_addr or ""):
            raise Refused(403, "this is not the dashboard's token")
        answer = app.json.response({"ok": True})
        _give_session(answer, guard)
        return answer

    @app.get("/assets/dygraphs/<path:name>")
    def dygraphs(name: str) -> Response:
        return send_from_directory(config.assets / "dygraphs", name)

    @app.errorhandler(Refused)
    def refused(error: Refused) -> Answer:
        return _problem(app, error.status, error.reason)

    @app.errorhandler(StoreError)
    def not_stored(error: StoreError) -> Answer:
        return _problem(app, 404, str(error))

    @app.errorhandler(HTTPException)
    def failed(error: HTTPException) -> Answer:
        return _problem(app, error.code or 500, (error.name or "failed").lower())

    @app.errorhandler(Exception)
    def broken(error: Exception) -> Answer:
        app.logger.exception("%s %s", request.method, request.path)
        return _problem(app, 500, "the dashboard has a fault here: its terminal says which")

    return app


def _give_session(answer: Answer, guard: Guard) -> None:
    name = guard.cookie_name(request)
    answer.set_cookie(
        name,
        guard.make_session(),
        max_age=SESSION_S,
        httponly=True,
        samesite="Strict",
        secure=request.is_secure,
        path="/",
    )


def _problem(app: Flask, status: int, line: str) -> Answer:
    if request.path.startswith("/api/"):
        answer: Answer = app.json.response({"error": line})
    else:
        answer = Response(f"{line}\n", mimetype="text/plain")
    answer.status_code = status
    return answer
