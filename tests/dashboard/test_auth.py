"""Who may read and who may change: every address, with every kind of token, from every kind of place."""

import time
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import TestResponse

from dashboard.auth import Guard
from tests.harness.dashboard_runs import HERE, TCP, TOKEN, Stage, keep

READS = (
    "/api/charts",
    "/api/runs",
    "/api/runs/past-run",
    "/api/runs/past-run/series",
    "/api/runs/past-run/export/tcp.csv",
    "/api/runs/past-run/plot.svg?charts=cwnd",
    "/api/compare?a=past-run&b=past-run",
)
CHANGES: dict[str, Any] = {
    "/api/start": {"scenario": "x", "tier": "emulated", "schemes": ["none"], "seconds": 5, "seed": 1},
    "/api/runs/live-run/controls": {"name": "snr_db", "value": 3},
    "/api/runs/live-run/stop": {},
}


class Door(Stage):
    def __init__(self, runs: Path, **options: Any) -> None:
        super().__init__(runs, **options)
        keep(runs, "past-run", [TCP])

    @property
    def untouched(self) -> bool:
        return not (self.controls.changes or self.controls.stopped or self.starter.requests)

    def log_in(self) -> None:
        assert self.client.post("/api/login", json={"token": TOKEN}, headers=HERE).status_code == 200

    def state(self) -> Any:
        return self.client.get("/api/state").json

    def show(self, token: str) -> dict[str, str]:
        """Log in, or return headers, as one who has this kind of token."""
        if token == "session":
            self.log_in()
        return {
            "bearer": {"Authorization": f"Bearer {TOKEN}"},
            "wrong bearer": {"Authorization": "Bearer wrong"},
            "no bearer": {"Authorization": f"Basic {TOKEN}"},
        }.get(token, {})


@pytest.fixture
def stage(tmp_path: Path) -> Door:
    return Door(tmp_path)


@pytest.fixture
def closed(tmp_path: Path) -> Door:
    return Door(tmp_path, require_token_to_read=True)


def failed(answer: TestResponse, status: int) -> bool:
    """Whether this is a refusal in one line that says nothing of the token."""
    line = answer.json["error"] if answer.json is not None else ""
    return answer.status_code == status and bool(line) and "\n" not in line and TOKEN not in answer.text


# -- changing ---------------------------------------------------------------------------------------------------

