package kafka.server;

import java.util.Properties;
import org.apache.kafka.coordinator.group.GroupCoordinator;

/** Methods that tests of an older release call, with the types that they had; see {@code moved_classes.CHANGED}. */
public final class OlderCalls {
    private OlderCalls() {}

    /** Kafka 4.4 returns a map of strings. */
    public static Properties groupMetadataTopicConfigs(GroupCoordinator coordinator) {
        var configs = new Properties();
        configs.putAll(coordinator.groupMetadataTopicConfigs());
        return configs;
    }
}
