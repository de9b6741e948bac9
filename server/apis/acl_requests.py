"""The check of the ACL requests that an authorizer is configured."""

from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes


def check_has_authorizer(controller: Controller, message: str) -> None:
    """Raise ApiError SECURITY_DISABLED if there is no authorizer."""
    if controller.authorizer is None:
        raise ApiError(error_codes.SECURITY_DISABLED, message)
