package io.github.mockraft.testcontainers;

import com.github.dockerjava.api.command.InspectContainerResponse;
import io.github.mockraft.Mockraft;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.stream.Collectors;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.Network;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.images.builder.Transferable;
import org.testcontainers.utility.DockerImageName;

/**
 * A mockraft controller in a container. Brokers connect to {@link #bootstrap}: the host's address and a mapped port, or on
 * a {@link Network} the alias of {@link #withAdvertisedAlias}.
 */
public class MockraftContainer extends GenericContainer<MockraftContainer> {
    private static final int CONTROLLER_PORT = 9093;
    private static final int ADMIN_PORT = 8080;
    private static final String ARGUMENTS = "/tmp/mockraft-arguments";
    private static final String TOKEN = "/tmp/mockraft-admin-token";
    private static final String COPIED = "/tmp/mockraft-copied";

    private final String token = UUID.randomUUID().toString();
    private final List<String> options = new ArrayList<>();
    private String alias;
    private Mockraft mockraft;

    /** A container of the image {@code mockraft}, which {@code docker build -f docker/Dockerfile .} makes in a clone. */
    public MockraftContainer() {
        this(DockerImageName.parse("mockraft"));
    }

    /** A container of another image, or of a tag. */
    public MockraftContainer(DockerImageName image) {
        super(image);
        withExposedPorts(CONTROLLER_PORT, ADMIN_PORT);
        // The advertised address has the mapped port, which is known once the container runs.
        String serve = "until [ -f %s ]; do sleep 0.02; done; eval \"exec mockraft serve $(cat %s)\"";
        withCreateContainerCmdModifier(
                command -> command.withEntrypoint("sh", "-c", serve.formatted(COPIED, ARGUMENTS)));
        waitingFor(Wait.forHttp("/v1/health").forPort(ADMIN_PORT));
    }

    /** Adds options of {@code mockraft serve}. */
    public MockraftContainer withOptions(String... more) {
        options.addAll(List.of(more));
        return self();
    }

    /** Advertises the controller by an alias on the container's network, for brokers in containers of that network. */
    public MockraftContainer withAdvertisedAlias(String name) {
        alias = name;
        return withNetworkAliases(name);
    }

    @Override
    protected void containerIsStarting(InspectContainerResponse info) {
        copyFileToContainer(Transferable.of(token), TOKEN);
        String[] address = bootstrap().split(":");
        List<String> arguments = new ArrayList<>(List.of(
                "--host", "0.0.0.0", "--port", "" + CONTROLLER_PORT,
                "--advertised-host", address[0], "--advertised-port", address[1],
                "--admin-host", "0.0.0.0", "--admin-port", "" + ADMIN_PORT, "--admin-token-file", TOKEN,
                "--broker-heartbeat-interval-ms", "100"));
        arguments.addAll(options);
        String quoted = arguments.stream()
                .map(each -> "'" + each.replace("'", "'\\''") + "'")
                .collect(Collectors.joining(" "));
        copyFileToContainer(Transferable.of(quoted), ARGUMENTS);
        // Docker creates a file before it writes its content: the container waits for a last one, which is empty.
        copyFileToContainer(Transferable.of(""), COPIED);
    }

    @Override
    protected void containerIsStarted(InspectContainerResponse info) {
        mockraft = Mockraft.attach(URI.create("http://" + getHost() + ":" + getMappedPort(ADMIN_PORT)), token);
    }

    /** Returns the value of {@code controller.quorum.bootstrap.servers} for brokers. */
    public String bootstrap() {
        return alias == null ? getHost() + ":" + getMappedPort(CONTROLLER_PORT) : alias + ":" + CONTROLLER_PORT;
    }

    /** Returns the running controller: stubs, faults, verification, state. */
    public Mockraft mockraft() {
        return mockraft;
    }
}
