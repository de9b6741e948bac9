"""What all generated classes have in common."""

from __future__ import annotations

from mockraft.wire.errors import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import ClassVar, TypeVar

    S = TypeVar("S", bound="Struct")


class Struct:
    """A group of fields: compares by value, shows its fields, keeps the tagged fields that its schema does not know."""

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
        parts = [f"{name}={getattr(self, name)!r}" for name in field_names(self.__class__)]
        if self.unknown_tagged_fields:
            parts.append(f"unknown_tagged_fields={self.unknown_tagged_fields!r}")
        return f"{self.__class__.__name__}({', '.join(parts)})"


class Message(Struct):
    """A message of the protocol, a metadata record or a control record: one class for all its versions."""

    __slots__ = ()

    api_key: ClassVar[int]
    """The API's or the record type's number; -1 where there is none."""
    min_version: ClassVar[int]
    max_version: ClassVar[int]
    flexible_from: ClassVar[int]
    """The first version with compact lengths and tagged fields; `max_version + 1` when none has."""
    latest_version_unstable: ClassVar[bool] = False
    """Whether Kafka itself does not offer `max_version` by default."""

    if TYPE_CHECKING:  # every generated class has its own

        @staticmethod
        def read(data: bytes, version: int) -> Message:
            """The message that `data` is, all of it; WireError otherwise."""

        @staticmethod
        def read_from(data: bytes, version: int, offset: int) -> tuple[Message, int]:
            """The message that starts at `offset`, and the offset after it; WireError otherwise."""

        def write(self, version: int) -> bytes:
            """The bytes in a version; WireError when a value, or a field that cannot be ignored, does not fit."""


def field_names(cls: type[Struct]) -> tuple[str, ...]:
    """The Python names of a class's fields in the schema's order."""
    return with_constructor(cls).__slots__


def with_constructor(cls: type[Struct]) -> type[Struct]:
    """The class itself of one that readers instantiate (see `decoded`)."""
    return cls.__mro__[1] if cls.__qualname__[0] == "_" else cls


def decoded(cls: type[S]) -> type[S]:
    """The twin of a class that readers instantiate: without a constructor, because they set every field themselves.

    It costs a call less per object, which is most of the price of a small struct.
    """
    name = cls.__name__
    body = {
        "__slots__": (),
        "__init__": object.__init__,
        "__module__": cls.__module__,
        "__qualname__": "_" + name,
    }
    return type(name, (cls,), body)


def unreadable(cls: type[Message], version: int, error: Exception) -> WireError:
    """The WireError for whatever a generated reader ran into."""
    if not cls.min_version <= version <= cls.max_version:
        return _no_version(cls, version)
    if isinstance(error, WireError):
        return WireError(f"{cls.__name__} v{version}: {error.what}", field=error.field, offset=error.offset)
    if isinstance(error, UnicodeDecodeError):
        return WireError(f"{cls.__name__} v{version}: a string is not UTF-8: {error.reason}", offset=_offset(error))
    return WireError(f"{cls.__name__} v{version}: the bytes end too soon", offset=_offset(error))


def _offset(error: Exception) -> int | None:
    """The offset a generated reader was at: its local variable `o`."""
    trace = error.__traceback__
    offset = None
    while trace is not None:
        offset = trace.tb_frame.f_locals.get("o", offset)
        trace = trace.tb_next
    return offset


def wrong_end(cls: type[Message], version: int, end: int, size: int) -> WireError:
    """The refusal of a message that ends before or after its bytes do."""
    if end > size:
        return WireError(f"{cls.__name__} v{version}: the bytes end {end - size} too soon", offset=size)
    return WireError(f"{cls.__name__} v{version}: {size - end} bytes too many", offset=end)


def unwritable(cls: type[Message], version: int, error: Exception) -> WireError:
    """The WireError for whatever a generated writer ran into."""
    if not cls.min_version <= version <= cls.max_version:
        return _no_version(cls, version)
    if isinstance(error, WireError):
        return WireError(f"{cls.__name__} v{version}: {error.what}", field=error.field)
    unnamed = WireError(f"{cls.__name__} v{version}: a value does not fit its field: {error}")
    return _misfit(cls, version, error) or unnamed


def _misfit(cls: type[Message], version: int, error: Exception) -> WireError | None:
    """What the JSON form, which names fields, says of the message: a generated writer's local variable `m`."""
    from mockraft.wire.json_form import from_json, to_json

    trace = error.__traceback__
    while trace is not None:
        message = trace.tb_frame.f_locals.get("m")
        if isinstance(message, Message):
            try:
                from_json(cls, to_json(message, version), version)
            except WireError as refusal:
                return refusal if refusal.field else None
        trace = trace.tb_next
    return None


def _no_version(cls: type[Message], version: int) -> WireError:
    return WireError(f"{cls.__name__} has versions {cls.min_version} to {cls.max_version}, not {version}")
