"""A real S3 server on the loopback (moto's), with every request counted and, on demand, refused."""

import io
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import pytest
from mockraft.spark_replay.storage.locations import _file_system

SECRET = "secret-of-the-environment"
"""What clients sign their requests with."""


class Request(NamedTuple):
    """A request that the server answered: `size` is the number of bytes of the answer's body."""

    method: str
    path: str
    query: str
    size: int


@dataclass
class S3Server:
    """The server's endpoint, its requests so far, and objects to look at without a request."""

    endpoint: str = ""
    requests: list[Request] = field(default_factory=list)
    refuses: Callable[[str, str], bool] = lambda method, path: False

    def reset(self, *buckets: str) -> None:
        """Forget all requests and objects, and create empty buckets."""
        _backend().reset()
        for bucket in buckets:
            _backend().create_bucket(bucket, "us-east-1")
        self.requests.clear()
        self.refuses = lambda method, path: False

    def gets(self, key: str) -> list[Request]:
        """Return the requests that read an object (its path ends in `key`)."""
        return [each for each in self.requests if each.method == "GET" and each.path.endswith(key) and each.size]

    def put(self, url: str, content: bytes) -> str:
        """Store an object, and return its URL."""
        bucket, _, key = url.removeprefix("s3://").partition("/")
        _backend().put_object(bucket, key, content)
        stored = _backend().get_object(bucket, key)
        stored._value_buffer.close()
        stored._value_buffer = io.BytesIO(content)  # moto reads a whole object for each range: of this without a copy
        return url

    def keys(self, bucket: str) -> list[str]:
        """Return the keys of a bucket, without the marks of empty folders."""
        return sorted(key for key in _backend().buckets[bucket].keys.keys() if not key.endswith("/"))  # noqa: SIM118

    def content(self, bucket: str, key: str) -> bytes:
        """Return the bytes of an object."""
        value: bytes = _backend().get_object(bucket, key).value
        return value

    def unfinished(self, bucket: str) -> list[str]:
        """Return the keys of multipart uploads that were neither completed nor aborted."""
        return sorted(upload.key_name for upload in _backend().buckets[bucket].multiparts.values())


def _backend() -> Any:
    from moto.s3.models import s3_backends

    return s3_backends["123456789012"]["aws"]


@contextmanager
def s3_server(*buckets: str) -> Iterator[S3Server]:
    """A server with these buckets, to which the environment sends every client until the block ends."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Silent(WSGIRequestHandler):
        def log(self, *_: Any) -> None:
            """Keep requests out of the test's output."""

    server, serve = S3Server(), DomainDispatcherApplication(create_backend_app)

    def counted(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        method, path, query = environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("QUERY_STRING", "")
        if server.refuses(method, path):
            start_response("403 Forbidden", [("Content-Length", "0")])
            return [b""]
        body = b"".join(serve(environ, start_response))
        is_object = not ({"list-type", "uploads"} & parse_qs(query, keep_blank_values=True).keys())
        server.requests.append(Request(method, path, query, len(body) if is_object else 0))
        return [body]

    listener = make_server("127.0.0.1", 0, counted, threaded=True, request_handler=Silent)
    thread = threading.Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    server.endpoint = f"http://127.0.0.1:{listener.server_port}"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _environment(server.endpoint).items():
            patch.setenv(name, value)
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            patch.delenv(name, raising=False)
        server.reset(*buckets)
        _file_system.cache_clear()  # it knows the endpoint of another server
        try:
            yield server
        finally:
            listener.shutdown()
            listener.server_close()
            thread.join()


def _environment(endpoint: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "key-of-the-environment",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1",
    }
