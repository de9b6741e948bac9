import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfigProperty;
import org.apache.kafka.common.test.api.ClusterTest;
import org.apache.kafka.common.test.api.Type;

/** A topic that the controller refuses once, asked for at a broker, which forwards the request. */
class RefusedTopicTest {
    @ClusterTest(
            types = Type.KRAFT,
            serverProperties = @ClusterConfigProperty(key = "mockraft.stubs", value = "stubs.json"))
    void aTopicIsRefusedOnceAndThenCreated(ClusterInstance cluster) throws Exception {
        NewTopic topic = new NewTopic("orders", 1, (short) 1);
        try (Admin admin = cluster.admin()) {
            var refused = assertThrows(
                    ExecutionException.class, () -> admin.createTopics(List.of(topic)).all().get());
            assertInstanceOf(PolicyViolationException.class, refused.getCause());
            admin.createTopics(List.of(topic)).all().get();
        }
    }
}
