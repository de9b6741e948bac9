package kafka.server;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;

/** One `mockraft serve` with the options that a controller's configuration and first records ask for. */
final class MockraftProcess {
    /** Properties of a test with this prefix are options of `mockraft serve`: mockraft.stubs, mockraft.admin-port. */
    private static final String OPTION_PREFIX = "mockraft.";

    private static final int STOP_TIMEOUT_S = 20;

    /** Properties that mockraft makes from other options, or that are for the JVM of the test. */
    private static final Set<String> FROM_OTHER_OPTIONS = Set.of(
            "advertised.listeners", "authorizer.class.name", "broker.id", "controller.listener.names",
            "listener.security.protocol.map", "listeners", "log.dir", "log.dirs", "max.connections", "metadata.log.dir",
            "node.id", "process.roles", "sasl.enabled.mechanisms", "ssl.keystore.location", "ssl.truststore.location");

    private static final Set<String> AUTHORIZERS = Set.of("super.users", "allow.everyone.if.no.acl.found");

    private final KafkaConfig config;
    private final String clusterId;
    private final BootstrapMetadata bootstrapMetadata;
    private Process process;
    private int port;
    private Admin admin;
    private UncleanElections uncleanElections;

    MockraftProcess(KafkaConfig config, String clusterId, BootstrapMetadata bootstrapMetadata) {
        this.config = config;
        this.clusterId = clusterId;
        this.bootstrapMetadata = bootstrapMetadata;
    }

    String listenerName() {
        return config.originals().get("controller.listener.names").toString().split(",")[0];
    }

    int port() {
        return port;
    }

    synchronized void start(int port) throws IOException {
        this.port = port;
        List<String> command = new ArrayList<>(List.of(System.getenv().getOrDefault("MOCKRAFT", "mockraft").split(" ")));
        command.add("serve");
        // Its standard input is a pipe from this JVM: it stops with the JVM, however that ends.
        command.add("--until-stdin-ends");
        command.addAll(options());
        ProcessBuilder builder = new ProcessBuilder(command);
        // Kafka's harnesses count threads: whoever reads the log must not be a thread of this JVM.
        builder.redirectError(logFile());
        process = builder.start();
        BufferedReader output = process.inputReader();
        String line = output.readLine();
        if (line == null || !line.startsWith("mockraft ready")) {
            stop();
            throw new IOException(String.join(" ", command) + " did not start: " + line + "; its log is " + logFile().file());
        }
        try {
            uncleanElections = new UncleanElections(log());
        } catch (ReflectiveOperationException error) {
            throw new IOException(error);
        }
    }

    /** Appended to mockraft.log in the folder of the property mockraft.logs, else shown. */
    private static ProcessBuilder.Redirect logFile() {
        String folder = System.getProperty("mockraft.logs");
        if (folder == null) {
            return ProcessBuilder.Redirect.INHERIT;
        }
        return ProcessBuilder.Redirect.appendTo(new File(folder, "mockraft.log"));
    }

    private List<String> options() throws IOException {
        Map<String, Object> properties = new TreeMap<>(config.originals());
        SecurityProtocol protocol = securityProtocol();
        List<String> options = new ArrayList<>(List.of(
                "--release", MetadataVersion.latestProduction().shortVersion(),
                "--node-id", String.valueOf(config.nodeId()),
                "--cluster-id", clusterId,
                "--data-dir", dataDir().toString(),
                "--port", String.valueOf(port),
                "--advertised-host", "localhost",
                "--controller-listener-name", listenerName(),
                "--security-protocol", protocol.name));
        options.addAll(features());
        properties.forEach((key, value) -> {
            boolean isKafkas = KafkaConfig.configNames().contains(key) || AUTHORIZERS.contains(key);
            if (isKafkas && !FROM_OTHER_OPTIONS.contains(key) && value != null && !value.toString().isEmpty()) {
                options.addAll(List.of("--server-property", key + "=" + value));
            }
        });
        if (!String.valueOf(properties.getOrDefault("authorizer.class.name", "")).isEmpty()) {
            options.add("--authorizer");
        }
        if (protocol == SecurityProtocol.SASL_PLAINTEXT) {
            options.addAll(List.of("--sasl-enabled-mechanisms", "PLAIN", "--plain-users-file", plainUsers().toString()));
        }
        properties.forEach((key, value) -> {
            if (key.startsWith(OPTION_PREFIX)) {
                options.add("--" + key.substring(OPTION_PREFIX.length()));
                if (!value.toString().isEmpty()) {
                    options.add(value.toString());
                }
            }
        });
        return options;
    }

