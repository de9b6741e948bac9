"""Hosts of ACLs that are ranges of addresses, `10.0.0.0/8` or `fd00::/8` (KIP-1276; CidrUtils, on SubnetUtils)."""

import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Network, IPv6Address, IPv6Network
from typing import Final

from mockraft.wire.java_values import parse_integer

_OCTETS: Final = r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})"
_IPV4: Final = re.compile(_OCTETS)
_IPV4_RANGE: Final = re.compile(_OCTETS + "/([0-9]{1,2})")
_IPV6_BITS: Final = 128
_RANGES_CACHED_MAX: Final = 10_000


def is_range(host: str) -> bool:
    """Return True if a host is written as a range, valid or not."""
    return "/" in host


@lru_cache(_RANGES_CACHED_MAX)
def parse_range(host: str) -> IPv4Network | IPv6Network:
    """Return the addresses of a range; bits after the prefix do not count. Raise ValueError with Kafka's text."""
    if ":" not in host:
        return _ipv4_range(host)
    address, separator, length = host.partition("/")
    failure = f"Could not parse [{host}]"
    if not separator:
        raise ValueError(f"{failure} - missing prefix length")
    prefix_length = parse_integer(length)
    if prefix_length is None:
        raise ValueError(f"{failure} - invalid prefix length")
    if not 0 <= prefix_length <= _IPV6_BITS:
        raise ValueError(f"{failure} - prefix length must be between 0 and {_IPV6_BITS}")
    return IPv6Network((int(_ipv6(address)), prefix_length), strict=False)


def is_in_range(address: str, host: str) -> bool:
    """Return True if an address, as Java writes it, is in the range of an ACL's host; False for an invalid range."""
    try:
        network = parse_range(host)
        if isinstance(network, IPv6Network):
            return _ipv6(address) in network
        found = _IPV4.fullmatch(address)
        # SubnetUtils takes 0.0.0.0 for no address.
        number = 0 if found is None else _number(found)
    except ValueError:
        return False
    return number != 0 and int(network.network_address) <= number <= int(network.broadcast_address)


def _ipv4_range(host: str) -> IPv4Network:
    found = _IPV4_RANGE.fullmatch(host)
    if found is None:
        raise ValueError(f"Could not parse [{host}]")
    number, prefix_length = _number(found), int(found[5])
    if prefix_length > 32:
        raise ValueError(f"Value [{prefix_length}] not in range [0,32]")
    return IPv4Network((number, prefix_length), strict=False)


def _number(found: re.Match[str]) -> int:
    octets = [int(octet) for octet in found.groups()[:4]]
    for octet in octets:
        if octet > 255:
            raise ValueError(f"Value [{octet}] not in range [0,255]")
    return int.from_bytes(bytes(octets))


def _ipv6(text: str) -> IPv6Address:
    """Return an address as InetAddress.getByName reads it: an IPv4 address in IPv6 form is an IPv4 address."""
    try:
        address = IPv6Address(text)
    except AddressValueError:
        raise ValueError(f"Could not parse [{text}]") from None
    if address.ipv4_mapped is not None:
        raise ValueError(f"Could not parse [{text}] - not an IPv6 address")
    return address
