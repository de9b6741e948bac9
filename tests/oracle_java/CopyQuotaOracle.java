import java.util.Scanner;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.stats.SimpleRate;
import org.apache.kafka.common.utils.Utils;

/**
 * Measures copying with Kafka's own rate and picks movers with its hash. A line of input is `rate ms bytes`: what was
 * copied at this time (nothing when 0), answered by the rate then; or `mover topic partition movers`. `new` begins anew.
 */
public class CopyQuotaOracle {
    public static void main(String[] args) {
        Scanner lines = new Scanner(System.in);
        MetricConfig config = new MetricConfig().timeWindow(1, TimeUnit.SECONDS).samples(11);
        SimpleRate rate = new SimpleRate();
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            if (words[0].equals("new")) {
                rate = new SimpleRate();
                System.out.println("new");
            } else if (words[0].equals("rate")) {
                long ms = Long.parseLong(words[1]);
                if (!words[2].equals("0")) {
                    rate.record(config, Double.parseDouble(words[2]), ms);
                }
                System.out.println(Math.round(rate.measure(config, ms)));
            } else {
                int hash = 31 * words[1].hashCode() + Integer.parseInt(words[2]);
                System.out.println(Utils.abs(hash) % Integer.parseInt(words[3]));
            }
        }
    }
}
