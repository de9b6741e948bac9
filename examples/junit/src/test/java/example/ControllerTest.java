package example;

import static io.github.mockraft.Stubbing.injectError;
import static io.github.mockraft.Stubbing.request;
import static io.github.mockraft.Stubbing.times;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.mockraft.Mockraft;
import io.github.mockraft.MockraftTest;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.errors.ClusterAuthorizationException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Kafka's own Admin client while its controller misbehaves. */
@MockraftTest
class ControllerTest {
    private Admin admin;

    @BeforeEach
    void connect(Mockraft mockraft) {
        admin = Admin.create(Map.<String, Object>of(
                AdminClientConfig.BOOTSTRAP_CONTROLLERS_CONFIG, mockraft.bootstrap(),
                AdminClientConfig.RETRY_BACKOFF_MS_CONFIG, 10));
    }

    @AfterEach
    void disconnect() {
        admin.close();
    }

    @Test
    void theClientRetriesAnErrorThatPasses(Mockraft mockraft) throws Exception {
        mockraft.stub(request("DescribeQuorum"), times(2), injectError("REQUEST_TIMED_OUT"));

        assertEquals(3000, admin.describeMetadataQuorum().quorumInfo().get().leaderId());

        mockraft.verify(3, request("DescribeQuorum"));
    }

    @Test
    void theClientDoesNotRetryWhatCannotPass(Mockraft mockraft) {
        mockraft.stub(request("DescribeQuorum"), injectError("CLUSTER_AUTHORIZATION_FAILED"));

        var refused = assertThrows(
                ExecutionException.class, () -> admin.describeMetadataQuorum().quorumInfo().get());

        assertInstanceOf(ClusterAuthorizationException.class, refused.getCause());
        mockraft.verify(1, request("DescribeQuorum"));
    }
}
