"""Errors of the admin API: RFC 9457 problems that name the field."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from mockraft.server.controller.log.data_dir import StorageError
from mockraft.server.running import NothingRunsError
from mockraft.wire.names import did_you_mean
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException as StarletteHTTPException

MEDIA_TYPE = "application/problem+json"

_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}
"""Titles of RFC 9110, which older Pythons do not have."""


_PATH = re.compile(r"(\w+(?:\[\d+\]|\.\w+)*)(=|: )")


class FieldError(BaseModel):
    """One error and its place."""

    model_config = ConfigDict(extra="forbid")

    detail: str = Field(description="The error, and how to correct it.")
    pointer: str | None = Field(
        default=None, description="JSON pointer into the body that was sent.", examples=["#/match/api"]
    )
    parameter: str | None = Field(
        default=None, description="Name of the query or path parameter.", examples=["afterId"]
    )


class Problem(BaseModel):
    """Why a request was refused (RFC 9457)."""

    model_config = ConfigDict(extra="forbid")

    type: str = Field(default="about:blank", description="Always about:blank: the status identifies the kind.")
    title: str = Field(description="The status in words.", examples=["Unprocessable Content"])
    status: int = Field(description="The HTTP status.", examples=[422])
    detail: str = Field(description="The error, and how to correct it.")
    errors: list[FieldError] = Field(default=[], description="The invalid fields.")


class ProblemError(HTTPException):
    """A refusal. `pointer` is a JSON pointer into the body, `parameter` the name of a query or path parameter."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        pointer: str | None = None,
        parameter: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(status, detail, headers)
        is_of_field = pointer is not None or parameter is not None
        self.errors = [FieldError(detail=detail, pointer=pointer, parameter=parameter)] if is_of_field else []


def problem_response(
    status: int, detail: str, errors: Sequence[FieldError] = (), headers: dict[str, str] | None = None
) -> JSONResponse:
    """Return a problem document (RFC 9457) with the usual title of its status."""
    problem = Problem(
        title=_TITLES.get(status) or HTTPStatus(status).phrase, status=status, detail=detail, errors=list(errors)
    )
    return JSONResponse(problem.model_dump(exclude_none=True), status, headers, MEDIA_TYPE)


def pointer_of(path: str | None, prefix: Sequence[str | int]) -> str:
    """Return a JSON pointer for a field's path in mockraft's errors (`actions[0].delayOn.ms`)."""
    parts = [part for part in re.split(r"\.|\[|\]", path or "") if part]
    return "#" + "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in (*prefix, *parts))


@contextlib.contextmanager
def field_named(*prefix: str | int) -> Iterator[None]:
    """Turn a ValueError of a reader into a 422; its `field`, or the beginning of its text, gives the place."""
    try:
        yield
    except ValueError as error:
        path = getattr(error, "field", None) or _path_in(str(error))
        raise ProblemError(422, str(error), pointer=pointer_of(path, prefix)) from error


@contextlib.contextmanager
def commanding() -> Iterator[None]:
    """Turn a command that the current state does not allow into a 409."""
    try:
        yield
    except (ValueError, RuntimeError) as error:
        raise ProblemError(409, str(error)) from error


@contextlib.contextmanager
def known(parameter: str) -> Iterator[None]:
    """Turn the KeyError of a look-up into a 404 that names the parameter."""
    try:
        yield
    except KeyError as error:
        raise ProblemError(404, str(error.args[0]), parameter=parameter) from error


def _path_in(text: str) -> str:
    """Return the path that an error's text begins with: of `plan[0]: fault.kind='x': …` it is plan[0].fault.kind."""
    path = ""
    while found := _PATH.match(text):
        path, text = f"{path}.{found[1]}", text[found.end() :]
        if found[2] == "=":
            break
    return path


REFUSALS = {
    400: "The body is not JSON.",
    401: "The bearer token is missing or wrong.",
    403: "The request comes from another site, or its Host is not this machine.",
    404: "Not found.",
    408: "The body did not arrive in time.",
    409: "The current state does not allow it.",
    413: "The body is too long.",
    415: "The content type of the body is not supported.",
    422: "A field is invalid: `errors` names it.",
    503: "Every node of the quorum is killed, or nothing can be committed or written now.",
}
"""Statuses of refused requests, of every operation."""


def answer_problems(app: FastAPI) -> None:
    """Answer every error of the app with a problem."""

    @app.exception_handler(StarletteHTTPException)
    async def refused(request: Request, error: StarletteHTTPException) -> JSONResponse:
        headers = dict(error.headers) if error.headers else None
        detail = str(error.detail)
        if error.status_code == HTTPStatus.NOT_FOUND and not isinstance(error, ProblemError):
            paths = (await asyncio.to_thread(app.openapi))["paths"]
            detail = f"there is no {request.url.path}; {did_you_mean(request.url.path, paths)}"
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED and headers and "Allow" in headers:
            detail += f": {request.url.path} has {headers['Allow']}"
        return problem_response(error.status_code, detail, getattr(error, "errors", ()), headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        errors = [_field_error(each) for each in error.errors()]
        first = errors[0]
        more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
        return problem_response(422, f"{first.pointer or first.parameter}: {first.detail}{more}", errors)

    @app.exception_handler(NothingRunsError)
    @app.exception_handler(StorageError)
    async def unavailable(_: Request, error: NothingRunsError | StorageError) -> JSONResponse:
        return problem_response(503, str(error))

    @app.exception_handler(Exception)
    async def broke(_: Request, error: Exception) -> JSONResponse:
        return problem_response(500, f"internal error: {type(error).__name__}: {error}")


def _field_error(error: ErrorDetails) -> FieldError:
    place, *path = error["loc"]
    if place != "body":
        return FieldError(detail=error["msg"], parameter=str(path[0]) if path else str(place))
    return FieldError(detail=error["msg"], pointer=pointer_of(None, path))
