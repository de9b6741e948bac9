"""The text of uuids, as Kafka's `Uuid` writes and reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.wire import uuids

from ..rows import each_row


def test_the_text_is_kafkas() -> None:
    assert uuids.text_of(bytes(15) + b"\x01") == "AAAAAAAAAAAAAAAAAAAAAQ"


@given(st.binary(min_size=16, max_size=16))
def test_the_text_reads_back_with_and_without_padding(uuid: bytes) -> None:
    text = uuids.text_of(uuid)
    assert uuids.read_text(text) == uuids.read_text(f"{text}==") == uuid


@each_row("text", ["", "A", "AAAAAAAAAAAAAAAAAAAAA", "A" * 32, "AAAAAAAAAAAAAAAAAAAA!Q", "é" * 22])
def test_refuses_malformed_uuids(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (base64's own text or ours)
        uuids.read_text(text)
