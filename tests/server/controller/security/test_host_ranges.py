"""Ranges of addresses in ACLs, at their bounds."""

from mockraft.kafka_api.authorization.host_ranges import is_in_range, parse_range


def test_ipv6_prefix_may_have_any_length() -> None:
    assert is_in_range("fd00::1", "fd00::1/128")
    assert not is_in_range("fd00::2", "fd00::1/128")
    assert is_in_range("fd00::2", "::/0")


def test_bits_after_an_ipv4_prefix_do_not_count() -> None:
    assert parse_range("255.1.2.3/8") == parse_range("255.0.0.0/8")
