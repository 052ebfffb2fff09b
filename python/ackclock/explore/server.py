"""The server of `ackclock explore`: an ASGI application on loopback, and the loop that serves it.

Every request has the token as the first step of its path, and a Host header that names this server, so that neither
another user's process nor a page from elsewhere (by DNS rebinding) gets an answer. The page loads nothing from
elsewhere, and its content security policy forbids it. No file is left.
"""

from __future__ import annotations

import json
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ackclock.engines.engine import Progress
from ackclock.errors import AckclockError, InputError, ScenarioError
from ackclock.experiments.executors import StoppedError
from ackclock.experiments.runner import run
from ackclock.explore import changes, knobs, runs
from ackclock.explore.lessons import lessons
from ackclock.figures import report
from ackclock.input.source import Source

LOOPBACK = "127.0.0.1"

PAGE = Path(__file__).parent / "page"

#: Longest body of a request, in bytes; changes in one request.
MAX_BODY, MAX_CHANGES = 256 << 10, 50

#: The latest instant that is shown packet by packet, in seconds.
MAX_INSTANT_S = 1e9

#: A request whose runs take longer is given up, in seconds: of some traffic the cost cannot be estimated beforehand.
MAX_RUN_S = 60.0

#: Pages whose latest request is remembered: of more, the runs of the oldest are given up.
MAX_PAGES = 64

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class Start:
    """The scenario that the page opens with; `file` is its path, None for a preset."""

    text: str
    file: str | None = None


class Guard:
    """Passes on requests that have the token and name this host, without the token; rejects all others."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app, self._token = app, token
        self._hosts = {f"{name}:{port}" for name in (LOOPBACK, "localhost")}
        self._origins = {None, *(f"http://{host}" for host in self._hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        _, token, *rest = scope["path"].split("/", 2) if scope["path"].count("/") > 1 else ("", "", "")
        if headers.get("host") not in self._hosts or headers.get("origin") not in self._origins:
            app: ASGIApp = _error(403, "found another host's name; expected a request to this server's own address")
        elif not secrets.compare_digest(token.encode(), self._token.encode()):
            app = _error(403, "found no token, or a wrong one; expected the address that ackclock explore printed")
        else:
            app, scope = self._app, {**scope, "path": f"/{rest[0]}", "raw_path": None}

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *own]}
            await send(message)

        await app(scope, receive, send_with_headers)


class Latest:
    """The latest request of each page and setting: a run that is not the latest any more ends."""

    def __init__(self) -> None:
        self._latest: dict[object, object] = {}

    def progress(self, key: object) -> Progress:
        """Make a request the latest of its key; return what its runs report their progress to."""
        self._latest.pop(key, None)
        self._latest[key] = mine = object()
        while len(self._latest) > MAX_PAGES:
            self._latest.pop(next(iter(self._latest)))

        end_s = time.monotonic() + MAX_RUN_S

        def check(_: float) -> None:
            if self._latest.get(key) is not mine:
                raise StoppedError
            if time.monotonic() > end_s:
                raise InputError(f"found a run of more than {MAX_RUN_S:g} s; expected a shorter or a smaller one")

        return check


def application(token: str, port: int, start: Start) -> ASGIApp:
    """Return the application for one token and port."""
    latest = Latest()

    async def opening(request: Request) -> Response:
        given = {"text": start.text, "file": start.file, "lessons": [asdict(each) for each in lessons()]}
        return JSONResponse(given)

    async def runs_(request: Request) -> Response:
        return await _checked(request, lambda asked: _run(asked, start, latest))

    async def report_(request: Request) -> Response:
        return await _checked(request, lambda asked: _report(asked, latest))

    async def packets_(request: Request) -> Response:
        return await _checked(request, lambda asked: _packets(asked, latest))

    routes = [
        Route("/start", opening),
        Route("/run", runs_, methods=["POST"]),
        Route("/packets", packets_, methods=["POST"]),
        Route("/report", report_, methods=["POST"]),
        Mount("/", StaticFiles(directory=PAGE, html=True)),
    ]
    return Guard(Starlette(routes=routes), token, port)


def _error(status: int, text: str) -> Response:
    return JSONResponse({"problems": [{"line": None, "key": "", "text": text}]}, status)


async def _checked(request: Request, respond: Any) -> Response:
    """Respond to a request with a JSON object that has a text; mistakes are sentences, with their lines."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            return _error(413, f"found a request of more than {MAX_BODY >> 10} KiB; expected a shorter scenario")
    try:
        response: Response = await run_in_threadpool(respond, _object(bytes(body)))
    except AckclockError as error:
        return JSONResponse(_problems(error), 422)
    return response


