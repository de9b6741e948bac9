package example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.errors.ClusterAuthorizationException;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What Kafka's own Admin client does when its controller misbehaves. */
class ControllerTest {
    private static final String DESCRIBE_QUORUM = "{\"api\": \"DescribeQuorum\"}";

    private static Mockraft mockraft;

    @BeforeAll
    static void start() throws Exception {
        mockraft = Mockraft.start("--brokers", "1");
    }

    @AfterAll
    static void stop() throws Exception {
        mockraft.close();
    }

    @BeforeEach
    void reset() {
        mockraft.reset();
    }

    private static Admin admin() {
        return Admin.create(Map.<String, Object>of(
                AdminClientConfig.BOOTSTRAP_CONTROLLERS_CONFIG, mockraft.bootstrap,
                AdminClientConfig.CLIENT_ID_CONFIG, "operator",
                AdminClientConfig.RETRY_BACKOFF_MS_CONFIG, 10));
    }

    @Test
    void theControllerLeadsItsQuorum() throws Exception {
        try (Admin admin = admin()) {
            assertEquals(3000, admin.describeMetadataQuorum().quorumInfo().get().leaderId());
        }
        assertTrue(mockraft.verify("{\"api\": \"DescribeQuorum\", \"clientId\": \"operator\"}", 1));
    }

    @Test
    void theClientAsksAgainAfterAnErrorThatPasses() throws Exception {
        mockraft.stub("""
                {"match": {"api": "DescribeQuorum"}, "trigger": {"times": 2},
                 "actions": [{"injectError": "REQUEST_TIMED_OUT"}]}""");
        try (Admin admin = admin()) {
            assertEquals(3000, admin.describeMetadataQuorum().quorumInfo().get().leaderId());
        }
        assertTrue(mockraft.verify(DESCRIBE_QUORUM, 3));
    }

    @Test
    void theClientGivesUpWhereAskingAgainIsNoUse() {
        mockraft.stub("""
                {"match": {"api": "DescribeQuorum"},
                 "actions": [{"injectError": "CLUSTER_AUTHORIZATION_FAILED"}]}""");
        try (Admin admin = admin()) {
            var refused = assertThrows(
                    ExecutionException.class, () -> admin.describeMetadataQuorum().quorumInfo().get());
            assertInstanceOf(ClusterAuthorizationException.class, refused.getCause());
        }
        assertTrue(mockraft.verify(DESCRIBE_QUORUM, 1));
    }

    @Test
    void aBrokerThatIsCutOffStaysFenced() {
        mockraft.stub("""
                {"match": {"api": "BrokerHeartbeat", "brokerId": 1}, "actions": ["drop"]}""");
        assertTrue(mockraft.send("POST", "/v1/brokers/1/expire-session", "").contains("\"fenced\":true"));
        assertTrue(mockraft.verify("{\"api\": \"BrokerHeartbeat\", \"brokerId\": 1}", 1));
        assertTrue(mockraft.send("GET", "/v1/brokers/1", "").contains("\"fenced\":true"));
    }

    @Test
    void aStubThatMakesNoSenseSaysWhere() {
        var refused = assertThrows(
                IllegalStateException.class, () -> mockraft.stub("{\"match\": {\"api\": \"BrokerHeartbeet\"}}"));
        assertTrue(refused.getMessage().contains("#/match/api"), refused.getMessage());
    }
}
