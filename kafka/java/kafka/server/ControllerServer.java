package kafka.server;

import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.util.concurrent.CompletableFuture;
import kafka.network.SocketServer;
import kafka.raft.KafkaRaftManager;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.mockito.Mockito;
import org.mockito.stubbing.Answer;
import org.opentest4j.TestAbortedException;
import scala.Option;

/**
 * Takes the place of Kafka's ControllerServer in its test harnesses and runs the controller as a mockraft process.
 *
 * <p>It stands in front of Kafka's jars on the class path. It has the methods that KafkaClusterTestKit, QuorumTestHarness
 * and tests need of a controller of any kind: address, configuration, end of the metadata log. The rest of Kafka's class
 * is not here, and a test that asks for it is bound to a controller in its own JVM.
 */
public class ControllerServer {
    private static final Answer<Object> ELSEWHERE = call -> {
        throw new UnsupportedOperationException(
                call.getMethod() + ": the controller is mockraft, which runs outside of this JVM");
    };

    private final SharedServer sharedServer;
    private final BootstrapMetadata bootstrapMetadata;
    private final CompletableFuture<Integer> firstBoundPort = new CompletableFuture<>();
    private final MockraftProcess process;
    private final Controller controller = Mockito.mock(Controller.class, ELSEWHERE);
    private final SocketServer socketServer = Mockito.mock(SocketServer.class, ELSEWHERE);

    /** The constructor that Kafka's harnesses call. */
    @SuppressWarnings({"unchecked", "this-escape"})
    public ControllerServer(
            SharedServer sharedServer, KafkaConfigSchema configSchema, BootstrapMetadata bootstrapMetadata) {
        this.sharedServer = sharedServer;
        this.bootstrapMetadata = bootstrapMetadata;
        KafkaConfig config = sharedServer.controllerConfig();
        if (config.processRoles().size() > 1) {
            throw new TestAbortedException("a combined node needs a controller inside its JVM");
        }
        process = new MockraftProcess(config, sharedServer.clusterId(), bootstrapMetadata);

        Mockito.doAnswer(call -> process.isLeader()).when(controller).isActive();
        // Callers then wait until every broker's own metadata cache has all brokers, which is the same condition.
        Mockito.doAnswer(call -> CompletableFuture.completedFuture(null)).when(controller).waitForReadyBrokers(
                Mockito.anyInt());
        Mockito.doAnswer(call -> CompletableFuture.completedFuture(process.log().topicIds())).when(controller)
                .findAllTopicIds(Mockito.any());
        Mockito.doAnswer(call -> process.port()).when(socketServer).boundPort(Mockito.any(ListenerName.class));

        Mockito.doReturn(config).when(socketServer).config();

        RaftLog log = Mockito.mock(RaftLog.class, ELSEWHERE);
        Mockito.doAnswer(call -> new LogOffsetMetadata(process.endOffset())).when(log).endOffset();
        KafkaRaftManager<ApiMessageAndVersion> raftManager = Mockito.mock(KafkaRaftManager.class, ELSEWHERE);
        Mockito.doReturn(log).when(raftManager).raftLog();
        sharedServer.raftManager_$eq(raftManager);
    }

    /** Start mockraft on the port that the harness keeps for this controller. */
    public void startup() {
        try {
            int port;
            // The harness has bound the port already, so that brokers can be configured with it.
            try (ServerSocketChannel bound = sharedServer.socketFactory().openServerSocket(
                    process.listenerName(), new InetSocketAddress("localhost", 0), -1, -1)) {
                port = bound.socket().getLocalPort();
            }
            process.start(port);
            firstBoundPort.complete(port);
        } catch (Exception error) {
            firstBoundPort.completeExceptionally(error);
            throw new RuntimeException(error);
        }
    }

    /** End mockraft. */
    public void shutdown() {
        process.stop();
    }

    public void awaitShutdown() {
        process.awaitEnd();
    }

    public SharedServer sharedServer() {
        return sharedServer;
    }

    public KafkaConfig config() {
        return sharedServer.controllerConfig();
    }

    public String clusterId() {
        return sharedServer.clusterId();
    }

    public BootstrapMetadata bootstrapMetadata() {
        return bootstrapMetadata;
    }

    public Controller controller() {
        return controller;
    }

    public SocketServer socketServer() {
        return socketServer;
    }

    public KafkaRaftManager<ApiMessageAndVersion> raftManager() {
        return sharedServer.raftManager();
    }

    public CompletableFuture<Integer> socketServerFirstBoundPortFuture() {
        return firstBoundPort;
    }

    /** None: mockraft's authorizer is in its own process, and the brokers' authorizers are asked alone. */
    public Option<Plugin<Authorizer>> authorizerPlugin() {
        return Option.empty();
    }
}
