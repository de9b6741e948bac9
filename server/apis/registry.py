"""The APIs of the controller listener: every API in this table is handled and offered in ApiVersions.

The module of an API, and with it the messages that only it uses, is imported with the first request for it: most
controllers get requests for a few of them, and importing them all is a tenth of the time until a controller answers.
"""

from mockraft.server.api_modules import MODULES
from mockraft.server.apis.api import AnyApi, later

APIS: dict[int, AnyApi] = {api_key: later(f"mockraft.server.apis.{name}") for api_key, name in MODULES.items()}
"""APIs by API key, in ascending order."""
