import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.Properties;
import java.util.Scanner;
import java.util.TreeSet;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.utils.internals.Exit;
import org.apache.kafka.metadata.properties.MetaPropertiesEnsemble;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogManager;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import org.slf4j.LoggerFactory;

/**
 * Formats log directories, or begins the start of a broker on them, with Kafka's own classes. Each line of input is
 * words with tabs between: `start PROPERTIES`, `info PROPERTIES` or `format PROPERTIES CLUSTER-ID OPTION…`. Each line
 * of output is `live NAME…` (the last names of the directories a broker goes on with), `done TEXT`, or `refused TEXT`.
 */
public class LogDirOracle {
    public static void main(String[] args) {
        Exit.setHaltProcedure((code, message) -> {
            throw new IllegalStateException("halted");
        });
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split("\t");
            String answer;
            try {
                answer = words[0].equals("start") ? start(words[1]) : storageTool(words);
            } catch (Exception refusal) {
                answer = "refused " + refusal.getMessage();
            }
            System.out.println(answer.replace("\n", " "));
        }
        Exit.resetHaltProcedure();
        System.exit(0);
    }

    private static String storageTool(String[] words) throws Exception {
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream out = new PrintStream(printed);
        int code;
        if (words[0].equals("info")) {
            code = StorageTool.execute(new String[] {"info", "-c", words[1]}, out);
        } else {
            String[] arguments = new String[words.length + 2];
            arguments[0] = "format";
            arguments[1] = "-c";
            arguments[2] = words[1];
            arguments[3] = "-t";
            System.arraycopy(words, 2, arguments, 4, words.length - 2);
            code = StorageTool.execute(arguments, out);
        }
        return (code == 0 ? "done " : "refused ") + printed;
    }

    private static String start(String path) throws Exception {
        KafkaConfig config = new KafkaConfig(Utils.loadProps(path));
        MetaPropertiesEnsemble ensemble =
            KafkaRaftServer.initializeLogDirs(config, LoggerFactory.getLogger("start"), "")._1();
        LogManager logs = kafka.log.LogManager.apply(
            config,
            ensemble.errorLogDirs(),
            resource -> new Properties(),
            new KafkaScheduler(1),
            Time.SYSTEM,
            new BrokerTopicStats(false),
            new LogDirFailureChannel(config.logDirs().size())
        );
        TreeSet<String> live = new TreeSet<>();
        logs.directoryIds().keySet().forEach(each -> live.add(Path.of(each).getFileName().toString()));
        return "live " + String.join(" ", live);
    }
}
