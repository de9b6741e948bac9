"""Locations of captures and tables as text, and the file systems that they are on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from os import PathLike, fspath
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

SCHEMES = ("file", "s3", "s3a", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
_OBJECT_STORES = ("s3", "gs", "abfs", "abfss")
_SAME = {"s3a": "s3", "gcs": "gs"}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SECRET_PARAMETER = re.compile(
    r"[?&](access_?key|secret_?key|session_?token|account_?key|sas_?token|credential_?kind|sig|x-amz-\w+)=",
    re.IGNORECASE,
)
_SECRET_NAME = re.compile(
    r"(access|secret|account|private|shared)[._-]?(access[._-]?)?key|session[._-]?token|sas[._-]?token|password|credential",
    re.IGNORECASE,
)
HOW = "use a role, a web identity or the environment (docs/how-to/captures/object-stores.md)"


class LocationError(ValueError):
    """Raised for a location that cannot be used: names it (without credentials), the reason and what to do."""


class Location(NamedTuple):
    """A file or folder. `scheme` is empty for local files, whose `path` is as Python opens it.

    `host` is the bucket, the container and account, or the name node.
    """

    scheme: str
    host: str
    path: str

    @classmethod
    def parse(cls, text: str | PathLike[str]) -> Location:
        """Parse a plain path or a URL. Raises LocationError for an unknown scheme, no bucket, or credentials."""
        text = fspath(text)
        found = _SCHEME.match(text)
        if found is None:
            return cls("", "", text)
        scheme = found[1].lower()
        if scheme not in SCHEMES:
            raise LocationError(f"{text}: unknown scheme {scheme}://; a location is a path, or {_listed(SCHEMES)}")
        host, _, path = text[found.end() :].partition("/")
        if scheme == "file":
            return cls("", "", unquote(urlsplit(text).path))
        scheme = _SAME.get(scheme, scheme)
        user, at, _ = host.rpartition("@")
        if (":" in user if scheme.startswith("abfs") else at) or _SECRET_PARAMETER.search(text):
            raise LocationError(f"{scheme}:// location with credentials, which logs would show: {HOW}")
        if not host and scheme in _OBJECT_STORES:
            raise LocationError(
                f"{text}: no {'container' if scheme.startswith('abfs') else 'bucket'} behind {scheme}://"
            )
        return cls(scheme, host, path.strip("/"))

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}/{self.path}" if self.scheme else self.path

    def __truediv__(self, name: str) -> Location:
        """Return the location of a name in this folder."""
        if not self.scheme:
            return self._replace(path=os.path.join(self.path, name))
        return self._replace(path=f"{self.path}/{name}" if self.path else name)

    @property
    def name(self) -> str:
        """Return the last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> Location:
        """Return the folder that it is in."""
        if not self.scheme:
            return self._replace(path=os.path.dirname(self.path.rstrip("/")) or ".")
        return self._replace(path=self.path.rpartition("/")[0])

    @property
    def is_remote(self) -> bool:
        """Return True if Python cannot open it as a file."""
        return bool(self.scheme)

    @property
    def is_object_store(self) -> bool:
        """Return True for a store of objects, which cannot be renamed."""
        return self.scheme in _OBJECT_STORES

    @property
    def arrow_path(self) -> str:
        """Return the path in its file system."""
        if not self.scheme:
            return self.path
        if self.scheme in ("hdfs", "viewfs"):
            return f"/{self.path}"
        bucket = self.host.partition("@")[0]
        return f"{bucket}/{self.path}" if self.path else bucket

    def file_system(self) -> Any:
        """Return pyarrow's file system for it. Raises LocationError if there is none here."""
        return _file_system(self.scheme, self.host)


@lru_cache(64)
def _file_system(scheme: str, host: str) -> Any:
    from pyarrow import fs

    if not scheme:
        return fs.LocalFileSystem()
    try:
        if scheme.startswith("abfs") and (given := _connection(host.rpartition("@")[2].partition(".")[0])):
            return fs.AzureFileSystem(**given)
        return fs.FileSystem.from_uri(f"{scheme}://{host}/")[0]
    except (OSError, ValueError, NotImplementedError) as error:
        problem = str(error).splitlines()[0]
        if scheme == "hdfs" and find_spec("hdfs_native") is not None:
            return _without_libhdfs(host)
        needed = ""
        if scheme in ("hdfs", "viewfs"):
            needed = "; workers need hdfs-native and fsspec, or Hadoop's libhdfs, HADOOP_HOME and CLASSPATH"
        raise LocationError(f"{scheme}://{host}: {problem}{needed}") from None


def _without_libhdfs(host: str) -> Any:
    """Return HDFS as a client without Java reads it (hdfs-native), in pyarrow's form. Raises LocationError."""
    from pyarrow import fs

    name, _, port = host.partition(":")
    try:
        client = import_module("hdfs_native.fsspec").HdfsFileSystem(host=name, port=int(port) if port else None)
    except (OSError, RuntimeError, ValueError) as error:
        raise LocationError(f"hdfs://{host}: {error}") from None
    return fs.PyFileSystem(fs.FSSpecHandler(client))


def _connection(account: str) -> dict[str, str]:
    """Return what `AZURE_STORAGE_CONNECTION_STRING` has for an account, as arguments of pyarrow; empty if for another.

    An endpoint whose host does not begin with the account's name has it in the path, as Azurite. Without endpoints, and
    a suffix of them, they are in Azure's public cloud.
    """
    parts = (part.partition("=") for part in os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "").split(";"))
    given = {name.strip().lower(): value.strip() for name, _, value in parts}
    named = urlsplit(given.get("blobendpoint", "")).netloc.partition(".")[0]
    if given.get("accountname", named) != account:
        return {}
    found = {"account_name": account}
    for name, key in (("account_key", "accountkey"), ("sas_token", "sharedaccesssignature")):
        found |= {name: given[key]} if key in given else {}
    for kind in ("blob", "dfs"):
        suffix = given.get("endpointsuffix")
        cloud = suffix and f"{given.get('defaultendpointsprotocol', 'https')}://{account}.blob.{suffix}"
        if endpoint := given.get(f"{kind}endpoint", given.get("blobendpoint", cloud)):
            url = urlsplit(endpoint)
            host = url.netloc.removeprefix(account).replace(".blob.", f".{kind}.")
            found |= {f"{kind}_storage_authority": host, f"{kind}_storage_scheme": url.scheme}
    return found


def refuse_credentials(names: Iterable[str], what: str) -> None:
    """Raise LocationError for the first option among `names` that would carry a credential; its value is not shown."""
    for name in names:
        if _SECRET_NAME.search(name):
            raise LocationError(f"{what} {name}: credentials in options end in plans and event logs; {HOW}")


def _listed(schemes: tuple[str, ...]) -> str:
    return ", ".join(f"{each}://" for each in schemes)
