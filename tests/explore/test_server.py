"""The server: who gets an answer, what is served, and how it ends."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from ackclock.errors import InputError
from ackclock.experiments.executors import StoppedError
from ackclock.explore import server
from ackclock.explore.lessons import lessons

TOKEN, PORT = "a-token", 8123
TEXT = lessons()[0].scenario


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problems(self) -> list[dict[str, Any]]:
        return json.loads(self.body)["problems"]

    @property
    def parts(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.body.splitlines()]


@pytest.fixture(scope="module")
def app() -> Any:
    return server.application(TOKEN, PORT, server.Start(TEXT, "mine.toml"))


def call(app: Any, path: str, body: object = None, host: str = f"127.0.0.1:{PORT}", **headers: str) -> Reply:
    """Send one request to the application, a POST if it has a body."""
    sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    messages: list[Any] = []
    pieces = iter([{"type": "http.request", "body": sent, "more_body": False}])

    async def receive() -> Any:
        return next(pieces, None) or await asyncio.sleep(3600)

    async def send(message: Any) -> None:
        messages.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET" if body is None else "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", host.encode()), *((name.encode(), value.encode()) for name, value in headers.items())],
        "server": ("127.0.0.1", PORT),
        "client": ("127.0.0.1", 50000),
    }
    asyncio.run(app(scope, receive, send))
    start = messages[0]
    found = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return Reply(start["status"], found, b"".join(message.get("body", b"") for message in messages[1:]))


def post(app: Any, path: str, **body: object) -> Reply:
    return call(app, f"/{TOKEN}/{path}", {"text": TEXT, **body})


@pytest.mark.parametrize("path", ["", "start", "main.js", "page.css", "uPlot.iife.min.js", "uPlot-LICENSE.txt"])
def test_what_the_page_consists_of_is_served(app, path):
    found = call(app, f"/{TOKEN}/{path}")
    assert found.status == 200
    assert found.body


@pytest.mark.parametrize("path", ["", "start", "main.js", "run", "report"])
@pytest.mark.parametrize("token", ["", "/", "/other", f"/{TOKEN}x", f"/{TOKEN[:-1]}", "/ä"])
def test_without_the_token_nothing_is_served(app, path, token):
    for body in (None, {"text": TEXT}):
        found = call(app, f"{token}/{path}", body)
        assert found.status == 403
        assert "token" in found.problems[0]["text"]


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:80", "", f"[::1]:{PORT}"]
)
def test_another_host_is_rejected(app, host):
    """DNS rebinding: the browser sends the attacker's name."""
    assert call(app, f"/{TOKEN}/start", host=host).status == 403


def test_this_host_has_two_names(app):
    assert call(app, f"/{TOKEN}/start", host=f"localhost:{PORT}").status == 200


def test_a_page_of_another_origin_is_rejected(app):
    assert call(app, f"/{TOKEN}/run", {"text": TEXT}, origin="https://evil.example").status == 403
    assert call(app, f"/{TOKEN}/run", {"text": TEXT}, origin="null").status == 403
    assert call(app, f"/{TOKEN}/run", {"text": TEXT}, origin=f"http://127.0.0.1:{PORT}").status == 200


@pytest.mark.parametrize("path", [f"/{TOKEN}/", f"/{TOKEN}/start", "/wrong/start", f"/{TOKEN}/nothing"])
def test_every_response_has_the_security_headers(app, path):
    headers = call(app, path).headers
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["../server.py", "..%2fserver.py", "../../errors.py", "//etc/passwd", "lessons"])
def test_nothing_else_is_served(app, path):
    assert call(app, f"/{TOKEN}/{path}").status == 404


def test_a_run_is_streamed_in_parts(app):
    found = post(app, "run", changes=[{"key": "network.rate", "value": "30Mbit"}])
    assert found.status == 200
    scenario, *pictures, numbers = found.parts
    assert scenario["text"] == TEXT.replace("20Mbit", "30Mbit")
    assert scenario["command"].startswith("ackclock run mine.toml --set network.rate=30Mbit")
    assert {knob["key"] for knob in scenario["knobs"]} >= {"network.rate", "network.rtt", "flows[0].count"}
    assert [part["part"] for part in pictures] == ["picture"] * len(pictures)
    assert numbers["part"] == "numbers"


