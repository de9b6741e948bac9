"""JSON bodies: strict when read, cheap when written."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from itertools import islice
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.routing import APIRoute
from mockraft.server.admin.problems import ProblemError
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Model(BaseModel):
    """Base of bodies in camelCase, without unknown fields."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class _StrictRequest(Request):
    """A request whose body must be JSON by the RFC: UTF-8, no NaN, no lone surrogates, bounded depth."""

    async def json(self) -> Any:
        """Return the body's tree. Raise ProblemError."""
        if not hasattr(self, "_tree"):
            self._tree = read_json(await self.body())
        return self._tree


class StrictRoute(APIRoute):
    """A route that reads its body with `read_json`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of this route's requests."""
        handler = super().get_route_handler()

        async def serve(request: Request) -> Response:
            return await handler(_StrictRequest(request.scope, request.receive))

        return serve


def read_json(body: bytes) -> Any:
    """Return the tree of a JSON text. Raise ProblemError 400."""
    try:
        tree = json.loads(body.decode(), parse_constant=_no_constant)
        if b"\\u" in body:
            json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ProblemError(400, "the body is not JSON: lone surrogate", pointer="#") from None
    except RecursionError:
        raise ProblemError(400, "the body is nested too deep", pointer="#") from None
    except ValueError as error:
        raise ProblemError(400, f"the body is not JSON: {error}", pointer="#") from None
    return tree


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def compact(tree: Any) -> str:
    """Return a tree as JSON text without spaces."""
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False)


def json_response(request: Request | None, tree: Any) -> Response:
    """A response that is not sent again to a client that has it and sends If-None-Match."""
    body = compact(tree).encode()
    return tagged(request, hashlib.blake2b(body, digest_size=9).hexdigest(), body)


def tagged(request: Request | None, tag: str, body: bytes | None) -> Response:
    """Return `body` with an ETag, or 304 if the client has it."""
    etag = f'W/"{tag}"'
    if request and etag in [each.strip() for each in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers={"etag": etag})
    return Response(body, headers={"etag": etag}, media_type="application/json")


async def in_turns(texts: Iterable[str], turn: int = 200) -> AsyncIterator[bytes]:
    """Yield texts as chunks of a body; between them the controller runs."""
    pending: Iterator[str] = iter(texts)
    while chunk := "".join(islice(pending, turn)):
        yield chunk.encode()
        await asyncio.sleep(0)
