"""A node without sockets, and a controller without a log, for tests of what lies between."""

import asyncio
import random
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvloop
from mockraft.kafka.certificates import Certificate, CertificateAuthority
from mockraft.kafka_api.effects import Close, Effect, Send
from mockraft.releases import release
from mockraft.server.apis import api_versions
from mockraft.server.apis.api import AnyApi, Api
from mockraft.server.apis.overlaid import offered
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.image import Image
from mockraft.server.controller.settings.offers import Offer
from mockraft.server.events import Events
from mockraft.server.node import Node
from mockraft.server.raft.raft import Raft
from mockraft.wire.connection import FrameReader, read_response, write_request
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse

START_MS = 1_700_000_000_000
OFFERED = offered(APIS, Offer(release()))


ON_BOTH_LOOPS = {
    "test_double.py",
    "test_faults_of_chosen_clients.py",
    "test_quorum_connections.py",
    "test_serving.py",
    "test_sockets.py",
    "test_tcp.py",
    "test_tls.py",
    "test_toxic_links.py",
}
"""Tests of sockets, timers and what breaks them. `serve` runs on uvloop, a test's own loop is asyncio's."""


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    on_asyncio: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    return on_asyncio | ({"uvloop": uvloop.new_event_loop} if item.path.name in ON_BOTH_LOOPS else {})


def allocation_api(handle: Callable[[Any, Any, Any], Any]) -> AnyApi:
    """AllocateProducerIds with this handler: a small message that may be forwarded and parked."""
    return Api(AllocateProducerIdsRequest, AllocateProducerIdsResponse, handle, forwardable=True)


@dataclass
class StillLog:
    end_offset: int = 10
    high_watermark: int = 10
    failure: str | None = None


class StillRaft:
    """A quorum of one."""

    leader_id = 3000
    leader_endpoint = None
    changes = 0
    next_ms = 1 << 62

    def poll(self, now_ms: int) -> list[Any]:
        return []


@dataclass
class StillController:
    """The part of a controller that the node needs, without anything behind it."""

    config: ControllerConfig = field(default_factory=ControllerConfig)
    log: StillLog = field(default_factory=StillLog)
    raft: StillRaft = field(default_factory=StillRaft)
    epoch: int = 1
    pending_offset: int = 0
    wrong_controller: str = "No controller appears to be active."
    authorizer: None = None
    image: Image = field(default_factory=Image)
    events: Events = field(default_factory=Events)
    policy_failure: str = ""
    failure: str | None = None
    raft_failure: str | None = None
    next_ms: int = 1 << 62
    steps: tuple[()] = ()
    ticks: list[int] = field(default_factory=list)
    on_tick: Callable[[int], None] = lambda now_ms: None

    def tick(self, now_ms: int) -> None:
        self.ticks.append(now_ms)
        self.on_tick(now_ms)

    def next_tick_ms(self, now_ms: int) -> int:
        return self.next_ms


class Rig:
    """A node, a time, and the client's end of its connections."""

    def __init__(self, controller: Any, apis: Iterable[AnyApi]) -> None:
        self.controller = controller
        self.node = Node(controller, {api.api_key: api for api in sorted(apis, key=lambda api: api.api_key)})
        self.now_ms = START_MS
        self.effects: list[Effect] = []
        self._connections_made = 0
        self._correlation_id = 100

    def connect(self) -> int:
        self._connections_made += 1
        self.effects = self.node.connected(self._connections_made, "127.0.0.1:50000", self.now_ms)
        return self._connections_made

    def send(self, connection_id: int, data: bytes) -> list[Effect]:
        self.effects = self.node.step(connection_id, data, self.now_ms)
        return self.effects

    def frame(self, message: Any, version: int, client_id: str | None = "test") -> bytes:
        self._correlation_id += 1
        return write_request(message, version, self._correlation_id, client_id)

    def ask(self, connection_id: int, message: Any, version: int) -> Any:
        """Send one request and give its decoded response; the answer must come at once."""
        self.send(connection_id, self.frame(message, version))
        (sent,) = [effect for effect in self.effects if isinstance(effect, Send)]
        assert sent.connection_id == connection_id
        (frame,) = FrameReader().receive_data(sent.data)
        assert int.from_bytes(frame[:4], "big") == self._correlation_id
        return read_response(frame, message.api_key, version)

    def sends(self, connection_id: int | None = None) -> list[bytes]:
        return [e.data for e in self.effects if isinstance(e, Send) and connection_id in (None, e.connection_id)]

    def correlation_ids(self, connection_id: int | None = None) -> list[int]:
        return [int.from_bytes(data[4:8], "big") for data in self.sends(connection_id)]

    def closes(self) -> list[Close]:
        return [effect for effect in self.effects if isinstance(effect, Close)]

    def tick(self, now_ms: int) -> list[Effect]:
        self.now_ms = now_ms
        self.effects = self.node.tick(now_ms)
        return self.effects


@pytest.fixture
def still_controller() -> StillController:
    return StillController()


def controller_in_memory(config: ControllerConfig | None = None, now_ms: int = START_MS) -> Controller:
    """A real controller whose log is in memory, and whose random numbers repeat."""
    config = config or ControllerConfig()
    rng = random.Random(1)
    return Controller(config, Raft.open(config, now_ms, rng), rng, now_ms)


@pytest.fixture
def make_controller() -> Callable[..., Controller]:
    """`make_controller(config, now_ms)`."""
    return controller_in_memory


@pytest.fixture
def controller(make_controller: Callable[..., Controller]) -> Controller:
    return make_controller()


@pytest.fixture
def make_rig(still_controller: StillController) -> Callable[..., Rig]:
    """`make_rig(*apis, controller=None, **config options)`; ApiVersions is always among the APIs."""

    def make(*apis: AnyApi, controller: Any = None, **options: Any) -> Rig:
        if options:
            still_controller.config = ControllerConfig(**options)
        return Rig(controller or still_controller, (api_versions.API, *apis))

    return make


@pytest.fixture
def rig(make_rig: Callable[..., Rig], controller: Controller) -> Rig:
    """Every API, in front of a real controller."""
    return make_rig(*OFFERED.values(), controller=controller)


@dataclass
class Party:
    """A certificate authority, and what it issued to a controller and to a client."""

    authority: CertificateAuthority
    server: Certificate
    client: Certificate

    def options(self, client_auth: str = "none", **more: Any) -> dict[str, Any]:
        return {
            "security_protocol": "SSL",
            "ssl_certificate_file": self.server.certificate,
            "ssl_key_file": self.server.key,
            "ssl_truststore_file": self.authority.certificate,
            "ssl_client_auth": client_auth,
            **more,
        }

    def client_context(self, certificate: Certificate | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        if certificate is not None:
            context.load_cert_chain(certificate.certificate, certificate.key)
        return context


@pytest.fixture(scope="module")
def party(tmp_path_factory: pytest.TempPathFactory) -> Party:
    authority = CertificateAuthority(tmp_path_factory.mktemp("authority"))
    return Party(authority, authority.issue("/CN=controller"), authority.issue("/O=mockraft/CN=broker"))
