"""Errors for malformed bytes, for requests refused with one of Kafka's error codes, and of connections."""

from __future__ import annotations


class WireError(ValueError):
    """Malformed bytes, or a value that cannot be encoded in a version of a message.

    `field` is the schema's name of the field and `offset` the position in the bytes, each None if unknown. `kind` is
    the reason by which a server's journal counts the connections that it closes for such an error.
    """

    kind = "request"

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
    """A request refused with one of Kafka's error codes and without effect. Each API has its own error response."""

    def __init__(self, error_code: int, message: str | None = None) -> None:
        super().__init__(error_code, message)
        self.error_code = error_code
        self.message = message

    def kept(self) -> ApiError:
        """Return it without its traceback, which holds the variables of every function that it passed.

        For a result with thousands of refusals, of which the variables would take most of the memory.
        """
        return self.with_traceback(None)


class DisconnectedError(ConnectionError):
    """The connection ended before the response arrived; the request may or may not have been carried out."""


class RequestTimedOutError(DisconnectedError):
    """No response arrived in time. The connection is closed, as Kafka's client does."""


class SecurityMismatchError(DisconnectedError):
    """The other side closed a new connection, as it does if one side alone has TLS or SASL, or as the network fails."""


class AuthenticationFailedError(DisconnectedError):
    """Authentication failed, by SASL (the text is the server's) or TLS. Kafka's brokers retry after it."""


class UnsupportedVersionError(ValueError):
    """The server does not offer the API, or no version of it that mockraft supports."""


def _rebuilt(kind: type[WireError], what: str, field: str | None, offset: int | None) -> WireError:
    return kind(what, field=field, offset=offset)
