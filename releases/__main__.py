"""Write the page of the gate's table: `python -m mockraft.releases > docs/reference/behaviours.md`."""

import sys

from mockraft.releases.behaviour_page import as_markdown

if __name__ == "__main__":
    sys.stdout.write(as_markdown())
