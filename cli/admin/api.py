"""The admin API as the command line asks it."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json

ANSWER_S = 30.0


class RefusedError(Exception):
    """A refusal by the API; the text is its problem detail, each wrong field on a line of its own."""


class UnreachableError(Exception):
    """Nothing answered, or not mockraft."""


class AdminClient:
    """An admin API at a URL; raises RefusedError and UnreachableError."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        # No proxy: the API is on this machine, or in the test's own network.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(self, path: str, **query: object) -> Any:
        """The JSON at a path; parameters that are None or empty are left out."""
        return _tree(self.read("GET", path, query=query))

    def send(self, method: str, path: str, body: Json = None) -> Any:
        """Send a JSON body and return the response; None for an empty one."""
        data = None if body is None else json.dumps(body).encode()
        return _tree(self.read(method, path, data, {"content-type": "application/json"} if data else {}))

    def read(
        self,
        method: str,
        path: str,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, object] | None = None,
    ) -> bytes:
        """The bytes that it answers."""
        with self._open(method, path, data, headers, query) as answer:
            try:
                return bytes(answer.read())
            except (OSError, HTTPException) as error:
                raise UnreachableError(f"{self.url} ended within its answer ({error})") from None

    def events(self, path: str, **query: object) -> Iterator[Any]:
        """The data of server-sent events as they come, until the server ends."""
        with self._open("GET", path, None, None, query, timeout_s=None) as answer:
            try:
                for line in answer:
                    if line.startswith(b"data:"):
                        yield _tree(line[5:])
            except OSError:
                return  # the controller ended

    def _open(
        self,
        method: str,
        path: str,
        data: bytes | None,
        headers: Mapping[str, str] | None,
        query: Mapping[str, object] | None,
        timeout_s: float | None = ANSWER_S,
    ) -> Any:
        given = {name: value for name, value in (query or {}).items() if value not in (None, "", [])}
        url = self.url + path + ("?" + urllib.parse.urlencode(given, doseq=True) if given else "")
        try:
            request = urllib.request.Request(url, data, {**self._headers, **(headers or {})}, method=method)
            return self._opener.open(request, timeout=timeout_s)
        except urllib.error.HTTPError as refusal:
            with refusal:
                raise _refused(refusal, self.url) from None
        except (OSError, ValueError) as error:
            why = getattr(error, "reason", error)
            raise UnreachableError(
                f"nothing answers at {self.url} ({getattr(why, 'strerror', None) or why}).\n"
                "Start a controller with an admin API:  mockraft serve --admin-port 8080\n"
                "or say where there is one:             --admin URL, or MOCKRAFT_ADMIN=URL"
            ) from None


def _tree(data: bytes) -> Any:
    return json.loads(data) if data else None


def _refused(refusal: urllib.error.HTTPError, url: str) -> Exception:
    if refusal.code == 401:
        return RefusedError(f"{url} asks for a token: --token-file FILE, or MOCKRAFT_ADMIN_TOKEN=TOKEN")
    try:
        problem = json.loads(refusal.read())
        lines = [problem["detail"]]
    except (ValueError, KeyError, TypeError):
        return UnreachableError(f"{url} answers {refusal.code} {refusal.reason}: is that mockraft's admin API?")
    for error in problem.get("errors", ()):
        where = error.get("pointer") or error.get("parameter")
        if error["detail"] not in problem["detail"] and where:
            lines.append(f"  {where}: {error['detail']}")
    return RefusedError("\n".join(lines))
