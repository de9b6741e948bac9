package example;

import static io.github.mockraft.Stubbing.injectError;
import static io.github.mockraft.Stubbing.request;
import static io.github.mockraft.Stubbing.times;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.github.mockraft.Mockraft;
import io.github.mockraft.MockraftTest;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.utils.Time;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A real broker, in this process, while its controller misbehaves. */
@MockraftTest
class BrokerTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    @TempDir
    private Path logDir;

    @Test
    void aBrokerRegistersAgainAfterRefusals(Mockraft mockraft) throws Exception {
        var registrations = request("BrokerRegistration").brokerId(1);
        mockraft.stub(registrations, times(2), injectError("DUPLICATE_BROKER_REGISTRATION"));

        KafkaRaftServer broker = broker(mockraft);
        broker.startup(); // returns when the controller has unfenced the broker
        try {
            mockraft.verify(3, registrations);
            assertEquals(1, mockraft.brokers().size());
            assertFalse(mockraft.brokers().get(0).getFenced());

            mockraft.stub(request("BrokerHeartbeat").brokerId(1), times(1), injectError("NOT_CONTROLLER"));
            mockraft.await(2, request("BrokerHeartbeat").brokerId(1), TIMEOUT);
        } finally {
            broker.shutdown();
        }
    }

    private KafkaRaftServer broker(Mockraft mockraft) throws Exception {
        Files.writeString(logDir.resolve("meta.properties"), """
                version=1
                cluster.id=%s
                node.id=1
                """.formatted(mockraft.clusterId()));
        Properties properties = new Properties();
        properties.put("process.roles", "broker");
        properties.put("node.id", "1");
        properties.put("controller.quorum.bootstrap.servers", mockraft.bootstrap());
        properties.put("controller.listener.names", "CONTROLLER");
        properties.put("listeners", "PLAINTEXT://127.0.0.1:0");
        properties.put("listener.security.protocol.map", "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT");
        properties.put("log.dirs", logDir.toString());
        return new KafkaRaftServer(KafkaConfig.fromProps(properties), Time.SYSTEM);
    }
}
