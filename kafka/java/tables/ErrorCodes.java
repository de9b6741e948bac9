import org.apache.kafka.common.protocol.Errors;

/** Prints Kafka's error codes as JSON: code, name, whether a client may retry, default message. */
public class ErrorCodes {
    public static void main(String[] args) {
        StringBuilder out = new StringBuilder("[\n");
        String separator = "";
        for (Errors error : Errors.values()) {
            boolean retriable = error.exception() instanceof org.apache.kafka.common.errors.RetriableException;
            out.append(separator).append(String.format(
                "  {\"code\": %d, \"name\": \"%s\", \"retriable\": %s, \"message\": %s}",
                error.code(), error.name(), retriable, quoted(error.exception() == null ? "" : error.message())));
            separator = ",\n";
        }
        System.out.println(out.append("\n]"));
    }

    private static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + "\"";
    }
}
