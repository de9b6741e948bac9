import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;

/**
 * Plans the rolling upgrade of a cluster, from what Kafka's Admin client says about it: waves of brokers that may
 * restart together. Those of a wave are in one rack, and no partition loses min.insync.replicas while they are away.
 *
 * <p>Prints a plan for {@code mockraft twin plan}, as JSON; a summary on stderr.
 */
class Waves {
    static final String MIN_ISR = "min.insync.replicas";

    /** A partition: its in-sync replicas, and how many of them may be away. */
    record Slack(List<Integer> isr, int spare) {}

    public static void main(String[] arguments) throws Exception {
        String release = arguments[1];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            Map<Integer, List<Slack>> partitions = partitionsByBroker(admin);
            Map<String, List<Integer>> racks = new TreeMap<>();
            for (Node node : admin.describeCluster().nodes().get()) {
                racks.computeIfAbsent(Objects.toString(node.rack(), ""), rack -> new ArrayList<>()).add(node.id());
            }
            List<String> steps = new ArrayList<>();
            racks.forEach((rack, brokers) -> {
                List<List<Integer>> waves = waves(brokers.stream().sorted().toList(), partitions);
                System.err.printf("rack %s: %d brokers in %d waves%n", rack, brokers.size(), waves.size());
                for (List<Integer> wave : waves) {
                    steps.add("{\"restart\": {\"brokers\": %s, \"together\": true, \"release\": \"%s\"}}"
                            .formatted(wave, release));
                }
            });
            steps.add("{\"upgrade\": {\"metadata.version\": \"%s\"}}".formatted(release));
            System.out.println("[" + String.join(",\n ", steps) + "]");
        }
    }

    /** Puts each broker into the first wave in which each of its partitions can spare it. */
    static List<List<Integer>> waves(List<Integer> brokers, Map<Integer, List<Slack>> partitions) {
        List<List<Integer>> waves = new ArrayList<>();
        List<Map<Slack, Integer>> away = new ArrayList<>();
        for (int broker : brokers) {
            List<Slack> own = partitions.getOrDefault(broker, List.of());
            int number = 0;
            while (number < waves.size() && !allows(away.get(number), own)) {
                number++;
            }
            if (number == waves.size()) {
                waves.add(new ArrayList<>());
                away.add(new java.util.IdentityHashMap<>());
            }
            waves.get(number).add(broker);
            for (Slack partition : own) {
                away.get(number).merge(partition, 1, Integer::sum);
            }
        }
        return waves;
    }

    /** A partition that cannot spare any replica loses one at a time. */
    static boolean allows(Map<Slack, Integer> away, List<Slack> own) {
        return own.stream().allMatch(each -> away.getOrDefault(each, 0) < Math.max(each.spare, 1));
    }

    static Map<Integer, List<Slack>> partitionsByBroker(Admin admin) throws Exception {
        var names = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get();
        Map<String, TopicDescription> topics = admin.describeTopics(names).allTopicNames().get();
        Map<ConfigResource, Config> configs = admin.describeConfigs(names.stream()
                        .map(name -> new ConfigResource(ConfigResource.Type.TOPIC, name))
                        .collect(Collectors.toList()))
                .all()
                .get();
        Map<Integer, List<Slack>> found = new HashMap<>();
        int count = 0, without = 0;
        for (TopicDescription topic : topics.values()) {
            Config config = configs.get(new ConfigResource(ConfigResource.Type.TOPIC, topic.name()));
            int least = Integer.parseInt(config.get(MIN_ISR).value());
            for (TopicPartitionInfo partition : topic.partitions()) {
                List<Integer> isr = partition.isr().stream().map(Node::id).toList();
                int spare = isr.size() - Math.min(least, partition.replicas().size());
                Slack slack = new Slack(isr, spare);
                isr.forEach(broker -> found.computeIfAbsent(broker, id -> new ArrayList<>()).add(slack));
                count++;
                without += spare < 1 ? 1 : 0;
            }
        }
        System.err.printf("%d partitions, %d of which cannot spare a replica%n", count, without);
        return found;
    }
}
