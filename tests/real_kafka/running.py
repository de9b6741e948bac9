"""Processes that run as long as a block."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import TypeVar

from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import KafkaBroker, KafkaController, KafkaServer

P = TypeVar("P", bound=KafkaBroker | KafkaController | MockraftController)


@contextmanager
def running(process: P, *format_options: str, formatted: bool = False) -> Iterator[P]:
    """Format it, unless it is `formatted`, start it and wait until it runs; it is killed in the end."""
    if isinstance(process, KafkaServer) and not formatted:
        process.format(*format_options)
    try:
        process.start()
        process.wait_until_running()
        yield process
    finally:
        process.kill()


@asynccontextmanager
async def running_beside(process: P, *, formatted: bool = False) -> AsyncIterator[P]:
    """As `running`, while the event loop, in which its controller may be, goes on."""
    with ExitStack() as stack:
        yield await asyncio.to_thread(stack.enter_context, running(process, formatted=formatted))


def registrations(broker: KafkaBroker) -> int:
    """The number of its registrations, by its log."""
    return broker.whole_log.count("Successfully registered broker")
