package kafka.server;

import com.yammer.metrics.core.Meter;
import com.yammer.metrics.core.Metric;
import com.yammer.metrics.core.MetricName;
import com.yammer.metrics.core.MetricsRegistry;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;
import org.mockito.Mockito;

/**
 * The controller's metric UncleanLeaderElectionsPerSec, counted in mockraft's log whenever a test reads it.
 *
 * <p>It is the one metric of a controller by which Kafka's tests judge what the controller did.
 */
final class UncleanElections implements AutoCloseable {
    private static final MetricName NAME = new MetricName(
            "kafka.controller", "ControllerStats", "UncleanLeaderElectionsPerSec", null,
            "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec");

    private final Path log;

    UncleanElections(Path dataDir) throws ReflectiveOperationException {
        log = dataDir.resolve("__cluster_metadata-0/00000000000000000000.log");
        Meter meter = Mockito.mock(Meter.class);
        Mockito.doAnswer(call -> count()).when(meter).count();
        // A registry makes its meters itself; only its subclasses may add one.
        Method add = MetricsRegistry.class.getDeclaredMethod("getOrAdd", MetricName.class, Metric.class);
        add.setAccessible(true);
        add.invoke(KafkaYammerMetrics.defaultRegistry(), NAME, meter);
    }

    private long count() throws IOException {
        long count = 0;
        for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(log))).batches()) {
            for (Record record : batch.isControlBatch() ? List.<Record>of() : batch) {
                count += isUncleanElection(record) ? 1 : 0;
            }
        }
        return count;
    }

    private static boolean isUncleanElection(Record record) {
        ByteBufferAccessor value = new ByteBufferAccessor(record.value());
        return MetadataRecordSerde.INSTANCE.read(value, record.valueSize()).message() instanceof PartitionChangeRecord change
                && PartitionRegistration.electionWasUnclean(change.leaderRecoveryState());
    }

    @Override
    public void close() {
        KafkaYammerMetrics.defaultRegistry().removeMetric(NAME);
    }
}
