"""Base classes of all generated messages, the conversion of their readers' errors, and the choice of the codec.

`MOCKRAFT_CODEC` is `auto` (the default: the C code of the package mockraft-speed where it is installed), `pure`, or
`speed` (C, or an ImportError). The choice is made once, when the first message is imported.
"""

from __future__ import annotations

import os
import sys

from mockraft.wire.errors import WireError as WireError  # generated code takes it from here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, ClassVar, Protocol, Self, TypeVar

    S = TypeVar("S", bound="Struct")
    ResponseT = TypeVar("ResponseT")
    RequestT_co = TypeVar("RequestT_co", covariant=True)
    ResponseT_co = TypeVar("ResponseT_co", covariant=True)

    class RequestMessage(Protocol[ResponseT]):
        """A request. Generated requests declare the class of their response; it is for type checkers only."""

        response_class: ClassVar[type[ResponseT]]
        """Class of the response; at run time it is `messages.response(api_key)`."""

    class RequestClass(Protocol[RequestT_co, ResponseT_co]):
        """The class of a request, for the types of what a verification finds."""

        @property
        def response_class(self) -> type[ResponseT_co]:
            """The class of what a server answers."""

        def read(self, data: bytes, version: int) -> RequestT_co:
            """Read a body without its header. Raises WireError."""

    class MessageLookup(Protocol):
        """Lookup of message classes by name and API key: the module `wire.messages`, or an Overlay."""

        def __hash__(self) -> int: ...

        def by_name(self, name: str) -> type[Message]:
            """Return the class of a message. Raises WireError for an unknown one."""

        def request(self, api_key: int) -> type[Message]:
            """Return the request class of an API key. Raises WireError for an unknown one."""

        def response(self, api_key: int) -> type[Message]:
            """Return the response class of an API key. Raises WireError for an unknown one."""

        def request_header_version(self, api_key: int, api_version: int) -> int:
            """Return the version of the header before a request (Kafka's ApiMessageType). Raises WireError."""

        def response_header_version(self, api_key: int, api_version: int) -> int:
            """Return the version of the header before a response, 0 for every ApiVersions. Raises WireError."""


TABLE_FORMAT = 3
"""The format of the tables `_FIELDS` in generated modules; an accelerator for another one is not used."""

_PATHS = ("auto", "pure", "speed")


class Struct:
    """A group of fields: compares by value, shows its fields but no secrets in `repr`, keeps unknown tagged fields."""

    __slots__ = ("unknown_tagged_fields",)
    __hash__ = None  # type: ignore[assignment]

    unknown_tagged_fields: Sequence[tuple[int, bytes]]

    def __eq__(self, other: object) -> bool:
        kind = self.__class__.__name__
        if not isinstance(other, Struct) or other.__class__.__name__ != kind:
            return NotImplemented
        fields = field_names(self.__class__)
        if fields is not field_names(other.__class__):
            return NotImplemented
        for name in fields:
            if getattr(self, name) != getattr(other, name):
                return False
        return list(self.unknown_tagged_fields) == list(other.unknown_tagged_fields)

    def __repr__(self) -> str:
        # Imported here: nobody needs the table of secrets before a message becomes text.
        from mockraft.wire.redaction.masks import HIDDEN
        from mockraft.wire.redaction.secret_fields import is_hidden

        values = [(name, getattr(self, name)) for name in field_names(self.__class__)]
        parts = [f"{name}={HIDDEN if is_hidden(self, name, value) else repr(value)}" for name, value in values]
        if self.unknown_tagged_fields:
            parts.append(f"unknown_tagged_fields={self.unknown_tagged_fields!r}")
        return f"{self.__class__.__name__}({', '.join(parts)})"


class Message(Struct):
    """A message of the protocol, a metadata record or a control record: one class for all its versions."""

    __slots__ = ()

    api_key: ClassVar[int]
    """The API key or the record type; -1 for messages without one."""
    min_version: ClassVar[int]
    max_version: ClassVar[int]
    flexible_from: ClassVar[int]
    """The first version with compact lengths and tagged fields; `max_version + 1` if there is none."""
    latest_version_unstable: ClassVar[bool] = False
    """True if Kafka does not offer `max_version` by default."""

    if TYPE_CHECKING:  # every generated class has its own

        @classmethod
        def read(cls, data: bytes, version: int) -> Self:
            """Read a message that fills `data`. Raises WireError for malformed bytes."""

        @classmethod
        def read_from(
            cls, data: bytes, version: int, offset: int, spend: Callable[..., None] | None = None
        ) -> tuple[Self, int]:
            """Read the message that starts at `offset`; return it and the offset after it. Raises WireError.

            `spend`, if given, is called with the length of every array and tag section, and the level of some, before
            elements are made, and may raise a WireError: see `ElementBudget.spend`.
            """

        def write(self, version: int) -> bytes:
            """Encode in a version. Raises WireError if a value does not fit or a non-ignorable field would be lost."""


