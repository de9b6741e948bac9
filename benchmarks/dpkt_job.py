"""The job that volume.py compares with: the frames of a capture with PySpark and dpkt, as one writes it in an hour.

One task reads the file, and each connection's segments are joined in the order in which they came: no retransmissions,
gaps or reordering, and no requests paired with responses.

    dpkt_job.py FILE PORTS OUT
"""

import os
import sys
from collections.abc import Iterator
from struct import unpack_from
from typing import Any

import dpkt
from pyspark.sql import SparkSession


def frames(path: str, ports: set[int]) -> Iterator[tuple[Any, ...]]:
    """Yield time, addresses, ports, length and the first fields of each frame."""
    streams: dict[tuple[bytes, int, bytes, int], bytearray] = {}
    with open(path, "rb") as file:
        for at, data in dpkt.pcap.Reader(file):
            ip = dpkt.ethernet.Ethernet(data).data
            tcp = getattr(ip, "data", None)
            if not isinstance(tcp, dpkt.tcp.TCP) or not tcp.data or not {tcp.sport, tcp.dport} & ports:
                continue
            key = ip.src, tcp.sport, ip.dst, tcp.dport
            stream = streams.setdefault(key, bytearray())
            stream += tcp.data
            while len(stream) >= 4 and len(stream) >= 4 + (length := unpack_from(">i", stream)[0]) >= 12:
                frame = bytes(stream[4 : 4 + length])
                del stream[: 4 + length]
                yield at, ip.src, tcp.sport, ip.dst, tcp.dport, *unpack_from(">hhi", frame), frame


def main() -> None:
    path, ports, out = sys.argv[1], {int(port) for port in sys.argv[2].split(",")}, sys.argv[3]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    columns = "time double, src binary, sport int, dst binary, dport int, key int, version int, id int, frame binary"
    rows = spark.sparkContext.parallelize([path], 1).flatMap(lambda each: frames(each, ports))
    spark.createDataFrame(rows, columns).write.parquet(out, mode="overwrite")


if __name__ == "__main__":
    main()
