import java.util.Scanner;
import org.apache.kafka.server.authorizer.internals.CidrUtils;

/**
 * Each line of input is `address range`. Each line of output is whether Kafka's authorizer finds the address in the
 * range, and what it says against the range, if anything.
 */
public class HostRangeOracle {
    public static void main(String[] args) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            System.out.println(CidrUtils.isInRange(words[0], words[1]) + " " + refusal(words[1]));
        }
    }

    private static String refusal(String range) {
        try {
            CidrUtils.validate(range);
            return "";
        } catch (IllegalArgumentException refused) {
            return refused.getMessage();
        }
    }
}
