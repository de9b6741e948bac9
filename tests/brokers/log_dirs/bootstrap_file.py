"""The bootstrap.checkpoint of a new cluster, as Kafka before 4.4 writes it into each directory."""

from mockraft.releases import release
from mockraft.server.controller.log.snapshot import BOOTSTRAP, encode
from mockraft.server.controller.settings.features import default_feature_levels
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.feature_level_record import FeatureLevelRecord

_LEVELS = {"metadata.version": 30, **default_feature_levels(30, release("4.3"))}
_RECORDS = [RecordAt(FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in _LEVELS.items()]
BOOTSTRAP_FILE = b"".join(encode(BOOTSTRAP, _RECORDS, voters=(), last_contained_log_timestamp_ms=0, now_ms=1))
