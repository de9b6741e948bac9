"""Kafka's names in Python."""

import pytest
from mockraft.codegen.names import snake


class TestSnake:
    @pytest.mark.parametrize(
        ("kafka", "python"),
        [
            ("BrokerId", "broker_id"),
            ("CurrentMetadataOffset", "current_metadata_offset"),
            ("timeoutMs", "timeout_ms"),
            ("Isr", "isr"),
            ("EligibleLeaderReplicas", "eligible_leader_replicas"),
            ("NewIsrWithEpochs", "new_isr_with_epochs"),
            ("KRaftVersion", "k_raft_version"),
            ("IsKRaftController", "is_k_raft_controller"),
            ("IncludeV2Names", "include_v2_names"),
        ],
    )
    def test_words_are_separated_by_underscores(self, kafka: str, python: str) -> None:
        assert snake(kafka) == python

    def test_gives_a_keyword_a_trailing_underscore(self) -> None:
        assert snake("From") == "from_"
