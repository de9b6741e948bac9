"""The classes generated from schemas."""

import pytest

from .conftest import ID, NAME, MessageOf

TOPIC = {"name": "Topics", "type": "[]Topic", "fields": [NAME]}
LEADER = {
    "name": "Leader",
    "type": "Leader",
    "fields": [{"name": "Id", "type": "int32", "versions": "0+", "default": -1}],
}


class TestEmittedClass:
    def test_never_shares_a_list_or_a_struct(self, message_of: MessageOf) -> None:
        cls = message_of(TOPIC, LEADER)
        assert cls().topics is not cls().topics
        assert cls().leader is not cls().leader

    def test_takes_none_as_a_value_not_as_the_default(self, message_of: MessageOf) -> None:
        cls = message_of(TOPIC | {"nullableVersions": "0+"})
        assert (cls(topics=None).topics, cls().topics) == (None, [])

    def test_takes_its_fields_by_name_only(self, message_of: MessageOf) -> None:
        cls = message_of(ID)
        assert cls(id=3).id == 3
        for wrong in (lambda: cls(3), lambda: cls(idd=3), lambda: hash(cls())):
            with pytest.raises(TypeError):
                wrong()
        with pytest.raises(AttributeError):
            cls().other = 1

    def test_compares_by_value_whether_made_or_read(self, message_of: MessageOf) -> None:
        cls = message_of(ID, TOPIC, flexibleVersions="0+")
        made = cls(id=3)
        read = cls.read(made.write(0), 0)
        assert made == read
        assert isinstance(read, cls)
        assert made != cls(id=4)
        assert made != cls(id=3, unknown_tagged_fields=[(9, b"x")])
        assert made != (3, [])
        assert message_of(ID)() != message_of(ID)()

    def test_shows_its_fields(self, message_of: MessageOf) -> None:
        cls = message_of(ID, LEADER)
        shown = "TestRequest(id=3, leader=Leader(id=-1))"
        assert repr(cls(id=3)) == repr(cls.read(cls(id=3).write(0), 0)) == shown
        assert repr(cls(unknown_tagged_fields=[(1, b"")])).endswith("unknown_tagged_fields=[(1, b'')])")

    def test_escapes_quotes_in_schema_texts(self, message_of: MessageOf) -> None:
        about = 'the "name",\n"""\\ or so: ' + "long " * 40
        cls = message_of(TOPIC | {"about": about}, ID | {"about": about})
        assert cls().topics == []
