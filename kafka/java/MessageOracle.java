import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.RawTaggedField;

/**
 * Kafka's own classes as an oracle, one question a line on stdin, one answer a line on stdout, tab separated:
 *
 *   json  NAME VERSION JSON  ->  ok HEX JSON     the JSON read by Kafka's converter, written as bytes and as JSON again
 *   tags  NAME VERSION JSON  ->  ok HEX JSON     the same, with unknown tagged fields in every struct
 *   new   NAME VERSION       ->  ok HEX JSON     a new object, whose fields have their defaults
 *   bytes NAME VERSION HEX   ->  ok HEX JSON     the bytes read by Kafka, then both written again
 *   log   NAME VERSION HEX   ->  ok HEX JSON     the same, with the JSON of the request log: sizes in place of records
 *   read  NAME VERSION HEX   ->  ok              the bytes can be read
 *
 * or, whatever goes wrong, "error" and the exception.
 */
public class MessageOracle {
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.", "org.apache.kafka.common.metadata.", "org.apache.kafka.raft.generated."
    };
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final Map<String, Subject> SUBJECTS = new HashMap<>();

    private record Subject(Class<?> data, Method read, Method write) {
        static Subject of(String name) {
            for (String prefix : PACKAGES) {
                for (String suffix : new String[] {"Data", ""}) {
                    try {
                        Class<?> data = Class.forName(prefix + name + suffix);
                        Class<?> converter = Class.forName(prefix + name + suffix + "JsonConverter");
                        return new Subject(data, converter.getMethod("read", JsonNode.class, short.class),
                            converter.getMethod("write", data, short.class, boolean.class));
                    } catch (ReflectiveOperationException tryTheNext) {
                        continue;
                    }
                }
            }
            throw new IllegalArgumentException("no such message: " + name);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = answer(line.split("\t", 4));
            } catch (Throwable thrown) {
                Throwable cause = thrown instanceof InvocationTargetException ? thrown.getCause() : thrown;
                answer = "error\t" + cause.toString().replaceAll("\\s+", " ");
            }
            out.write(answer);
            out.write('\n');
        }
        out.flush();
    }

    private static String answer(String[] question) throws Exception {
        Subject subject = SUBJECTS.computeIfAbsent(question[1], Subject::of);
        short version = Short.parseShort(question[2]);
        Message message = switch (question[0]) {
            case "json", "tags" -> (Message) subject.read.invoke(null, JSON.readTree(question[3]), version);
            case "new" -> (Message) subject.data.getConstructor().newInstance();
            default -> read(subject, version, HEX.parseHex(question[3]));
        };
        if (question[0].equals("read")) return "ok";
        if (question[0].equals("tags")) addUnknownTags(message);
        byte[] bytes = write(message, version);
        if (!Arrays.equals(write(read(subject, version, bytes), version), bytes)) {
            throw new IllegalStateException("Kafka does not read back what it wrote");
        }
        JsonNode json = (JsonNode) subject.write.invoke(null, message, version, !question[0].equals("log"));
        return "ok\t" + HEX.formatHex(bytes) + "\t" + JSON.writeValueAsString(json);
    }

    /**
     * Adds two fields that no version knows to a struct and to those inside it, unless they are new ones: a version may
     * not have them. The second has the highest tag.
     */
    private static void addUnknownTags(Message message) throws ReflectiveOperationException {
        message.unknownTaggedFields().add(new RawTaggedField(9000, new byte[] {1, 2, 3}));
        message.unknownTaggedFields().add(new RawTaggedField(Integer.MAX_VALUE - 1, new byte[200]));
        for (Field field : message.getClass().getDeclaredFields()) {
            field.setAccessible(true);
            Object value = field.get(message);
            if (value instanceof Collection<?> many) {
                for (Object each : many) {
                    if (each instanceof Message inside) addUnknownTags(inside);
                }
            } else if (value instanceof Message one && !one.equals(one.getClass().getConstructor().newInstance())) {
                addUnknownTags(one);
            }
        }
    }

    private static Message read(Subject subject, short version, byte[] bytes) throws Exception {
        Message message = (Message) subject.data.getConstructor().newInstance();
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        message.read(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) throw new IllegalStateException(buffer.remaining() + " bytes are left over");
        return message;
    }

    private static byte[] write(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) throw new IllegalStateException("Kafka wrote less than it said");
        return buffer.array();
    }
}
