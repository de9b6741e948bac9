package kafka.server;

import com.yammer.metrics.core.Meter;
import com.yammer.metrics.core.Metric;
import com.yammer.metrics.core.MetricName;
import com.yammer.metrics.core.MetricsRegistry;
import java.lang.reflect.Method;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;
import org.mockito.Mockito;

/** The controller's metric UncleanLeaderElectionsPerSec, by which Kafka's tests judge elections. */
final class UncleanElections implements AutoCloseable {
    private static final MetricName NAME = new MetricName(
            "kafka.controller", "ControllerStats", "UncleanLeaderElectionsPerSec", null,
            "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec");

    UncleanElections(MetadataLog log) throws ReflectiveOperationException {
        Meter meter = Mockito.mock(Meter.class);
        Mockito.doAnswer(call -> log.uncleanElections()).when(meter).count();
        // A registry makes its meters itself; only its subclasses may add one.
        Method add = MetricsRegistry.class.getDeclaredMethod("getOrAdd", MetricName.class, Metric.class);
        add.setAccessible(true);
        add.invoke(KafkaYammerMetrics.defaultRegistry(), NAME, meter);
    }

    @Override
    public void close() {
        KafkaYammerMetrics.defaultRegistry().removeMetric(NAME);
    }
}
