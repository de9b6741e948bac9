"""Java's properties files as Java reads and writes them, and client properties as Kafka's tools read them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.kafka_configs import java_properties
from mockraft.kafka_configs.client_properties import read_properties, security_of
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.sasl import SaslLogin

from ..rows import each_row

BMP = st.text(st.characters(max_codepoint=0xD7FF), max_size=12)


@each_row(
    ("data", "found"),
    [
        (b"", {}),
        (b"#\n#Sun Nov 22 01:42:26 UTC 2026\nnode.id=8\nversion=1\n", {"node.id": "8", "version": "1"}),
        (b"a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        (b"a = 1 \n b:2\nc 3\nd\n! no\n  # no\n", {"a": "1 ", "b": "2", "c": "3", "d": ""}),
        (b"a=1\\\n   2\\\n3\nb=\\\\\nc=4", {"a": "123", "b": "\\", "c": "4"}),
        (b"a=1\\\n#2\n", {"a": "1#2"}),
        (b"a=1\\", {"a": "1"}),
        (b"\\", {}),
        (b"a\\=b=c\\u0041\\t\\q=", {"a=b": "cA\tq="}),
        (b"a=1\na=2", {"a": "2"}),
        (b"=x", {"": "x"}),
        (b"\x0bkey=1", {"\x0bkey": "1"}),
        (b"a=\xe9", {"a": "é"}),
        (b"\x00\xff\xfe", {"\x00\xff\xfe": ""}),
    ],
)
def test_parses_files_as_java_does(data: bytes, found: dict[str, str]) -> None:
    assert java_properties.read(data) == found


@each_row("data", [b"a=\\u00", b"\\uXYZW=1", b"a=\\u-123"])
def test_refuses_a_broken_escape(data: bytes) -> None:
    with pytest.raises(ValueError, match="Malformed"):
        java_properties.read(data)


@given(st.dictionaries(BMP, BMP))
def test_round_trips(properties: dict[str, str]) -> None:
    assert java_properties.read(java_properties.write(properties)) == properties


@given(st.binary(max_size=60))
def test_any_bytes_are_parsed_or_refused_with_a_reason(data: bytes) -> None:
    found, complaint = {}, ""
    try:
        found = java_properties.read(data)
    except ValueError as error:
        complaint = str(error)
    assert complaint in ("", r"Malformed \uxxxx encoding.")
    assert len(found) <= len(data)


def test_kafkas_client_properties_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "# as for kafka-topics --command-config\nsecurity.protocol=SASL_SSL\nssl.truststore.type=PEM\n"
        "ssl.truststore.location=/ca.pem\nsasl.mechanism=SCRAM-SHA-256\nssl.endpoint.identification.algorithm=\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        '  username="bo\\\\"b" password="a=b;c" tokenauth="true";\n'
    )
    login = SaslLogin("SCRAM-SHA-256", 'bo"b', "a=b;c", is_token=True)
    expected = ClientSecurity("SASL_SSL", Path("/ca.pem"), login=login, checks_host=False)
    assert read_properties(path) == expected
    assert "a=b;c" not in repr(expected)


BEARER = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}


def test_the_token_of_a_file_is_the_login_with_oauthbearer(tmp_path: Path) -> None:
    path = tmp_path / "a token"
    path.write_text("header.claims.signature\n")
    found = security_of({**BEARER, "sasl.oauthbearer.token.endpoint.url": path.as_uri()})
    assert found.login == SaslLogin("OAUTHBEARER", "", "header.claims.signature")


@each_row(
    ("properties", "reason"),
    [
        ({"security.protocol": "TLS"}, "it must be PLAINTEXT or SSL or"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "username"),
        ({"security.protocol": "SASL_SSL", "sasl.jaas.config": 'x username="a" password="b"'}, "GSSAPI"),
        ({**BEARER, "sasl.jaas.config": 'x username="a";'}, "it must have sasl.oauthbearer.token.endpoint.url, or"),
        ({**BEARER, "sasl.oauthbearer.token.endpoint.url": "http://a/b"}, "=http://a/b: it must be a file:/"),
        ({**BEARER, "sasl.oauthbearer.token.endpoint.url": "file:/no/token"}, "=file:/no/token: No such file"),
        ({"ssl.keystore.location": "/a", "ssl.keystore.type": "BCFKS"}, "ssl.keystore.type is BCFKS: mockraft reads"),
    ],
)
def test_unsupported_properties_are_named(properties: dict[str, str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        security_of(properties)