PLACES = {
    "here": HERE,
    "here, no metadata": {"Origin": "http://localhost"},
    "here, no referrer": {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
    "another site": {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"},
    "another site, no metadata": {"Origin": "http://evil.example"},
    "another site, no origin": {"Sec-Fetch-Site": "cross-site"},
    "another port": {"Origin": "http://localhost:81", "Sec-Fetch-Site": "same-site"},
    "another port, no metadata": {"Origin": "http://localhost:81"},
    "a sandboxed page": {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    "an old sandboxed page": {"Origin": "null"},
    "an address typed in": {"Sec-Fetch-Site": "none"},
    "nowhere": {},
}
OURS = {"here", "here, no metadata", "here, no referrer"}


@pytest.mark.parametrize("token", ["none", "wrong bearer", "no bearer", "session", "bearer"])
@pytest.mark.parametrize("path", CHANGES)
def test_changing_takes_the_token_and_the_page(tmp_path: Path, path: str, token: str) -> None:
    doors = (Door(tmp_path / place) for place in PLACES)
    stage = next(doors)
    for place, headers in PLACES.items():
        if not stage.untouched:
            stage = next(doors)
        answer = stage.client.post(path, json=CHANGES[path], headers={**stage.show(token), **headers})
        # a program that is no browser says nothing of where it is, and shows the token
        from_us = place in OURS or (place == "nowhere" and "bearer" in token)
        if not from_us:
            assert failed(answer, 403), place
        elif token not in ("session", "bearer"):
            assert failed(answer, 401), place
        else:
            assert (answer.status_code, answer.json) == (200, {"ok": True}), place
        assert stage.untouched is (answer.status_code != 200), place


@pytest.mark.parametrize("path", CHANGES)
def test_changing_takes_a_post_of_json(stage: Door, path: str) -> None:
    stage.log_in()
    for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data", ""):
        assert failed(stage.client.post(path, data="{}", content_type=kind, headers=HERE), 415)
    assert stage.client.get(path, headers=HERE).status_code in (404, 405)
    for method in ("PUT", "PATCH", "DELETE"):
        answer = stage.client.open(path, method=method, json=CHANGES[path], headers=HERE)
        assert answer.status_code == 405
    assert stage.untouched


def test_a_body_that_is_too_long_is_not_read(stage: Door) -> None:
    stage.log_in()
    answer = stage.client.post("/api/runs/live-run/controls", json={"name": "a" * 100_000, "value": 1}, headers=HERE)
    assert answer.status_code in (400, 413)
    assert stage.untouched


# -- names of the host ------------------------------------------------------------------------------------------

GOOD_HOSTS = ("localhost", "LOCALHOST", "127.0.0.1:8000", "[::1]:8000", "192.168.1.7", "[fe80::1]")
EVIL_HOSTS = ("evil.example", "localhost.evil.example", "evil.example:8000", "127.0.0.1.evil.example")
BAD_HOSTS = (*EVIL_HOSTS, "", "a@localhost", "[::1")


@pytest.mark.parametrize("path", ["/", "/api/state", "/static/nothing.js", *READS])
def test_names_that_are_not_ours_are_refused(stage: Door, path: str) -> None:
    stage.log_in()
    for host in BAD_HOSTS:
        answer = stage.client.get(path, headers={"Host": host})
        assert answer.status_code == 400, host
        assert "evil" not in answer.text
        bearer = stage.show("bearer")
        assert stage.client.get(path, headers={"Host": host, **bearer}).status_code == 400


@pytest.mark.parametrize("path", CHANGES)
def test_names_that_are_not_ours_change_nothing(stage: Door, path: str) -> None:
    for host in BAD_HOSTS:
        headers = {**stage.show("bearer"), "Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
        assert failed(stage.client.post(path, json=CHANGES[path], headers=headers), 400)
    assert stage.untouched


def test_our_names_and_all_addresses_are_let_through(stage: Door) -> None:
    for host in GOOD_HOSTS:
        assert stage.client.get("/api/state", headers={"Host": host}).status_code == 200, host


def test_further_names_can_be_allowed(tmp_path: Path) -> None:
    stage = Door(tmp_path, hosts=("Lab.Example",))
    assert stage.client.get("/api/state", headers={"Host": "lab.example:8000"}).status_code == 200
    assert stage.client.get("/api/state", headers={"Host": "localhost"}).status_code == 400


# -- reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", READS)
def test_reading_is_free_by_default(stage: Door, path: str) -> None:
    assert stage.client.get(path).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/api/state", *READS])
def test_another_sites_page_cannot_make_the_dashboard_work_for_it(stage: Door, path: str, site: str) -> None:
    """It cannot read the answer, but a figure or the story of a loss takes a processor, and a stream takes a place."""
    assert failed(stage.client.get(path, headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}), 403)
    assert stage.client.get(path, headers={"Sec-Fetch-Site": "none"}).status_code == 200


@pytest.mark.parametrize("token", ["none", "wrong bearer", "no bearer", "session", "bearer"])
def test_reading_can_take_the_token(closed: Door, token: str) -> None:
    knows = token in ("session", "bearer")
    headers = closed.show(token)
    # a stream that begins has no end: tests/dashboard/test_serving.py
    for path in (*READS, "/api/nothing", f"/api/stream?run={'nothing' if knows else 'live-run'}"):
        answer = closed.client.get(path, headers=headers)
        if knows:
            assert answer.status_code == (404 if "nothing" in path else 200), path
        else:
            assert failed(answer, 401), path


def test_without_the_token_the_state_says_no_more_than_that(closed: Door) -> None:
    state = closed.state()
    assert (state["authorised"], state["token_to_read"]) == (False, True)
    assert (state["live"], state["starter"], state["database"]) == ([], None, None)
    closed.log_in()
    state = closed.state()
    assert (state["authorised"], len(state["live"])) == (True, 1)


def test_the_page_itself_holds_nothing_and_is_free(closed: Door) -> None:
    answer = closed.client.get("/")
    assert answer.status_code == 200
    assert "live-run" not in answer.text


# -- sessions -------------------------------------------------------------------------------------------------------


def test_the_address_with_the_token_opens_a_session(stage: Door) -> None:
    answer = stage.client.get(f"/?token={TOKEN.replace(' ', '+')}")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/")
    cookie = answer.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert TOKEN not in cookie
    assert stage.state()["authorised"] is True


def test_a_wrong_token_opens_none_and_is_not_repeated(stage: Door) -> None:
    answer = stage.client.get("/?token=<script>alert(1)</script>")
    assert answer.status_code == 403
    assert answer.mimetype == "text/plain"
    assert "script" not in answer.text
    assert "Set-Cookie" not in answer.headers
    bodies: list[Any] = [{"token": "wrong"}, {"token": None}, {"token": "\ud800"}, {}, [], "x"]
    for body in bodies:
        assert failed(stage.client.post("/api/login", json=body, headers=HERE), 403)
    assert "Set-Cookie" not in stage.client.post("/api/login", json={"token": "wrong"}, headers=HERE).headers


@pytest.mark.parametrize("place", sorted(set(PLACES) - OURS))
def test_another_site_cannot_log_anybody_in(stage: Door, place: str) -> None:
    answer = stage.client.post("/api/login", json={"token": TOKEN}, headers=PLACES[place])
    assert failed(answer, 403)
    assert "Set-Cookie" not in answer.headers


def forged(stage: Door, session: str) -> bool:
    """Whether somebody with this cookie is let in."""
    stage.client.set_cookie("fadelab", session)
    return bool(stage.state()["authorised"])


def test_sessions_cannot_be_made_up(stage: Door) -> None:
    session = Guard(TOKEN, ()).make_session()
    expires, _, signature = session.partition(".")
    assert forged(stage, session)
    later = str(int(expires) + 1)
    for other in (
        f"{later}.{signature}",
        f".{signature}",
        f"{expires}.{signature}0",
        f"{expires}.",
        expires,
        ".",
        "",
        "².",
    ):
        assert not forged(stage, other)
    assert not forged(stage, Guard("another long token", ()).make_session())


def test_sessions_end(stage: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.auth.SESSION_S", -1)
    assert not forged(stage, Guard(TOKEN, ()).make_session())


def test_sessions_of_several_dashboards_on_one_host_do_not_mix(stage: Door) -> None:
    answer = stage.client.post(
        "/api/login", json={"token": TOKEN}, headers={"Host": "localhost:8001", "Origin": "http://localhost:8001"}
    )
    assert answer.headers["Set-Cookie"].startswith("fadelab-8001=")


@pytest.mark.parametrize("token", ["", "hunter2", "x" * 15])
def test_a_token_that_could_be_guessed_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match=f"has {len(token)} characters: give it 16"):
        Guard(token, ())


# -- guessing -------------------------------------------------------------------------------------------------------


def test_guesses_are_told_to_wait_and_the_token_opens(stage: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    session = stage.app.test_client()
    assert session.post("/api/login", json={"token": TOKEN}, headers=HERE).status_code == 200

    def guess(token: str, address: str = "127.0.0.1") -> int:
        body, environ = {"token": token}, {"REMOTE_ADDR": address}
        return stage.client.post("/api/login", json=body, headers=HERE, environ_base=environ).status_code

    assert [guess("wrong") for _ in range(11)] == [403] * 10 + [429]
    # behind a proxy, who has the token may have the address of who has not
    assert guess(TOKEN) == 200
    assert stage.app.test_client().get(f"/?token={TOKEN}").status_code == 303
    assert guess("wrong") == 429
    # others are not kept out, nor who is in already
    assert guess("wrong", "192.168.1.7") == 403
    assert session.post("/api/runs/live-run/stop", json={}, headers=HERE).status_code == 200
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 61)
    assert guess("wrong") == 403


def test_behind_known_proxies_each_client_has_its_own_guesses(tmp_path: Path) -> None:
    """X-Forwarded-For: each proxy appends its client's address, so that with two the last but one is the user's."""
    stage = Door(tmp_path, proxies=2)

    def guess(forwarded: str) -> int:
        headers = {**HERE, "X-Forwarded-For": forwarded}
        return stage.client.post("/api/login", json={"token": "wrong"}, headers=headers).status_code

    # what a client writes itself comes first, and does not make it another one
    assert [guess(f"10.9.9.{number}, 192.0.2.1, 10.0.0.2") for number in range(11)] == [403] * 10 + [429]
    assert guess("192.0.2.7, 10.0.0.2") == 403


def test_without_proxies_nobody_says_who_he_is(stage: Door) -> None:
    def guess(forwarded: str) -> int:
        headers = {**HERE, "X-Forwarded-For": forwarded}
        return stage.client.post("/api/login", json={"token": "wrong"}, headers=headers).status_code

    assert [guess(f"192.0.2.{number}") for number in range(11)] == [403] * 10 + [429]


@pytest.mark.parametrize(("proxies", "secure"), [(0, False), (1, True)])
def test_a_session_that_came_over_tls_stays_there(tmp_path: Path, proxies: int, secure: bool) -> None:
    headers = {"Host": "localhost", "Origin": "https://localhost", "X-Forwarded-Proto": "https"}
    answer = Door(tmp_path, proxies=proxies).client.post("/api/login", json={"token": TOKEN}, headers=headers)
    assert answer.status_code == 200
    assert ("Secure" in answer.headers["Set-Cookie"].split("; ")) is secure


def test_guesses_from_everywhere_fill_no_memory() -> None:
    guard = Guard(TOKEN, ())
    for number in range(3000):
        assert not guard.token_holds("wrong", f"10.0.{number // 256}.{number % 256}")
    assert len(guard._wrong) <= 1024


# -- headers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/api/state", "/api/nothing", "/static/nothing.js", "/?token=wrong", *READS])
def test_every_answer_is_hardened(stage: Door, path: str) -> None:
    headers = stage.client.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "*" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "Access-Control-Allow-Origin" not in headers
    if path.startswith("/api/"):
        assert headers["Cache-Control"] == "no-store"