def field_names(cls: type[Struct]) -> tuple[str, ...]:
    """Return the Python names of a class's fields in the schema's order."""
    return with_constructor(cls).__slots__


def item_class(cls: type[Struct], field: str) -> type[Struct]:
    """Return the class of the items of a list that a generated class has."""
    module = vars(sys.modules[cls.__module__])
    kind = next(kind for name, kind, *_ in dict(module["_FIELDS"])[cls.__name__] if name == field)
    found: type[Struct] = module[kind.removeprefix("[]")]
    return found


def with_constructor(cls: type[Struct]) -> type[Struct]:
    """Return the public class for a class made by `decoded`, and any other class unchanged."""
    return cls.__mro__[1] if cls.__qualname__[0] == "_" else cls


def decoded(cls: type[S]) -> type[S]:
    """Return a subclass without a constructor for readers, which set every field themselves.

    This saves one call per object, which is most of the cost of a small struct.
    """
    name = cls.__name__
    body = {"__slots__": (), "__init__": object.__init__, "__module__": cls.__module__, "__qualname__": "_" + name}
    return type(name, (cls,), body)


def unreadable(cls: type[Message], version: int, error: Exception) -> WireError:
    """Convert the exception of a generated reader to a WireError."""
    if not cls.min_version <= version <= cls.max_version:
        return _no_version(cls, version)
    if isinstance(error, WireError):
        return WireError(f"{cls.__name__} v{version}: {error.what}", field=error.field, offset=error.offset)
    if isinstance(error, UnicodeDecodeError):
        return WireError(f"{cls.__name__} v{version}: a string is not UTF-8: {error.reason}", offset=_local("o", error))
    # The reader's own offset is the start of a run of fields, any of which may be the one that is cut.
    return WireError(f"{cls.__name__} v{version}: the bytes end too soon", offset=len(_local("d", error)))


def _local(name: str, error: Exception) -> Any:
    """Find a local variable of the innermost generated reader: the offset `o` that it had reached, the bytes `d`."""
    trace = error.__traceback__
    value = None
    while trace is not None:
        value = trace.tb_frame.f_locals.get(name, value)
        trace = trace.tb_next
    return value


def unwritable(cls: type[Message], version: int, error: Exception) -> WireError:
    """Convert the exception of a generated writer to a WireError."""
    if not cls.min_version <= version <= cls.max_version:
        return _no_version(cls, version)
    if isinstance(error, WireError):
        return WireError(f"{cls.__name__} v{version}: {error.what}", field=error.field)
    unnamed = WireError(f"{cls.__name__} v{version}: a value does not fit its field: {error}")
    return _misfit(cls, version, error) or unnamed


def _misfit(cls: type[Message], version: int, error: Exception) -> WireError | None:
    """Find the field by the JSON form, which names fields; the message is the writer's variable `m`."""
    from mockraft.wire.json_form import from_json, to_json

    trace = error.__traceback__
    while trace is not None:
        message = trace.tb_frame.f_locals.get("m")
        if isinstance(message, Message):
            try:
                from_json(cls, to_json(message, version), version)
            except WireError as refusal:
                return refusal if refusal.field else None
            except (TypeError, ValueError):  # unknown tagged fields that are no pairs
                return None
        trace = trace.tb_next
    return None


def _no_version(cls: type[Message], version: int) -> WireError:
    return WireError(f"{cls.__name__} has versions {cls.min_version} to {cls.max_version}, not {version}")


def _accelerator() -> Callable[[Any, Any], None] | None:
    wanted = os.environ.get("MOCKRAFT_CODEC") or "auto"
    if wanted not in _PATHS:
        raise ValueError(f"MOCKRAFT_CODEC={wanted}: want one of {', '.join(_PATHS)}")
    if wanted == "pure":
        return None
    try:
        import mockraft_speed
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "mockraft_speed":
            if wanted == "auto":
                return None
            fault = "mockraft-speed is not installed: pip install 'mockraft[speed]' (in a clone: pip install ./speed)"
        else:
            fault = f"mockraft-speed cannot be used ({error}): install it again"
    else:
        if mockraft_speed.TABLE_FORMAT == TABLE_FORMAT:
            return mockraft_speed.accelerate
        fault = f"mockraft-speed {mockraft_speed.__version__} is for another mockraft: install both in one version"
    if wanted == "speed":
        raise ImportError(f"MOCKRAFT_CODEC=speed: {fault}")
    import warnings

    warnings.warn(f"{fault}; until then the codec runs in pure Python", RuntimeWarning, stacklevel=2)
    return None


accelerate = _accelerator()
"""Called at the end of each generated module with its `_FIELDS` and its namespace; None on the pure path."""
