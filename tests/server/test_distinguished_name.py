import ssl
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.kafka.certificates import CertificateAuthority
from mockraft.server.distinguished_name import PrincipalMapper, subject_of

# What Java's X500Principal.getName() says of the same certificates.
JAVA = {
    "/O=mockraft/CN=broker-1": "CN=broker-1,O=mockraft",
    "/C=DE/ST=Bavaria/L=Munich/O=Ex, Inc./CN=b": "CN=b,O=Ex\\, Inc.,L=Munich,ST=Bavaria,C=DE",
    '/CN= b"<>;#=\\\\ünï ': 'CN=\\ b\\"\\<\\>\\;\\#\\=\\\\ünï\\ ',
    "/O=mockraft/CN=broker-1/emailAddress=a@b.c": "1.2.840.113549.1.9.1=#16056140622e63,CN=broker-1,O=mockraft",
    "/DC=org/DC=ex/UID=42+CN=multi/serialNumber=7": "2.5.4.5=#130137,CN=multi+UID=42,DC=ex,DC=org",
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


def der_of(path: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(path.read_text())


@pytest.mark.parametrize("subject", JAVA)
def test_a_subject_is_written_as_java_writes_it(authority: CertificateAuthority, subject: str) -> None:
    assert subject_of(der_of(authority.issue(subject, file_name="holder").certificate)) == JAVA[subject]


@given(st.binary(max_size=80))
def test_invalid_certificate_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"not an X\.509 certificate"):
        subject_of(data)


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        ("DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        ("", "CN=a,O=b", LookupError),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=kafka,OU=ServiceUsers,O=x", "kafka"),
        ("RULE:^CN=(.*?),O=.*$/$1/L, DEFAULT", "CN=Kafka,O=x", "kafka"),
        ("RULE:^CN=(.*?),O=.*$/$1/U,DEFAULT", "CN=Kafka,O=x", "KAFKA"),
        ("RULE:^CN=(.*?),O=.*$/$1/U,DEFAULT", "CN=Kafka,OU=x", "CN=Kafka,OU=x"),
        ("RULE:^CN=(.*?),O=(.*)$/$1@$2/", "CN=a,O=b", "a@b"),
        ("RULE:^CN=(.*?),O=(.*)$/$1@$3/", "CN=a,O=b", "a@$3"),
        ("RULE:^CN=(.*?),O=.*$/$12/", "CN=a,O=b", "a2"),
        ("RULE:^CN=(.*?),O=.*$/$0!/", "CN=a,O=b", "CN=a,O=b!"),
        ("RULE:CN=(.*?), O=.*/$1/ , DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        ("RULE:^CN=x$/y/", "CN=a", LookupError),
        ("RULE:^CN=(\\w+)$/\\/$1\\$/", "CN=a", "/a$"),
    ],
)
def test_rules_name_the_user_as_in_kafka(rules: str, name: str, expected: Any) -> None:
    mapper = PrincipalMapper(rules)
    if expected is LookupError:
        with pytest.raises(LookupError):
            mapper.name_of(name)
    else:
        assert mapper.name_of(name) == expected


@pytest.mark.parametrize("rules", ["default", "RULE:a/b", "RULE:a/b/X", "RULE:(/b/", "DEFAULT, what"])
def test_invalid_rule_is_refused_at_start(rules: str) -> None:
    with pytest.raises(ValueError, match="ssl_principal_mapping_rules"):
        PrincipalMapper(rules)
