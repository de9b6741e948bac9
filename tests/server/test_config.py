from typing import Any

import pytest
from mockraft.server.config import BOUNDS, ControllerConfig


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("node_id", -1),
        ("port", 65_536),
        ("advertised_port", 0),
        ("metadata_version", 6),
        ("metadata_version", 31),
        ("session_timeout_ms", 0),
        ("num_partitions", 0),
        ("frame_bytes_max", 63),
        ("cluster_id", ""),
        ("cluster_id", "with space"),
    ],
)
def test_an_option_out_of_range_is_named(option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{option}={value!r}: "):
        ControllerConfig(**{option: value})


@pytest.mark.parametrize("option", sorted(BOUNDS))
def test_both_ends_of_a_range_are_in_it(option: str) -> None:
    for value in BOUNDS[option]:
        assert getattr(ControllerConfig(**{option: value}), option) == value


def test_a_seed_may_be_any_number() -> None:
    assert ControllerConfig(seed=-5).seed == -5
