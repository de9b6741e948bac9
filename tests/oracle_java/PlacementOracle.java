import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.Scanner;
import java.util.Iterator;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;

/**
 * Places partitions with Kafka's own placer. Each line of input is `chance partitions factor broker…`: chance says what
 * nextInt(n) always gives (`first`, `middle`, `last`), a broker is `id:rack:fenced` with an empty rack for none. Each
 * line of output is the replicas by partition, or what the placer says against it.
 */
public class PlacementOracle {
    public static void main(String[] args) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            System.out.println(place(lines.nextLine().split(" ")));
        }
    }

    private static String place(String[] words) {
        List<UsableBroker> brokers = new ArrayList<>();
        for (int i = 3; i < words.length; i++) {
            String[] parts = words[i].split(":");
            Optional<String> rack = parts[1].isEmpty() ? Optional.empty() : Optional.of(parts[1]);
            brokers.add(new UsableBroker(Integer.parseInt(parts[0]), rack, parts[2].equals("1")));
        }
        ClusterDescriber cluster = new ClusterDescriber() {
            @Override
            public Iterator<UsableBroker> usableBrokers() {
                return brokers.iterator();
            }

            @Override
            public Uuid defaultDir(int brokerId) {
                return Uuid.ZERO_UUID;
            }
        };
        PlacementSpec spec = new PlacementSpec(0, Integer.parseInt(words[1]), Short.parseShort(words[2]));
        try {
            List<String> placed = new ArrayList<>();
            new StripedReplicaPlacer(chance(words[0])).place(spec, cluster).assignments()
                .forEach(assignment -> placed.add(assignment.replicas().toString().replace(" ", "")));
            return String.join(" ", placed);
        } catch (RuntimeException refusal) {
            return refusal.getMessage();
        }
    }

    private static Random chance(String kind) {
        return new Random() {
            @Override
            public int nextInt(int bound) {
                return kind.equals("first") ? 0 : kind.equals("last") ? bound - 1 : bound / 2;
            }
        };
    }
}
