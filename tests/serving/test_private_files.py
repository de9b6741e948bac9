"""Files that only their owner may read."""

import stat
from pathlib import Path

from mockraft.serving.private_files import write_private


def test_a_new_private_file_is_its_owners_alone_and_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "state"
    for content in (b"a longer secret\n\xff", b"short"):
        write_private(path, content)
        assert path.read_bytes() == content
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
