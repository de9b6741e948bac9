"""The controller of each release against the kept run of Kafka's own one: no verdict and no reason differs."""

import pytest
from mockraft import Controller
from mockraft.conformance import baseline, run
from mockraft.conformance.verdicts import partings
from mockraft.releases import SUPPORTED, release

from tools.on_kafka import SEED, TOKEN_KEY

from ..budgets import sample

SESSION_TIMEOUT_MS = 6000  # some cases wait until a broker is fenced

pytestmark = pytest.mark.one_python


def test_there_is_a_baseline_of_every_release() -> None:
    kept = {name: baseline.read(name).release for name in baseline.names()}
    assert kept == {f"kafka-{version}": f"Kafka {release(version).name}" for version in SUPPORTED}


@pytest.mark.parametrize("version", sample(SUPPORTED, 2))
async def test_controller_of_a_release_differs_in_no_verdict_and_no_reason(version: str) -> None:
    async with Controller(
        release=version, delegation_token_secret_key=TOKEN_KEY, session_timeout_ms=SESSION_TIMEOUT_MS
    ) as controller:
        found = await run(controller.bootstrap, seed=SEED)
    assert partings(found, baseline.read(f"kafka-{version}")) == []
    assert found.release == f"Kafka {release(version).name}"