    /** Every feature's level: one without a record is at 0, whatever the metadata.version's default. */
    private List<String> features() {
        Map<String, Short> levels = new TreeMap<>();
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            levels.put(feature.featureName(), (short) 0);
        }
        for (ApiMessageAndVersion record : bootstrapMetadata.records()) {
            if (record.message() instanceof FeatureLevelRecord feature) {
                levels.put(feature.name(), feature.featureLevel());
            }
        }
        levels.remove("kraft.version");
        List<String> options = new ArrayList<>(List.of("--metadata-version", String.valueOf(levels.remove("metadata.version"))));
        levels.forEach((name, level) -> options.addAll(List.of("--feature", name + "=" + level)));
        return options;
    }

    /** What the harness has formatted, if that has the voters of a dynamic quorum, else a folder beside it. */
    private Path dataDir() {
        Path formatted = Path.of(config.metadataLogDir());
        boolean isDynamic = config.originals().get("controller.quorum.voters") == null;
        return isDynamic ? formatted : formatted.resolve("mockraft");
    }

    MetadataLog log() {
        return new MetadataLog(dataDir());
    }

    private SecurityProtocol securityProtocol() {
        return config.effectiveListenerSecurityProtocolMap().get(new ListenerName(listenerName()));
    }

    /** Users of the JVM's JAAS configuration, as PlainLoginModule has them. */
    private static Path plainUsers() throws IOException {
        StringBuilder lines = new StringBuilder();
        for (AppConfigurationEntry entry : loginEntries()) {
            entry.getOptions().forEach((key, value) -> {
                if (key.startsWith("user_")) {
                    if (!(key + value).lines().skip(1).toList().isEmpty() || key.contains("=")) {
                        throw new IllegalArgumentException("a line of mockraft's file of users cannot have " + key);
                    }
                    lines.append(key.substring("user_".length())).append('=').append(value).append('\n');
                }
            });
        }
        Path file = Files.createTempFile("mockraft-users", ".properties");
        file.toFile().deleteOnExit();
        return Files.writeString(file, lines);
    }

    /** A value of sasl.jaas.config, whose quoted strings have Java's escapes. */
    private static String quoted(Object value) {
        String text = String.valueOf(value).replace("\\", "\\\\").replace("\"", "\\\"");
        return '"' + text.replace("\n", "\\n").replace("\r", "\\r") + '"';
    }

    private static AppConfigurationEntry[] loginEntries() {
        AppConfigurationEntry[] entries = Configuration.getConfiguration().getAppConfigurationEntry("KafkaServer");
        return entries == null ? new AppConfigurationEntry[0] : entries;
    }

    boolean isLeader() {
        return quorum().leaderId() == config.nodeId();
    }

    long endOffset() {
        QuorumInfo quorum = quorum();
        return quorum.voters().stream()
                .filter(voter -> voter.replicaId() == quorum.leaderId())
                .mapToLong(QuorumInfo.ReplicaState::logEndOffset)
                .findFirst()
                .orElseThrow();
    }

    private synchronized QuorumInfo quorum() {
        if (admin == null) {
            Properties properties = new Properties();
            properties.put("bootstrap.controllers", "localhost:" + port);
            if (securityProtocol() == SecurityProtocol.SASL_PLAINTEXT) {
                properties.put("security.protocol", "SASL_PLAINTEXT");
                properties.put("sasl.mechanism", "PLAIN");
                Map<String, ?> login = loginEntries()[0].getOptions();
                properties.put("sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required"
                        + " username=%s password=%s;".formatted(quoted(login.get("username")), quoted(login.get("password"))));
            }
            admin = Admin.create(properties);
        }
        try {
            return admin.describeMetadataQuorum().quorumInfo().get();
        } catch (InterruptedException | ExecutionException error) {
            throw new IllegalStateException("DescribeQuorum of the controller at localhost:" + port, error);
        }
    }

    synchronized void stop() {
        if (admin != null) {
            admin.close();
            admin = null;
        }
        if (uncleanElections != null) {
            uncleanElections.close();
            uncleanElections = null;
        }
        if (process == null) {
            return;
        }
        process.destroy();
        try {
            if (!process.waitFor(STOP_TIMEOUT_S, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
        process = null;
    }

    void awaitEnd() {
        Process running = process;
        if (running != null) {
            running.onExit().join();
        }
    }
}
