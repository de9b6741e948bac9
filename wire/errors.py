"""What is raised when bytes are not a message, and when a request is refused with one of Kafka's error codes."""

from __future__ import annotations


class WireError(ValueError):
    """Bytes that are not what they should be, or a value that a version of a message has no bytes for.

    `field` is the schema's name of the field and `offset` the place in the bytes, each None when not known.
    """

    def __init__(self, what: str, *, field: str | None = None, offset: int | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.field = field
        self.offset = offset

    def __str__(self) -> str:
        places = []
        if self.field is not None:
            places.append(f"field {self.field}")
        if self.offset is not None:
            places.append(f"offset {self.offset}")
        return f"{self.what} ({', '.join(places)})" if places else self.what

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.what, self.field, self.offset)


class ApiError(Exception):
    """A refusal with one of Kafka's error codes; nothing was done. The API puts it into its own error form."""

    def __init__(self, error_code: int, message: str | None = None) -> None:
        super().__init__(error_code, message)
        self.error_code = error_code
        self.message = message


def _rebuilt(kind: type[WireError], what: str, field: str | None, offset: int | None) -> WireError:
    return kind(what, field=field, offset=offset)
