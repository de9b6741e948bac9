"""Examples for docs/journal.md."""

import json
from pathlib import Path

import pytest
from mockraft import Controller, VerificationError
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest


def test_journal_has_every_request() -> None:
    with Controller.sync(brokers=2) as controller:
        (first,) = controller.requests(BrokerRegistrationRequest, broker_id=1)
        assert first.request.features[0].name
        assert first.response.broker_epoch > 0
        assert (first.client_id, first.served_by, first.error_code) == ("1", "controller", 0)

        fenced = controller.requests("BrokerHeartbeat", want_fence=True, broker_id__in=[1, 2])
        assert all(exchange.response.is_fenced for exchange in fenced)


def test_failed_verification_reports_near_misses() -> None:
    with Controller.sync(brokers=1) as controller:
        controller.verify(1, "BrokerRegistration", broker_id=1)
        controller.verify(match="BrokerHeartbeat", at_least=1, at_most=1000, want_shut_down=False)

        since = controller.mark()
        controller.wait_for("Fetch", n=2, since=since)

        with pytest.raises(VerificationError) as failed:
            controller.verify(3, "BrokerRegistration", broker_id=1)
        assert "expected exactly 3, found 1" in str(failed.value)


def test_journal_is_written_to_files(tmp_path: Path) -> None:
    with Controller.sync(brokers=1) as controller:
        controller.write_journal(tmp_path / "run.jsonl")
        controller.write_journal(tmp_path / "run.pcapng")

        lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
        assert lines[0]["api"] == "ApiVersions"