def _problems(error: AckclockError) -> dict[str, Any]:
    """Return the mistakes, each with its line in the scenario if it has one."""
    if isinstance(error, ScenarioError):
        return {"problems": [{"line": each.line, "key": each.key, "text": str(each)} for each in error.problems]}
    return {"problems": [{"line": None, "key": "", "text": str(error)}]}


def _object(body: bytes) -> dict[str, Any]:
    """Return the object of a request's body. Raises `InputError`."""
    expected = 'expected an object with a "text", such as {"text": "duration = …", "changes": []}'
    try:
        asked = json.loads(body)
        asked["text"].encode()
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        raise InputError(f"request: found no such JSON; {expected}") from None
    listed = asked.setdefault("changes", [])
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise InputError("changes: found something else; expected a list of objects")
    if len(listed) > MAX_CHANGES:
        raise InputError(f"changes: found {len(listed)}; expected at most {MAX_CHANGES}")
    return dict(asked)


def _run(asked: Mapping[str, Any], start: Start, latest: Latest) -> Response:
    """Return the parts of a run, a line of JSON each, as soon as they are there; first the scenario as it is now.

    Mistakes come with the scenario, if its text is TOML. Raises `ScenarioError` if not.
    """
    text = changes.changed(asked["text"], asked["changes"])
    scenario = {
        "text": text,
        "knobs": knobs.knobs(Source("scenario", text).toml()),
        "command": changes.command(start.file, start.text, text),
    }
    try:
        prepared = runs.prepared(text)
    except AckclockError as error:
        return JSONResponse({**scenario, **_problems(error)}, 422)
    page, setting = (name if isinstance(name := asked.get(key), str) else "" for key in ("page", "setting"))
    progress = latest.progress((page[:40], setting[:8]))
    parts = runs.parts(prepared, progress, models=asked.get("models") is True)
    return StreamingResponse(_lines({"part": "scenario", **scenario}, parts), media_type="application/x-ndjson")


def _lines(first: dict[str, Any], parts: Iterator[dict[str, Any]]) -> Iterator[str]:
    yield json.dumps(first) + "\n"
    try:
        for part in parts:
            yield json.dumps(part, allow_nan=False) + "\n"
    except StoppedError:
        yield '{"part": "superseded"}\n'
    except AckclockError as error:
        yield json.dumps({"part": "error", "text": str(error)}) + "\n"


def _packets(asked: Mapping[str, Any], latest: Latest) -> Response:
    """Return a moment of a run packet by packet, from the instant `from` (s)."""
    given = asked.get("from")
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= MAX_INSTANT_S:
        raise InputError(f"from: found no instant; expected seconds, 0 to {MAX_INSTANT_S:g}")
    return JSONResponse(runs.moment(runs.prepared(asked["text"]).plan, float(given), latest.progress("packets")))


def _report(asked: Mapping[str, Any], latest: Latest) -> Response:
    """Return the full report of a scenario, as `ackclock run` writes it."""
    plan = runs.prepared(asked["text"]).plan
    data = run(plan, command="ackclock explore", progress=latest.progress("report"))
    return HTMLResponse(report.render([data]))


# --- the loop


class _Server(uvicorn.Server):
    """A server that leaves signals to the program: they end it where it is."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle no signal."""
        yield


def listening(port: int) -> socket.socket:
    """Return a socket that listens on loopback; port 0 is any free one. Raises `InputError` for a port in use."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen()  # who has the address may connect before the server is up
    except OSError as error:
        listener.close()
        raise InputError(
            f"--port: found {port}, which cannot be used ({error.strerror}); expected a free port"
        ) from None
    return listener


def serve(listener: socket.socket, token: str, start: Start) -> None:
    """Serve until a signal ends the program."""
    app = application(token, listener.getsockname()[1], start)
    _Server(uvicorn.Config(app, log_level="critical", lifespan="off", ws="none")).run(sockets=[listener])
