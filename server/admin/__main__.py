"""`python -m mockraft.server.admin` prints the OpenAPI document, from which the clients are generated."""

import json
import sys

from mockraft.server.admin.app import create_app
from mockraft.server.double import Double
from mockraft.server.stubs.script import Script

if __name__ == "__main__":
    document = create_app(Double(dict, Script())).openapi()
    sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
