"""Find packets inside IP packets that carry no TCP: GRE, ERSPAN, VXLAN, Geneve, MPLS in UDP, IP in IP.

Source: RFC 2784 and 2890 (GRE), 2637 (PPTP), 7348 (VXLAN), 8926 (Geneve), 7510 (MPLS), 2003 and 4213 (IP
in IP); draft-ietf-nvo3-vxlan-gpe.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mockraft.spark_replay.formats.chunks import Bytes, Longs, Mask, gather_u16
from mockraft.spark_replay.formats.links import BRIDGED, IPV4, IPV6, MPLS, Payloads

_UDP, _UDP_BYTES = 17, 8
_VXLAN_PORTS, _GPE_PORT, _GENEVE_PORT, _MPLS_PORT = (4789, 8472), 4790, 6081, 6635
_OF_GPE = np.array((0, IPV4, IPV6, BRIDGED, 0))
_ERSPAN_2, _ERSPAN_3 = 0x88BE, 0x22EB


def enter(buffer: Bytes, index: Longs, protocol: Longs, start: Longs, payloads: Payloads) -> Mask:
    """Return which of the packets `index`, whose IP payloads are at `start`, are tunnels; set their `payloads`."""
    inner, size = np.zeros(len(index), np.int64), np.zeros(len(index), np.int64)
    end = payloads.end[index]
    # A payload may begin far behind the captured bytes.
    at = np.minimum(start, end)
    for number, read in _TUNNELS.items():
        chosen = np.flatnonzero(protocol == number)
        if len(chosen):
            inner[chosen], size[chosen] = read(buffer, at[chosen])
    is_tunnel: Mask = (inner > 0) & (start + size <= end)
    payloads.ether_type[index[is_tunnel]] = inner[is_tunnel]
    payloads.start[index[is_tunnel]] = (start + size)[is_tunnel]
    return is_tunnel


def _ip(kind: int) -> Callable[[Bytes, Longs], tuple[Longs, Longs]]:
    return lambda _, at: (np.full(len(at), kind), np.zeros(len(at), np.int64))


def _gre(buffer: Bytes, at: Longs) -> tuple[Longs, Longs]:
    flags, inner = gather_u16(buffer, at), gather_u16(buffer, at + 2)
    has_sequence = flags & 0x1000 > 0
    size = 4 + sum(np.where(flags & flag > 0, 4, 0) for flag in (0x8000, 0x2000, 0x1000, 0x0080))
    size = size + np.where(inner == _ERSPAN_3, 12, np.where((inner == _ERSPAN_2) & has_sequence, 8, 0))
    return np.where((inner == _ERSPAN_2) | (inner == _ERSPAN_3), BRIDGED, inner), size


def _udp(buffer: Bytes, at: Longs) -> tuple[Longs, Longs]:
    port, at = gather_u16(buffer, at + 2), at + _UDP_BYTES
    is_vxlan = np.isin(port, _VXLAN_PORTS) & (buffer[at] & 0x08 > 0)
    is_geneve = (port == _GENEVE_PORT) & (buffer[at] >> 6 == 0)
    is_mpls = port == _MPLS_PORT
    inner = np.select(
        [is_vxlan, is_geneve, port == _GPE_PORT, is_mpls],
        [BRIDGED, gather_u16(buffer, at + 2), _OF_GPE[np.minimum(buffer[at + 3], 4)], MPLS[0]],
    )
    options = np.where(is_geneve, (buffer[at] & 0x3F).astype(np.int64) * 4, 0)
    return inner, _UDP_BYTES + np.where(is_mpls, 0, 8 + options)


_TUNNELS: dict[int, Callable[[Bytes, Longs], tuple[Longs, Longs]]] = {4: _ip(IPV4), 41: _ip(IPV6), 47: _gre, _UDP: _udp}
"""A function for each protocol of IP: from offsets to ether types of what is inside (0: none) and sizes of headers."""
