"""Header versions of frames are those of the messages of every release."""

import numpy as np
from mockraft.codegen.every_release import every_release
from mockraft.spark_replay.streams.headers import header_versions
from mockraft.spark_replay.walks import API_KEY_MAX, API_VERSION_MAX


def test_header_versions_are_those_of_every_release() -> None:
    keys, versions = (each.ravel() for each in np.mgrid[-1 : API_KEY_MAX + 2, -1 : API_VERSION_MAX + 2])
    everything = every_release()
    for is_response, which in ((False, everything.request_header_version), (True, everything.response_header_version)):
        found = header_versions(keys.astype(np.int16), versions.astype(np.int16), np.full(len(keys), is_response))
        expected = [
            which(key, version) if key in everything.requests and 0 <= version <= API_VERSION_MAX else -1
            for key, version in zip(keys.tolist(), versions.tolist(), strict=True)
        ]
        assert found.tolist() == expected
        assert set(expected) >= {-1, 0 if is_response else 1, 1 if is_response else 2}
