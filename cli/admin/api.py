"""The admin API as the command line asks it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from socket import SHUT_RDWR
from threading import Timer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from mockraft.files.given_files import SMALL_BYTES_MAX, SNAPSHOT_BYTES_MAX
from mockraft.files.trees import TreeError, json_tree

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json

ANSWER_S = 30.0


class RefusedError(Exception):
    """A refusal by the API; the text is its problem detail, each wrong field on a line of its own."""


class UnreachableError(Exception):
    """Nothing answered, or not mockraft."""


class AdminClient:
    """An admin API at a URL; raises RefusedError and UnreachableError.

    An answer has `ANSWER_S` in all, however slowly its bytes come.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str, **query: object) -> Any:
        """The JSON at a path; parameters that are None or empty are left out."""
        return self._tree(self.read("GET", path, query=query))

    def send(self, method: str, path: str, body: Json = None) -> Any:
        """Send a JSON body and return the response; None for an empty one."""
        data = None if body is None else json.dumps(body).encode()
        return self._tree(self.read(method, path, data, {"content-type": "application/json"} if data else {}))

    def read(
        self,
        method: str,
        path: str,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, object] | None = None,
    ) -> bytes:
        """The bytes that it answers."""
        with self._answer(method, path, data, headers or {}, query or {}) as answer:
            found = answer.read(SNAPSHOT_BYTES_MAX)
            if answer.length:
                raise IncompleteRead(found, answer.length)
            return found

    def events(self, path: str, **query: object) -> Iterator[Any]:
        """The data of server-sent events as they come, until the server ends."""
        with self._answer("GET", path, None, {}, query, answer_s=None) as answer:
            try:
                for line in answer:
                    if line.startswith(b"data:"):
                        yield self._tree(line[5:])
            except (OSError, HTTPException):
                return  # the controller ended

    @contextmanager
    def _answer(
        self,
        method: str,
        path: str,
        data: bytes | None,
        headers: Mapping[str, str],
        query: Mapping[str, object],
        answer_s: float | None = ANSWER_S,
    ) -> Iterator[HTTPResponse]:
        """Send a request and yield the answer. UnreachableError, RefusedError."""
        given = {name: value for name, value in query.items() if value not in (None, "", [])}
        with ExitStack() as ended:
            try:
                connection, prefix = _connect(self.url)
                ended.callback(connection.close)
                connection.sock.settimeout(answer_s)
                if answer_s is not None:
                    too_late = Timer(answer_s, connection.sock.shutdown, [SHUT_RDWR])
                    too_late.start()
                    ended.callback(too_late.cancel)
                target = prefix + path + ("?" + urlencode(given, doseq=True) if given else "")
                connection.request(method, target, data, {**self._headers, **headers})
                answer = connection.getresponse()
            except (OSError, ValueError, HTTPException) as error:
                raise self._unreachable(error) from None
            if answer.status >= 300:
                raise self._refused(answer)
            try:
                yield answer
            except (OSError, HTTPException) as error:
                raise UnreachableError(f"{self.url} ended within its answer ({error})") from None

    def _tree(self, data: bytes) -> Any:
        try:
            return json_tree(data) if data else None
        except TreeError as error:
            raise UnreachableError(f"{self.url} answers what is {error}: is that mockraft's admin API?") from None

    def _unreachable(self, error: Exception) -> UnreachableError:
        about = " ".join(str(getattr(error, "strerror", None) or error).split())
        return UnreachableError(
            f"nothing answers at {self.url} ({about}).\n"
            "Start a controller with an admin API:  mockraft serve --admin-port 8080\n"
            "or say where there is one:             --admin URL, or MOCKRAFT_ADMIN=URL"
        )

    def _refused(self, answer: HTTPResponse) -> Exception:
        if answer.status == HTTPStatus.UNAUTHORIZED:
            return RefusedError(f"{self.url} asks for a token: --token-file FILE, or MOCKRAFT_ADMIN_TOKEN=TOKEN")
        try:
            problem = json_tree(answer.read(SMALL_BYTES_MAX))
            lines = [problem["detail"]]
            for error in problem.get("errors", ()):
                where = error.get("pointer") or error.get("parameter")
                if error["detail"] not in problem["detail"] and where:
                    lines.append(f"  {where}: {error['detail']}")
            return RefusedError("\n".join(lines))
        except (ValueError, LookupError, TypeError, AttributeError):
            about = f"{answer.status} {answer.reason}"
            return UnreachableError(f"{self.url} answers {about}: is that mockraft's admin API?")


def _connect(url: str) -> tuple[HTTPConnection, str]:
    """Return an open connection, and the path of the URL. No proxy: the API is here, or in the test's own network."""
    parts = urlsplit(url)
    kinds = {"http": HTTPConnection, "https": HTTPSConnection}
    if parts.scheme not in kinds or not parts.hostname:
        raise ValueError("no URL such as http://127.0.0.1:8080")
    connection = kinds[parts.scheme](parts.hostname, parts.port, timeout=ANSWER_S)
    connection.connect()
    return connection, parts.path
