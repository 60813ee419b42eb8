"""The HTTP API of the dashboard, below /api, for its page and other programs.

README.md has the formats of requests and answers. A run is searched among the live ones first, then in the store.
"""

import io
import math
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import TYPE_CHECKING, Any

from flask import Blueprint, Response, make_response, request, send_file

from common.sides import SIDES
from dashboard import compare, exports, plots, shapes, stream
from dashboard.auth import Guard, Refused
from dashboard.breaks import BREAKS, Breaker
from dashboard.campaigns import campaigns
from dashboard.charts import CHARTS, Line
from dashboard.control import ControlError, RunRequest, RunStarter
from dashboard.delays import delays
from dashboard.hub import RETENTION_S, Hub
from dashboard.places import Places
from dashboard.runs import Runs
from dashboard.saved_page import Kept, saved_page
from dashboard.serving import LONG, STREAMS
from dashboard.store import FACETS, SORTABLE, Store, StoreError, Wanted
from dashboard.thinning import thin, thin_marks
from dashboard.tour import Tour
from linklayer.schemes import SCHEMES
from telemetry.records import RECORD_TYPES

if TYPE_CHECKING:
    from dashboard.app import DashboardConfig

Answer = dict[str, Any]

#: most runs that one page may watch
_MOST_RUNS = 4
_OFFERS_S = 10.0
_PIECE = 1 << 16
_KINDS = {kind.measurement: kind for kind in RECORD_TYPES}