def test_the_same_request_has_the_same_response(app):
    assert post(app, "run", models=True).body == post(app, "run", models=True).body


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = [", 1),
        (TEXT.replace("20Mbit", "20mbps"), 7),
        (TEXT.replace('congestion = "cubic"', 'congestion = "cubik"'), 12),
        (TEXT + 'colour = "red"\n', 13),
        (TEXT.replace("20Mbit", "10Tbit"), None),
    ],
)
def test_mistakes_have_their_lines(app, text, line):
    found = post(app, "run", text=text)
    assert found.status == 422
    assert [problem["line"] for problem in found.problems] == [line]
    assert "; expected " in found.problems[0]["text"]
    assert ("knobs" in json.loads(found.body)) == (text != "x = [")


@pytest.mark.parametrize(
    "body",
    [b"x", b"[]", b"{}", b'{"text": 1}', b'{"text": "\\ud800"}', b"[" * 100_000, b'{"text": "", "changes": 3}'],
    ids=lambda body: body[:20].decode(),
)
def test_a_malformed_request_is_an_error_of_one_line(app, body):
    found = call(app, f"/{TOKEN}/run", body)
    assert found.status == 422
    assert "\n" not in found.problems[0]["text"]


def test_a_long_body_is_rejected(app):
    assert post(app, "run", text="#" * server.MAX_BODY).status == 413
    assert post(app, "run", changes=[{"key": "duration", "value": "5s"}] * (server.MAX_CHANGES + 1)).status == 422


def test_the_report_is_that_of_a_run(app):
    found = post(app, "report")
    assert found.status == 200
    assert b"<!doctype html>" in found.body[:200].lower()
    assert post(app, "report", text=TEXT.replace("20Mbit", "10Tbit")).status == 422


def test_a_later_request_of_the_same_page_and_setting_ends_the_earlier():
    latest = server.Latest()
    first, other, setting_b = (latest.progress(key) for key in (("one", "a"), ("two", "a"), ("one", "b")))
    first(0.1)
    second = latest.progress(("one", "a"))
    for alive in (second, other, setting_b):
        alive(0.5)
    with pytest.raises(StoppedError):
        first(0.2)


def test_the_oldest_pages_are_forgotten():
    latest = server.Latest()
    first = latest.progress("first")
    for number in range(server.MAX_PAGES):
        latest.progress(number)
    with pytest.raises(StoppedError):
        first(0.5)


def test_a_port_in_use_is_an_error_of_one_line():
    with socket.socket() as taken:
        taken.bind((server.LOOPBACK, 0))
        taken.listen()
        with pytest.raises(InputError, match=r"--port: found \d+, which cannot be used .*; expected a free port"):
            server.listening(taken.getsockname()[1])


def test_it_listens_on_loopback_only():
    with server.listening(0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"])
def test_a_signal_ends_it_with_its_status(number, status, tmp_path):
    (tmp_path / "mine.toml").write_text(TEXT)
    command = [sys.executable, "-m", "ackclock", "explore", "mine.toml", "--no-open"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().strip()
            _, _, host, token, _ = address.split("/")
            connection = http.client.HTTPConnection(host, timeout=60)
            connection.request("GET", f"/{token}/start")
            assert json.load(connection.getresponse())["file"] == "mine.toml"
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, errors) == (status, "stopped\n")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_a_bad_scenario_file_is_rejected_before_anything_is_served(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TEXT.replace("20Mbit", "20mbps"))
    command = [sys.executable, "-m", "ackclock", "explore", str(path), "--no-open"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{path}:7: network.rate: found")


def test_a_run_that_takes_too_long_is_given_up(app, monkeypatch):
    monkeypatch.setattr(server, "MAX_RUN_S", -1.0)
    assert post(app, "run").parts[-1]["part"] == "error"
    assert "expected a shorter or a smaller one" in post(app, "run").parts[-1]["text"]


def test_a_moment_requires_an_instant(app):
    assert post(app, "packets", **{"from": 1}).status == 200
    for instant in (10**400, None, "1", True, [1], 1e9):
        assert post(app, "packets", **{"from": instant}).status == 422
