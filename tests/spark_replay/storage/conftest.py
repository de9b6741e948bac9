"""An S3 server with one bucket, `caps`."""

from collections.abc import Iterator

import pytest

from ...s3_server import S3Server, s3_server


@pytest.fixture
def s3() -> Iterator[S3Server]:
    with s3_server("caps") as server:
        yield server
