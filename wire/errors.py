"""Errors for malformed bytes, for requests refused with one of Kafka's error codes, and of connections."""

from __future__ import annotations

from mockraft.wire.message import WireError as WireError  # defined there: each module costs time to import


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


class AuthenticationFailedError(DisconnectedError):
    """Authentication failed; the text is the server's. Kafka's brokers retry after it."""


class UnsupportedVersionError(ValueError):
    """The server does not offer the API, or no version of it that mockraft supports."""
