"""Client properties as Kafka's tools read them."""

from pathlib import Path

import pytest
from mockraft.kafka_configs.client_properties import read_properties, security_of
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.sasl import SaslLogin

from ..rows import each_row


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


@each_row(
    ("properties", "reason"),
    [
        ({"security.protocol": "TLS"}, "it must be PLAINTEXT or SSL or"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "username"),
        ({"security.protocol": "SASL_SSL", "sasl.jaas.config": 'x username="a" password="b"'}, "GSSAPI"),
        ({"ssl.keystore.location": "/a", "ssl.keystore.type": "BCFKS"}, "ssl.keystore.type is BCFKS: mockraft reads"),
    ],
)
def test_unsupported_properties_are_named(properties: dict[str, str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        security_of(properties)
