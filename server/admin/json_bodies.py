"""JSON in and out: strict about what comes in, cheap about what goes out."""

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
    """A body in camelCase, in which no unknown field may stand."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class _StrictRequest(Request):
    """A request whose body must be JSON as the RFC has it: UTF-8, no NaN, no half characters, not too deep."""

    async def json(self) -> Any:
        """The body's tree. ProblemError."""
        if not hasattr(self, "_tree"):
            self._tree = read_json(await self.body())
        return self._tree


class StrictRoute(APIRoute):
    """A route that reads its body by `read_json`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What serves a request of this route."""
        handler = super().get_route_handler()

        async def serve(request: Request) -> Response:
            return await handler(_StrictRequest(request.scope, request.receive))

        return serve


def read_json(body: bytes) -> Any:
    """The tree of a JSON text. ProblemError 400."""
    try:
        tree = json.loads(body.decode(), parse_constant=_no_constant)
        if b"\\u" in body:
            json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ProblemError(400, "the body is not JSON: half of a surrogate pair stands alone", pointer="#") from None
    except RecursionError:
        raise ProblemError(400, "the body is nested too deep", pointer="#") from None
    except ValueError as error:
        raise ProblemError(400, f"the body is not JSON: {error}", pointer="#") from None
    return tree


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def compact(tree: Any) -> str:
    """A tree as JSON text without spaces."""
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False)


def json_response(request: Request | None, tree: Any) -> Response:
    """An answer that costs a client who has it already, and says so by If-None-Match, next to nothing to read."""
    body = compact(tree).encode()
    return tagged(request, hashlib.blake2b(body, digest_size=9).hexdigest(), body)


def tagged(request: Request | None, tag: str, body: bytes | None) -> Response:
    """`body` with an ETag, or 304 for who has it."""
    etag = f'W/"{tag}"'
    if request and etag in [each.strip() for each in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers={"etag": etag})
    return Response(body, headers={"etag": etag}, media_type="application/json")


async def in_turns(texts: Iterable[str], turn: int = 200) -> AsyncIterator[bytes]:
    """Texts as chunks of a body; between them the controller gets its turn."""
    pending: Iterator[str] = iter(texts)
    while chunk := "".join(islice(pending, turn)):
        yield chunk.encode()
        await asyncio.sleep(0)
