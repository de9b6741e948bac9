"""Messages of every release: each version is read as the release that has it writes it."""

from __future__ import annotations

from typing import Any

from mockraft.codegen import every_release as of_every_release
from mockraft.codegen.every_release import every_release
from mockraft.releases import SUPPORTED, release
from mockraft.wire import messages
from mockraft.wire.overlay import SHIPPED, Overlay, using
from mockraft.wire.schema_files import FieldSpec, Schema, StructSpec, load, parse

from ..rows import each_row

EARLY_ACCESS = {("ConsumerGroupDescribeResponse", 0), ("ReadShareGroupStateSummaryResponse", 0)}
"""Messages that changed within a version, before their feature was ready."""

RENAMED = {"ListClientMetricsResourcesRequest", "ListClientMetricsResourcesResponse"}
"""Version 0 of ListConfigResources by its older name."""


@each_row("kafka_version", SUPPORTED)
def test_a_version_has_the_layout_of_its_release(kafka_version: str) -> None:
    union = every_release()
    specs = [parse(load(text)) for text in release(kafka_version).specs.values()]
    compared = 0
    for spec in specs:
        for version in range(spec.valid.low, spec.valid.high + 1):
            if spec.name in RENAMED or (spec.name, version) in EARLY_ACCESS:
                continue
            assert layout(union.schema(spec.name), version) == layout(spec, version), (spec.name, version)
            compared += 1
    assert compared > 600


def layout(spec: Schema, version: int) -> tuple[object, ...]:
    """Everything that determines the bytes of a version; names do not."""
    assert spec.valid.covers(version), (spec.name, spec.valid, version)
    return spec.flexible.covers(version), _struct(spec.root, version)


def _struct(struct: StructSpec, version: int) -> tuple[object, ...]:
    tagged = sorted((tag, _field(field, version)) for tag, field in struct.tagged(version).items())
    return [_field(field, version) for field in struct.untagged(version)], tagged


def _field(field: FieldSpec, version: int) -> tuple[object, ...]:
    kind = field.kind if field.struct is None else _struct(field.struct, version)
    return field.is_array, field.nullable.covers(version), field.flexible.covers(version), kind


def test_fields_that_only_dropped_versions_have_keep_their_place() -> None:
    request: Any = every_release().by_name("ListOffsetsRequest")
    assert (request.min_version, request.max_version) == (0, messages.by_name("ListOffsetsRequest").max_version)
    partition = every_release().module("ListOffsetsRequest").ListOffsetsPartition
    topic = every_release().module("ListOffsetsRequest").ListOffsetsTopic
    asked = request(
        replica_id=-1,
        topics=[topic(name="t", partitions=[partition(partition_index=1, timestamp=-1, max_num_offsets=5)])],
    )
    written = asked.write(0)
    assert written.hex().endswith("00000001" + "ff" * 8 + "00000005")
    assert request.read(written, 0) == asked


def test_apis_that_are_gone_are_known_by_their_numbers() -> None:
    assert [every_release().api_name(key) for key in range(4, 8)] == [
        "LeaderAndIsr",
        "StopReplica",
        "UpdateMetadata",
        "ControlledShutdown",
    ]
    assert [every_release().request_header_version(7, version) for version in range(4)] == [0, 1, 1, 2]


def test_messages_without_dropped_versions_keep_their_class() -> None:
    assert every_release().request(62) is messages.request(62)
    assert every_release().by_name("FetchRequest") is not messages.by_name("FetchRequest")


def test_an_overlay_that_is_in_use_comes_first() -> None:
    assert of_every_release.in_use() is every_release()
    mine = Overlay()
    with using(mine):
        assert of_every_release.in_use() is mine
    with using(SHIPPED):
        assert of_every_release.in_use() is every_release()