class Streams:
    """The event streams of one application: their limit and their end."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.over = threading.Event()
        self.places = Places(STREAMS, kept=4)

    def end(self) -> None:
        """End all streams."""
        self.over.set()
        self._hub.stir()


class _Offers:
    """The offers of a run starter, cached: it may read files for them, and every page asks every other second."""

    def __init__(self) -> None:
        self._read_at = -math.inf
        self._known: list[Answer] = []

    def __call__(self, starter: RunStarter) -> list[Answer]:
        if time.monotonic() >= self._read_at + _OFFERS_S:
            self._known, self._read_at = [asdict(offer) for offer in starter.offers()], time.monotonic()
        return self._known


def make_api(config: "DashboardConfig", guard: Guard, streams: Streams) -> Blueprint:
    """Return the part of the application below /api."""
    api = Blueprint("api", __name__, url_prefix="/api")
    hub, store = config.hub, Store([config.runs])
    every = Runs(hub, store)
    offers = _Offers()
    telling = threading.Lock()
    breaker = Breaker()
    long = Places(LONG, kept=4)

    def takes_long(view: Callable[..., Any]) -> Callable[..., Response]:
        """Give a place to each answer until it is sent: it is made of much, and the client may read slowly."""

        @wraps(view)
        def placed(**arguments: str) -> Response:
            if not long.take(authorised=guard.authorised(request)):
                raise Refused(503, "the dashboard has its hands full: ask again in a moment")
            try:
                answer = make_response(view(**arguments))
                # in pieces, for which the server waits; else it would keep the whole for as long as the client likes
                answer.direct_passthrough = False
                data = answer.get_data()
                answer.response = [data[first : first + _PIECE] for first in range(0, len(data), _PIECE)]
            except BaseException:
                long.give()
                raise
            answer.call_on_close(long.give)
            return answer

        return placed

    # -- live ------------------------------------------------------------------------------------------------

    def _starter(starter: RunStarter) -> Answer:
        return {"why_not": starter.why_not(), "offers": offers(starter)}

    @api.get("/state")
    def state() -> Answer:
        authorised = guard.authorised(request)
        shown = authorised or not config.require_token_to_read
        starter = config.starter
        return {
            "version": config.version,
            "authorised": authorised,
            "token_to_read": config.require_token_to_read,
            "live": hub.runs() if shown else [],
            "starter": _starter(starter) if starter is not None and shown else None,
            "database": dict(config.database()) if config.database is not None and shown else None,
            "tour": config.tour.describe() if config.tour is not None and shown else None,
            "retention_s": RETENTION_S,
            "schemes": {scheme.name: scheme.label or scheme.name for scheme in SCHEMES.values()},
            "scheme_summaries": {scheme.name: scheme.summary for scheme in SCHEMES.values()},
        }

    @api.get("/charts")
    def charts() -> list[Answer]:
        return [
            {name: getattr(chart, name) for name in ("title", "unit", "scale", "description")}
            | {"key": chart.name, "lines": [_line(line) for line in chart.lines]}
            for chart in CHARTS
        ]

    @api.get("/stream")
    def live() -> Response:
        names = request.args.getlist("run")
        if len(names) > _MOST_RUNS:
            raise Refused(400, f"a page can watch {_MOST_RUNS} runs at once")
        for name in names:
            if hub.find(name) is None:
                raise StoreError("there is no live run of this name")
        history_s = min(_number("history", stream.HISTORY_S), RETENTION_S)
        gone = request.environ.get("waitress.client_disconnected", lambda: False)
        if not streams.places.take(authorised=guard.authorised(request)):
            raise Refused(503, "as many pages watch as can: close one, or show the token")
        events = stream.events(
            hub,
            names,
            history_s=history_s,
            views=request.args.get("views") != "0",
            comments=request.args.get("comments") == "1",
            last_id=request.headers.get("Last-Event-ID", ""),
            over=lambda: streams.over.is_set() or gone(),
        )
        answer = Response(events, mimetype="text/event-stream", headers={"X-Accel-Buffering": "no"})
        answer.call_on_close(streams.places.give)
        return answer

    # -- past ------------------------------------------------------------------------------------------------

    @api.get("/runs")
    def runs() -> Answer:
        wanted = _wanted()
        found = store.list(wanted)
        rows = []
        for row in found["runs"]:
            feed = hub.find(row.name)
            live = feed is not None and feed.live
            rows.append(asdict(row) | {"live": live, "problem": "" if live else row.problem})
        return found | {"runs": rows}

    @api.get("/campaigns")
    def all_campaigns() -> Answer:
        return {"campaigns": [asdict(each) for each in campaigns(config.runs)]}

    @api.get("/runs/<run>")
    @takes_long
    def detail(run: str) -> Answer:
        return every.detail(run)

    @api.get("/runs/<run>/series")
    @takes_long
    def series(run: str) -> Answer:
        info, picture = every.info(run), every.picture(run)
        found: shapes.Series = {}
        for curve in picture.curves:
            found.setdefault(curve.chart, {})[curve.label] = shapes.points(*thin(curve.times, curve.values))
        return {
            "info": info | {"charts": picture.charts()},
            "series": found,
            "marks": shapes.marks(thin_marks(picture.marks)),
            "notes": shapes.notes(picture.notes),
            "links": picture.links,
            "hidden": picture.hidden,
            "delays": delays(every.summary(run), picture),
            "problem": picture.problem,
        }

    @api.get("/compare")
    @takes_long
    def compared() -> Answer:
        a, b = (request.args.get(name, "") for name in "ab")
        return {
            "a": every.info(a),
            "b": every.info(b),
            "rows": compare.figures(every.summary(a), every.summary(b)),
            "differs": compare.differences(every.scenario(a), every.scenario(b)),
        }

    @api.get("/runs/<run>/story")
    def story(run: str) -> Answer:
        time_s, direction = _number("time", 0.0), request.args.get("direction", "")
        if direction not in ("", *SIDES):
            raise Refused(400, f"direction is {' or '.join(SIDES)}")
        folder = store.plain(run)
        if config.tell is None:
            raise Refused(409, "this dashboard tells no stories")
        # a run may have to be made again for it
        if not telling.acquire(blocking=False):
            raise Refused(503, "another story is being told: ask again in a moment")
        try:
            return {"story": config.tell(folder, time_s, direction)}
        except ControlError as error:
            raise Refused(409, " ".join(str(error).split())) from None
        finally:
            telling.release()

    @api.get("/runs/<run>/export/<kind>.<form>")
    @takes_long
    def export(run: str, kind: str, form: str) -> Response:
        if kind not in _KINDS or form not in ("csv", "parquet"):
            raise Refused(404, f"exports are of {', '.join(_KINDS)}, as csv or parquet")
        parquet = every.parquet(run, _KINDS[kind])
        name = f"{run}-{kind}.{form}"
        if form == "csv":
            try:
                return _download(exports.to_csv(parquet), name, "text/csv")
            except ValueError as error:
                raise StoreError(str(error)) from None
        return _download(parquet, name, "application/octet-stream")

    @api.get("/runs/<run>/page.html")
    @takes_long
    def page(run: str) -> Response:
        other = request.args.get("b", "")
        names = [run, *([other] if other else [])]
        kept = [Kept(name, every.detail(name), every.scenario(name), every.picture(name)) for name in names]
        return _download(saved_page(kept, config.version), f"{'-and-'.join(names)}.html", "text/html")

    @api.get("/runs/<run>/plot.<form>")
    @takes_long
    def plot(run: str, form: str) -> Response:
        if form not in plots.FORMATS:
            raise Refused(404, f"plots are {', '.join(plots.FORMATS)}")
        other = request.args.get("b", "")
        names = [run, *([other] if other else [])]
        labels = [every.info(name)["scheme"] or name for name in names]
        if len(set(labels)) < len(labels):
            labels = [f"{letter}, {label}" for letter, label in zip("AB", labels, strict=True)]
        pictures = [every.picture(name) for name in names]
        asked = [key for key in request.args.get("charts", "").split(",") if key]
        if not set(asked) <= {chart.name for chart in CHARTS}:
            raise Refused(400, f"charts are {', '.join(chart.name for chart in CHARTS)}")
        charts = asked or [key for picture in pictures for key in picture.charts()]
        if not charts:
            raise StoreError("the run has no records to plot")
        drawn = [plots.Drawn(label, picture) for label, picture in zip(labels, pictures, strict=True)]
        data = plots.draw(drawn, charts, " and ".join(names), form)
        return _download(data, f"{'-and-'.join(names)}.{form}", plots.FORMATS[form])

    # -- changing --------------------------------------------------------------------------------------------

    @api.post("/start")
    def start() -> Answer:
        if config.starter is None:
            raise Refused(409, "this dashboard only watches: it starts no runs")
        _try(config.starter.start, _run_request())
        return {"ok": True}

    @api.post("/runs/<run>/controls")
    def control(run: str) -> Answer:
        feed, controls = every.steered(run)
        body = _body()
        name, value = body.get("name"), body.get("value")
        if not isinstance(name, str) or not isinstance(value, bool | int | float | str):
            raise Refused(400, 'send {"name": ..., "value": ...}: a text, and a number, a text, true or false')
        if isinstance(value, float) and not math.isfinite(value):
            raise Refused(400, "the value must be finite")
        _try(controls.set, name, value)
        feed.describe_controls(fresh=True)
        hub.stir()
        return {"ok": True}

    @api.post("/demo")
    def start_demo() -> Answer:
        if config.starter is None:
            raise Refused(409, "this dashboard only watches: it starts no runs")
        _try(config.starter.start_demo)
        return {"ok": True}

    @api.post("/tour")
    def guide() -> Answer:
        if config.tour is None:
            raise Refused(409, "this dashboard has no tour: it starts no runs")
        act = _body().get("act")
        acts: dict[str, Callable[[Tour], None]] = {
            "begin": lambda tour: tour.begin(unattended=False),
            "next": lambda tour: tour.move(1),
            "previous": lambda tour: tour.move(-1),
            "unattended": lambda tour: tour.attend(unattended=True),
            "attended": lambda tour: tour.attend(unattended=False),
            "end": lambda tour: tour.end(),
        }
        if not isinstance(act, str) or act not in acts:
            raise Refused(400, f'send {{"act": ...}}: one of {", ".join(acts)}')
        _try(acts[act], config.tour)
        return {"ok": True}

    @api.get("/breaks")
    def breaks() -> Answer:
        return {"breaks": [asdict(each) for each in BREAKS]}

    @api.post("/breaks")
    def break_it() -> Answer:
        body = _body()
        name, names = body.get("name"), body.get("runs")
        if not isinstance(name, str) or not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            raise Refused(400, 'send {"name": ..., "runs": [...]}: the name of a break, and names of runs')
        if not 1 <= len(set(names)) == len(names) <= _MOST_RUNS:
            raise Refused(400, f"runs are 1 to {_MOST_RUNS} different names")
        _try(breaker.start, name, [every.steered(run)[1] for run in names])
        hub.stir()
        return {"ok": True}

    @api.post("/runs/<run>/stop")
    def stop(run: str) -> Answer:
        _, controls = every.steered(run)
        _try(controls.stop)
        return {"ok": True}

    return api


def _try(act: Callable[..., None], *arguments: Any) -> None:
    """Call `act`; turn its error into a refusal of one line."""
    try:
        act(*arguments)
    except ControlError as error:
        raise Refused(409, " ".join(str(error).split())) from None
    except (RuntimeError, ValueError, OSError) as error:
        raise Refused(500, " ".join(str(error).split())) from None


def _wanted() -> Wanted:
    asked = request.args
    sort = asked.get("sort") or "-started"
    if sort.removeprefix("-") not in SORTABLE:
        raise Refused(400, f"sort by one of {', '.join(SORTABLE)}; - in front begins with the largest")
    finished = {"": None, "true": True, "false": False}
    if asked.get("finished", "") not in finished:
        raise Refused(400, "finished is true or false")
    page = _number("page", 1)
    if page != int(page) or not 1 <= page <= 1e6:
        raise Refused(400, "page is a number from 1")
    return Wanted(
        text=asked.get("text", ""),
        facets={name: asked.get(name, "") for name in FACETS},
        finished=finished[asked.get("finished", "")],
        sort=sort,
        page=int(page),
    )


def _line(line: Line) -> Answer:
    return {"suffix": line.suffix, "short": line.short, "band": line.band}


def _number(name: str, default: float) -> float:
    text = request.args.get(name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise Refused(400, f"{name} is a number")
    return value


def _body() -> Answer:
    body = request.get_json(silent=True)
    if not isinstance(body, dict):
        raise Refused(400, "send a JSON object")
    return body


def _run_request() -> RunRequest:
    body = _body()
    scenario, tier, schemes = body.get("scenario"), body.get("tier"), body.get("schemes")
    seconds, seed = body.get("seconds"), body.get("seed")
    if not isinstance(scenario, str) or not isinstance(tier, str):
        raise Refused(400, "scenario and tier are names")
    if not isinstance(schemes, list) or not all(isinstance(scheme, str) for scheme in schemes):
        raise Refused(400, "schemes is a list of names")
    if not 1 <= len(set(schemes)) == len(schemes) <= _MOST_RUNS:
        raise Refused(400, f"schemes are 1 to {_MOST_RUNS} different names")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e6:
        raise Refused(400, "seconds is a number above 0")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << 63:
        raise Refused(400, "seed is a whole number from 0")
    return RunRequest(scenario, tier, tuple(schemes), float(seconds), seed)


def _download(data: bytes, name: str, kind: str) -> Response:
    return send_file(io.BytesIO(data), mimetype=kind, as_attachment=True, download_name=name)
