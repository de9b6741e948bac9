"""The parts of the page that describe a capture, as plain values; the page and its JSON are made of these."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime

from mockraft.spark_replay.formats.file_events import DAMAGE_KINDS
from mockraft.spark_replay.report.captured import Frames, frame_key
from mockraft.spark_replay.report.examples import api_name, decode_command
from mockraft.spark_replay.report.heartbeats import BrokerHeartbeats
from mockraft.spark_replay.report.sketches import LogHistogram, TimeBins
from mockraft.spark_replay.report.traffic import Traffic
from mockraft.wire import error_codes

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
BROKERS_SHOWN = 20
_ALARM = 3
_SERIES_MAX = 8
_CLIENTS_MAX = 50
_ERRORS_MAX = 100
_COUNTS = ("requests", "responses", "decoded", "notDecoded", "same", "different", "notTried", "paired", "alone")

TEXTS_OF_CONN_EVENTS = {
    "syn": "connections opened (a client's SYN, also if it is sent again)",
    "fin": "directions closed (FIN)",
    "rst": "resets",
    "gap": "gaps: bytes missing in the capture",
    "dup": "retransmissions",
    "conflict": "retransmissions with different bytes",
    "midstream": "connections already open when the capture began",
    "desync": "losses of frame synchronisation",
    "skipped": "bytes that are part of no frame",
    "given_up": "directions whose bytes are mostly no frames",
    "tls": "TLS connections",
    "sealed": "directions decrypted with a key log",
    "sasl": "connections with raw SASL tokens",
    "not_kafka": "connections that are not Kafka",
    "hole": "packets cut by the snap length",
    "unfinished": "frames incomplete at the end of the capture",
    "oversized": "frames with an excessive length",
}
TEXTS_OF_FILE_EVENTS = {
    "fragments": "IP fragments",
    "not_tcp": "packets that are not TCP",
    "unknown_link": "packets of an unknown link type",
    "cut_header": "packets with headers cut by the snap length",
    "bad_header": "packets with an invalid header",
    "truncated": "the file ends within a packet",
    "corrupt": "bytes that are not packets",
    "quarantined": "the file was quarantined",
}
IN_BYTES = frozenset(["truncated", "corrupt"])
"""The kinds of FILE_EVENTS that count bytes."""


def totals(traffic: Traffic) -> dict[str, object]:
    """Return the totals: frames by status, pairing and round trip."""
    decode: Counter[str] = Counter()
    trips: Counter[str] = Counter()
    for (_, _, _, status, roundtrip, _), count in traffic.coverage.counts.items():
        decode[status or "unknown"] += count
        trips[_trip(roundtrip)] += count
    first_ns, last_ns = traffic.first_ns or 0, traffic.last_ns or 0
    return {
        "frames": traffic.frames,
        "connections": traffic.connections.count,
        "connectionsSeen": traffic.events.connections.count,
        "bytes": traffic.bytes,
        "firstNs": first_ns,
        "lastNs": last_ns,
        "seconds": (last_ns - first_ns) / 1e9,
        "decode": dict(decode),
        "roundtrip": dict(trips),
        "pairing": pairing(traffic),
        "truncated": traffic.truncated,
        "afterGap": traffic.after_gap,
        "withUnknownTags": traffic.unknown_tags,
        "servers": [f"{host}:{port}" for (host, port), _ in traffic.servers.most_common(8)],
    }


def pairing(traffic: Traffic) -> dict[str, int]:
    """Return the number of frames by pairing status."""
    pairs: Counter[str] = Counter()
    for (*_, pair), count in traffic.coverage.counts.items():
        pairs[pair or "unknown"] += count
    return dict(pairs)


def apis(traffic: Traffic) -> list[dict[str, object]]:
    """Return a row for each API, the most frequent first: versions, decode status, pairing, latency."""
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    versions: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for (key, version, is_response, status, roundtrip, pair), count in traffic.coverage.counts.items():
        versions[key][version] += count
        for name in (
            "frames",
            "responses" if is_response else "requests",
            "decoded" if status == "ok" else "notDecoded",
            _trip(roundtrip),
            "paired" if pair in ("paired", "acks0") else "alone",
        ):
            counts[key][name] += count
    return [
        {
            "api": api_name(key),
            "apiKey": key,
            "versions": dict(sorted(versions[key].items())),
            **{name: row[name] for name in (*_COUNTS, "frames")},
            "ms": milliseconds(traffic.latencies.get(key)),
        }
        for key, row in sorted(counts.items(), key=lambda item: -item[1]["frames"])
    ]


def _trip(roundtrip: bool | None) -> str:
    return "same" if roundtrip else "notTried" if roundtrip is None else "different"


def milliseconds(histogram: LogHistogram | None) -> dict[str, float] | None:
    """Return percentiles and the maximum in milliseconds, None without measurements."""
    if histogram is None or histogram.most is None:
        return None
    found = {name: (histogram.quantile(share) or 0) / 1e6 for name, share in QUANTILES.items()}
    return {"count": histogram.total, **found, "max": histogram.most / 1e6}


def series(traffic: Traffic) -> dict[str, TimeBins]:
    """Return requests over time: the most frequent APIs, and the others together."""
    ranked = sorted(traffic.requests.items(), key=lambda item: -sum(item[1].values.values()))
    shown = {api_name(key): bins for key, bins in ranked[: _SERIES_MAX - 1]}
    for _, bins in ranked[_SERIES_MAX - 1 :]:
        shown.setdefault("others", TimeBins()).merge(bins)
    return shown


def brokers_by_silence(traffic: Traffic) -> tuple[list[tuple[str, BrokerHeartbeats]], int]:
    """Return brokers with their heartbeats, longest silence first, and the gap threshold: three typical intervals."""
    joined = {broker: heartbeats.joined() for broker, heartbeats in traffic.heartbeats.brokers.items()}
    usual = LogHistogram()
    for heartbeats in joined.values():
        usual.merge(heartbeats.intervals)
    alarm_ns = round(_ALARM * (usual.quantile(0.5) or 2e9))
    ranked = sorted(joined.items(), key=lambda item: (-(item[1].intervals.most or 0), item[0]))
    return [
        ("unknown broker" if broker < 0 else f"broker {broker}", heartbeats) for broker, heartbeats in ranked
    ], alarm_ns


def heartbeat_rows(
    brokers: list[tuple[str, BrokerHeartbeats]], alarm_ns: int, first_ns: int
) -> list[dict[str, object]]:
    """Return a row for each broker; times of gaps are seconds since the first frame."""
    return [
        {
            "broker": name,
            "heartbeats": heartbeats.count,
            "connections": len(heartbeats.spells),
            "ms": milliseconds(heartbeats.intervals),
            "gaps": [
                {
                    "seconds": gap.interval_ns / 1e9,
                    "time": clock_time(gap.until_ns - gap.interval_ns),
                    "from": (gap.until_ns - gap.interval_ns - first_ns) / 1e9,
                }
                for gap in heartbeats.gaps
                if gap.interval_ns > alarm_ns
            ],
        }
        for name, heartbeats in brokers
    ]


def event_rows(traffic: Traffic) -> list[dict[str, object]]:
    """Return the events listed one by one; `at` is in seconds since the first frame. Resets are in `reset_rows`."""
    first_ns = traffic.first_ns or 0
    return [
        {
            "time": clock_time(each.at_ns),
            "at": (each.at_ns - first_ns) / 1e9,
            "kind": each.kind,
            "who": each.who,
            "detail": each.detail,
        }
        for each in traffic.events.listed((first_ns, traffic.last_ns or 0))
        if each.kind != "rst"
    ]


def reset_rows(traffic: Traffic) -> list[dict[str, object]]:
    """Return resets by sender and receiver, most first."""
    return [
        {"from": sender, "to": receiver, "count": count, "first": clock_time(first_ns), "last": clock_time(last_ns)}
        for sender, receiver, count, first_ns, last_ns in traffic.events.resets()
    ]


def clock_time(at_ns: int) -> str:
    """Return a time as date and clock time, UTC, in milliseconds."""
    moment = datetime.fromtimestamp(at_ns // 1_000_000_000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{at_ns // 1_000_000 % 1000:03}"


def errors(traffic: Traffic) -> list[dict[str, object]]:
    """Return error codes in responses; of several in one response, the first counts."""
    return [
        {
            "api": api_name(key) + (", forwarded" if is_forwarded else ""),
            "code": code,
            "name": error_codes.name(code),
            "answers": count,
        }
        for (key, is_forwarded, code), count in traffic.errors.most_common(_ERRORS_MAX)
    ]


def clients(traffic: Traffic) -> tuple[list[dict[str, object]], int]:
    """Return the clients with the most requests, and the number of requests of all others."""
    shown = traffic.clients.most_common(_CLIENTS_MAX)
    others = traffic.clients.total - sum(count for _, count in shown)
    return [{"clientId": client_id, "host": host, "requests": count} for (client_id, host), count in shown], others


def forwarded(traffic: Traffic) -> list[dict[str, object]]:
    """Return the requests that brokers forwarded for clients."""
    return [
        {"api": api_name(key), "clientId": client_id, "host": host, "principal": principal, "requests": count}
        for (key, client_id, host, principal), count in traffic.forwarded.most_common(_CLIENTS_MAX)
    ]


def not_read(traffic: Traffic) -> dict[str, list[dict[str, object]]]:
    """Return counts of what is in no frame: events of files and of connections."""
    by_kind: defaultdict[str, list[tuple[str, str | None, int]]] = defaultdict(list)
    for (kind, file, detail), count in traffic.file_events.counts.items():
        by_kind[kind].append((file, detail, count))
    totals = Counter({kind: sum(count for _, _, count in rows) for kind, rows in by_kind.items()})
    files: list[dict[str, object]] = [
        {
            "kind": kind,
            "words": TEXTS_OF_FILE_EVENTS.get(kind, ""),
            "inBytes": kind in IN_BYTES,
            "count": total,
            "files": _first(file for file, _, _ in by_kind[kind]),
            "details": _first(detail for _, detail, _ in by_kind[kind]),
        }
        for kind, total in totals.most_common()
    ]
    sizes = traffic.events.bytes.counts
    connections: list[dict[str, object]] = [
        {"kind": kind, "words": TEXTS_OF_CONN_EVENTS.get(kind, ""), "count": count, "bytes": sizes.get(kind, 0)}
        for kind, count in traffic.events.counts.most_common(100)
        if kind in sizes
    ]
    return {"files": files, "connections": connections}


def _first(texts: Iterable[str | None]) -> list[str]:
    """Return the first different texts, up to five."""
    return list(dict.fromkeys(text for text in texts if text))[:5]


def damaged(traffic: Traffic) -> dict[str, int]:
    """Return the number of unreadable places in the files, and of their bytes."""
    found = [(kind, count) for (kind, _, _), count in traffic.file_events.counts.items()]
    return {
        "count": sum(kind in DAMAGE_KINDS for kind, _ in found),
        "bytes": sum(count for kind, count in found if kind in IN_BYTES),
    }


def unread(traffic: Traffic, frames: Frames, *, show_secrets: bool = False) -> list[dict[str, object]]:
    """Return one example of each kind of frame that did not decode or round-trip."""
    rows: list[dict[str, object]] = []
    for (key, version, is_response, status), row in traffic.examples.items():
        frame = frames.get(frame_key(row))
        ends = [f"{row['client']}:{row['client_port']}", f"{row['server']}:{row['server_port']}"]
        command = decode_command(
            frame, key, version, is_response=is_response, verb="explain", show_secrets=show_secrets
        )
        rows.append(
            {
                "api": api_name(key),
                "apiKey": row["api_key"],
                "version": version,
                "isResponse": is_response,
                "status": "round trip differs" if status == "ok" else status,
                "error": row["error"] or "",
                "offset": row["first_diff_offset"] if status == "ok" else row["error_offset"],
                "where": " → ".join(ends[::-1] if is_response else ends),
                "packet": row["packet_last"],
                "size": row["size"],
                "command": command if key >= 0 and status in ("ok", "error") else "",
            }
        )
    return rows
