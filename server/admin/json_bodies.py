"""JSON bodies: strict when read, cheap when written."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from time import perf_counter
from typing import Annotated, Any, Final, Self, TypeVar

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from mockraft.files.trees import TreeError, json_tree
from mockraft.kafka_api.effects import Share
from mockraft.kafka_api.turns import turns_of
from mockraft.server.admin.problems import ProblemError
from mockraft.wire.names import did_you_mean
from pydantic import BaseModel, ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

Int32 = Annotated[int, Field(ge=-(1 << 31), le=(1 << 31) - 1)]
Int64 = Annotated[int, Field(le=(1 << 63) - 1)]


T = TypeVar("T")

HTTP: Final = Share(True, "HTTP", None)
"""The share of this API in the turns of its event loop."""
SLICE_S: Final = 0.004
CHUNK_LENGTH: Final = 65_536


class Model(BaseModel):
    """Base of bodies in camelCase, without unknown fields."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")

    @model_validator(mode="wrap")
    @classmethod
    def _with_similar_names(cls, value: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Read a body; the error about an unknown field names similar ones."""
        try:
            return handler(value)
        except ValidationError as wrong:
            known = [field.alias or name for name, field in cls.model_fields.items()]
            # A field that is missing may be the unknown one, whose error names it.
            given = sorted(wrong.errors(include_url=False), key=lambda each: each["type"] == "missing")
            errors = [_suggesting(each, known) for each in given]
            raise ValidationError.from_exception_data(wrong.title, errors) from None


def _suggesting(error: ErrorDetails, known: Iterable[str]) -> InitErrorDetails:
    text, path = error["msg"], error["loc"]
    if error["type"] == "extra_forbidden" and len(path) == 1:
        text = f"there is no such field; {did_you_mean(path[0], known)}"
    # A custom error's text is a template.
    kind = PydanticCustomError("field", "{text}", {"text": text})
    return InitErrorDetails(type=kind, loc=path, input=error["input"])


class _StrictRequest(Request):
    """A request whose body must be JSON by the RFC: UTF-8, no NaN, no lone surrogates, bounded depth."""

    async def json(self) -> object:
        """Return the body's tree. Raise ProblemError."""
        if not hasattr(self, "_tree"):
            self._tree = read_json(await self.body())
        return self._tree


class StrictRoute(APIRoute):
    """A route that reads its body with `read_json`, and refuses query parameters and bodies that would do nothing."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of this route's requests."""
        handler = super().get_route_handler()
        known = sorted(_query_parameters(self.dependant))
        has_body = "DELETE" not in (self.methods or ()) or self.body_field is not None

        async def serve(request: Request) -> Response:
            for name in request.query_params:
                if name not in known:
                    near = did_you_mean(name, known) if known else "this operation has none"
                    raise ProblemError(422, f"there is no query parameter {name}; {near}", parameter=name)
            if not has_body and await request.body():
                raise ProblemError(422, "this operation has no body: use its query parameters", pointer="#")
            return await handler(_StrictRequest(request.scope, request.receive))

        return serve


def _query_parameters(of: Dependant) -> set[str]:
    """Return the query parameters of an operation and of what it depends on."""
    return {each.alias for each in of.query_params}.union(*map(_query_parameters, of.dependencies))


def read_json(body: bytes) -> object:
    """Return the tree of a JSON text. Raise ProblemError 400."""
    try:
        return json_tree(body)
    except TreeError as error:
        raise ProblemError(400, f"the body, {error}" if error.line else f"the body is {error}", pointer="#") from None


def compact(tree: object) -> str:
    """Return a tree as JSON text without spaces."""
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False)


def json_text(tree: object, status: int = 200) -> Response:
    """Return a tree as a response."""
    return Response(compact(tree), status, media_type="application/json")


def json_list(head: str, trees: Iterable[object], foot: str) -> Iterator[bytes]:
    """Yield the pieces of an object with a list; `head` and `foot` are what is around its elements."""
    yield head.encode()
    comma = ""
    for tree in trees:
        yield (comma + compact(tree)).encode()
        comma = ","
    yield foot.encode()


def json_response(request: Request | None, tree: object) -> Response:
    """A response that is not sent again to a client that has it and sends If-None-Match."""
    return _tagged_by_hash(request, compact(tree).encode())


def _tagged_by_hash(request: Request | None, body: bytes) -> Response:
    return tagged(request, hashlib.blake2b(body, digest_size=9).hexdigest(), body)


def tagged(request: Request | None, tag: str, body: bytes | None) -> Response:
    """Return `body` with an ETag, or 304 if the client has it."""
    etag = f'W/"{tag}"'
    if request and etag in [each.strip() for each in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers={"etag": etag})
    return Response(body, headers={"etag": etag}, media_type="application/json")


async def in_chunks(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Yield pieces as chunks of a body, each made in a turn of its own: between them the controller runs."""
    pending = iter(pieces)
    while chunk := await in_turn(lambda: _chunk(pending)):
        yield chunk


async def listed(request: Request | None, name: str, trees: Iterable[object]) -> Response:
    """Return an object with one list, made in turns, as `json_response` does."""
    pieces = [each async for each in in_chunks(json_list(f'{{"{name}":[', trees, "]}"))]
    return await in_turn(lambda: _tagged_by_hash(request, b"".join(pieces)))


async def in_turn(work: Callable[[], T]) -> T:
    """Do some milliseconds of work when it is the turn of this API: all its requests are as one API of Kafka's."""
    return await turns_of(asyncio.get_running_loop()).run(work, HTTP)


async def next_turn() -> None:
    """Let the controller run, until it is the turn of this API."""
    await in_turn(lambda: None)


def _chunk(pieces: Iterator[bytes]) -> bytes:
    """Return the next pieces, as many as are made in some milliseconds."""
    end_s = perf_counter() + SLICE_S
    parts: list[bytes] = []
    size = 0
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size > CHUNK_LENGTH or perf_counter() > end_s:
            break
    return b"".join(parts)
