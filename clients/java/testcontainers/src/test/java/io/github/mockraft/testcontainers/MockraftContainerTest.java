package io.github.mockraft.testcontainers;

import static io.github.mockraft.Stubbing.injectError;
import static io.github.mockraft.Stubbing.once;
import static io.github.mockraft.Stubbing.request;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.mockraft.Mockraft;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.testcontainers.utility.DockerImageName;

@Tag("docker")
class MockraftContainerTest {
    private static final DockerImageName IMAGE =
            DockerImageName.parse(System.getenv().getOrDefault("MOCKRAFT_IMAGE", "mockraft"));

    @Test
    void aContainersControllerIsStubbedAndVerified() {
        try (var container = new MockraftContainer(IMAGE).withOptions("--brokers", "1")) {
            container.start();
            Mockraft mockraft = container.mockraft();
            assertEquals(container.bootstrap(), mockraft.bootstrap());

            mockraft.reset();
            var heartbeats = request("BrokerHeartbeat").brokerId(1);
            var refused = mockraft.stub(heartbeats, once(), injectError("NOT_CONTROLLER"));

            mockraft.await(10, heartbeats, Duration.ofSeconds(20)); // the first came before the stub
            assertEquals(1, mockraft.calls(refused));
        }
    }
}
