package kafka.server;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.PartitionRegistration;

/** State that tests ask a controller's objects for, read from the log of mockraft, which is in Kafka's format. */
final class MetadataLog {
    private final Path segment;

    MetadataLog(Path dataDir) {
        segment = dataDir.resolve("__cluster_metadata-0/00000000000000000000.log");
    }

    Map<String, Uuid> topicIds() throws IOException {
        Map<Uuid, String> names = new HashMap<>();
        for (ApiMessage record : records()) {
            if (record instanceof TopicRecord topic) {
                names.put(topic.topicId(), topic.name());
            } else if (record instanceof RemoveTopicRecord topic) {
                names.remove(topic.topicId());
            }
        }
        Map<String, Uuid> ids = new HashMap<>();
        names.forEach((id, name) -> ids.put(name, id));
        return ids;
    }

    long uncleanElections() throws IOException {
        return records().stream()
                .filter(record -> record instanceof PartitionChangeRecord change
                        && PartitionRegistration.electionWasUnclean(change.leaderRecoveryState()))
                .count();
    }

    private List<ApiMessage> records() throws IOException {
        List<ApiMessage> found = new ArrayList<>();
        for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(segment))).batches()) {
            for (Record record : batch.isControlBatch() ? List.<Record>of() : batch) {
                ByteBufferAccessor value = new ByteBufferAccessor(record.value());
                found.add(MetadataRecordSerde.INSTANCE.read(value, record.valueSize()).message());
            }
        }
        return found;
    }
}
