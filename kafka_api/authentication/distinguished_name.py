"""The principal of a certificate: its subject as Java writes it, and `ssl.principal.mapping.rules` (KIP-371).

Java's X500Principal.getName() is RFC 2253 with the last name first; attribute types without a keyword are written as
numbers with the value in hex. The certificates parsed here were verified by OpenSSL before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}

# Tag of an ASN.1 string type to how Python reads it.
_STRINGS = {
    0x0C: "utf-8",
    0x13: "ascii",
    0x14: "latin-1",
    0x16: "ascii",
    0x1B: "ascii",
    0x1C: "utf-32-be",
    0x1E: "utf-16-be",
}

_ESCAPED = re.compile(r'[,=+<>#;"\\]')
_VERSION_TAG = 0xA0


class _Value(NamedTuple):
    tag: int
    content: bytes
    whole: bytes


def subject_of(certificate: bytes) -> str:
    """Return the subject of a DER certificate; ValueError if it cannot be parsed."""
    try:
        (outer,) = _values(certificate)
        body = next(_values(outer.content))
        fields = list(_values(body.content))
        # version (where there is one), serial number, signature algorithm, issuer, validity, subject
        subject = fields[5 if fields[0].tag == _VERSION_TAG else 4]
        return ",".join(
            "+".join(map(_written, _values(names.content))) for names in reversed(list(_values(subject.content)))
        )
    except (IndexError, StopIteration, ValueError) as error:
        raise ValueError("not an X.509 certificate") from error


def _values(data: bytes) -> Iterator[_Value]:
    """Return consecutive DER values. IndexError if the data is truncated."""
    offset = 0
    while offset < len(data):
        start = offset
        tag, length = data[offset], data[offset + 1]
        offset += 2
        if length & 0x80:
            octets = length & 0x7F
            length = int.from_bytes(data[offset : offset + octets], "big")
            offset += octets
        end = offset + length
        if end > len(data):
            raise IndexError(f"a value ends at {end} of {len(data)} bytes")
        yield _Value(tag, data[offset:end], data[start:end])
        offset = end


def _written(attribute: _Value) -> str:
    """Format one `type=value` (sun.security.x509.AVA.toRFC2253String)."""
    kind, value = _values(attribute.content)
    number = _object_identifier(kind.content)
    keyword, encoding = _KEYWORDS.get(number), _STRINGS.get(value.tag)
    if keyword is None or encoding is None:
        return f"{keyword or number}=#{value.whole.hex()}"
    text = _ESCAPED.sub(r"\\\g<0>", value.content.decode(encoding)).replace("\0", "\\00")
    inner = text.strip(" \r")
    if not inner:
        return f"{keyword}=" + "".join(f"\\{space}" for space in text)
    lead, trail = text.split(inner, 1)
    return f"{keyword}={_escaped_spaces(lead)}{inner}{_escaped_spaces(trail)}"


def _escaped_spaces(spaces: str) -> str:
    return "".join(f"\\{space}" for space in spaces)


def _object_identifier(content: bytes) -> str:
    first = content[0]
    numbers = [min(first // 40, 2), first - 40 * min(first // 40, 2)]
    number = 0
    for octet in content[1:]:
        number = number << 7 | octet & 0x7F
        if not octet & 0x80:
            numbers.append(number)
            number = 0
    return ".".join(map(str, numbers))


_RULE = r"(DEFAULT)|RULE:((\\.|[^\\/])*)/((\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER = re.compile(_RULE)
_REFERENCE = re.compile(r"\\(.)|\$(\d+)")


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern.fullmatch(name) is None:
            return None
        result = self.pattern.sub(self._replaced, name)
        return result.lower() if self.case == "L" else result.upper() if self.case == "U" else result

    def _replaced(self, match: re.Match[str]) -> str:
        return _REFERENCE.sub(lambda reference: self._group_text(reference, match), self.replacement)

    def _group_text(self, reference: re.Match[str], match: re.Match[str]) -> str:
        """Resolve a group reference as Java does: the longest digit prefix that names a group; unknown ones stay."""
        literal, digits = reference.groups()
        if literal is not None:
            return str(literal)
        taken = next((end for end in range(len(digits), 0, -1) if int(digits[:end]) <= self.pattern.groups), 0)
        if not taken:
            return str(reference[0])
        return (match[int(digits[:taken])] or "") + str(digits[taken:])


class PrincipalMapper:
    """`ssl.principal.mapping.rules`: comma-separated rules, the first match wins (SslPrincipalMapper).

    ValueError for an invalid rule.
    """

    def __init__(self, rules: str) -> None:
        self._rules: list[_Rule | None] = []
        for found in _SPLITTER.finditer(rules.strip()):
            rule = found[1]
            parsed = _PARSER.match(rule)
            assert parsed is not None
            if parsed.end() != len(rule):
                raise ValueError(
                    f"ssl_principal_mapping_rules: {rule!r} is neither DEFAULT nor RULE:pattern/replacement/[LU]"
                )
            if parsed[1] is not None:
                self._rules.append(None)
            elif parsed[2] is not None:
                self._rules.append(_Rule(_pattern(parsed[2]), parsed[4], parsed[6]))

    def name_of_certificate(self, certificate: bytes) -> str:
        """Return the user's name of a certificate in DER. LookupError if no rule matches, ValueError if unparsable."""
        return self.name_of(subject_of(certificate))

    def name_of(self, distinguished_name: str) -> str:
        """Return the user's name. LookupError if no rule matches."""
        for rule in self._rules:
            name = distinguished_name if rule is None else rule.apply(distinguished_name)
            if name is not None:
                return name
        raise LookupError(f"no rule of ssl_principal_mapping_rules fits {distinguished_name}")


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"ssl_principal_mapping_rules: {text!r} is no regular expression: {error}") from error
