import re
from pathlib import Path
from typing import Any

import pytest
from mockraft.server.config import BOUNDS, ControllerConfig
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.sasl import SaslLogin
from mockraft.wire.scram import ScramUser


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
        options: dict[str, Any] = {option: value}
        assert getattr(ControllerConfig(**options), option) == value


def test_a_seed_may_be_any_number() -> None:
    assert ControllerConfig(seed=-5).seed == -5


NOWHERE = Path("/nowhere.pem")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"security_protocol": "ssl"}, "security_protocol='ssl': it must be PLAINTEXT or SSL"),
        ({"security_protocol": "SASL_SSL"}, "needs sasl_enabled_mechanisms"),
        (
            {"security_protocol": "SSL", "ssl_certificate_file": Path("/c"), "ssl_key_file": Path("/k")},
            "/c: there is no",
        ),
        ({"sasl_enabled_mechanisms": ("plain",)}, "sasl_enabled_mechanisms='plain'"),
        ({"plain_users": {"": "x"}}, "plain_users"),
        ({"plain_users": {"alice": ""}}, "plain_users"),
        ({"scram_users": (ScramUser("alice", ""),)}, "scram_users"),
        ({"scram_users": (ScramUser("alice", "a", "MD5"),)}, "scram_users: mechanism='MD5'"),
        ({"scram_users": (ScramUser("alice", "a", iterations=4095),)}, "iterations of alice must be 4096 to 16384"),
        ({"scram_users": (ScramUser("alice", "a"),), "metadata_version": 10}, "need metadata_version 11"),
    ],
)
def test_security_options_that_do_not_go_together_are_named(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        ControllerConfig(**options)


def test_passwords_are_not_shown() -> None:
    login = SaslLogin("PLAIN", "alice", "secret-1")
    config = ControllerConfig(
        plain_users={"alice": "secret-1"},
        scram_users=(ScramUser("bob", "secret-2"),),
        delegation_token_secret_key="secret-3",
        client_security=ClientSecurity("SASL_PLAINTEXT", login=login),
    )
    assert "secret-" not in repr(config)
