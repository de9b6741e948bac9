from dataclasses import fields, replace
from importlib import import_module

import pytest
from mockraft.server.apis.api import Api
from mockraft.server.apis.registry import APIS

from ...rows import each_row


def test_apis_are_in_the_order_of_their_keys() -> None:
    assert list(APIS) == sorted(APIS)


@each_row("api_key", list(APIS))
def test_an_entry_is_the_api_of_its_module(api_key: int) -> None:
    listed = APIS[api_key]
    api = import_module(listed.module).API

    assert (api.request.api_key, api.response.api_key) == (api_key, api_key)
    for field in fields(Api):
        if field.name != "module":
            assert getattr(listed, field.name) is getattr(api, field.name)
    assert listed.versions == api.versions


def test_other_versions_of_an_entry() -> None:
    narrowed = APIS[19].in_versions(5, 6)

    assert (narrowed.versions, narrowed.request) == ((5, 6), APIS[19].request)
    assert replace(narrowed, served_by="a test").in_versions(6, 6).served_by == "a test"
    with pytest.raises(AttributeError, match="no_such_field"):
        _ = getattr(narrowed, "no_such_field")  # noqa: B009 - mypy knows that there is none
