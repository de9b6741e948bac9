import java.lang.reflect.Field;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.function.Function;
import org.apache.kafka.common.config.ConfigDef;

/**
 * Prints, as JSON, Kafka's configuration keys by resource type in the order of their definition, and which broker keys
 * are the defaults of which topic keys. Classes move between releases, so they are looked up by name.
 */
public class ConfigKeys {
    public static void main(String[] args) throws Exception {
        Object none = new ConfigDef();
        System.out.println("{\n"
            + "  \"topic\": " + keys(first(none, "org.apache.kafka.storage.internals.log.LogConfig#configDefCopy"), Map.of())
            + ",\n  \"broker\": " + keys(
                withQuotas(
                    first(none, "kafka.server.KafkaConfig#configDef"),
                    first(none,
                        "org.apache.kafka.server.config.QuotaConfig#brokerQuotaConfigs",
                        "org.apache.kafka.server.config.QuotaConfigs#brokerQuotaConfigs",
                        "kafka.server.DynamicConfig$Broker$#brokerConfigDef")),
                (Map<?, ?>) first(Map.of(),
                    "org.apache.kafka.server.config.DynamicBrokerConfig#dynamicConfigUpdateModes",
                    "kafka.server.DynamicBrokerConfig$#dynamicConfigUpdateModes"))
            + ",\n  \"group\": " + keys(
                first(none,
                    "org.apache.kafka.coordinator.group.GroupConfig#CONFIG_DEF",
                    "org.apache.kafka.coordinator.group.GroupConfig#configDef"), Map.of())
            + ",\n  \"client_metrics\": " + keys(
                first(none, "org.apache.kafka.server.metrics.ClientMetricsConfigs#configDef"), Map.of())
            + ",\n  \"topic_synonyms\": " + synonyms((Map<?, ?>) first(Map.of(),
                "org.apache.kafka.server.config.ServerTopicConfigSynonyms#ALL_TOPIC_CONFIG_SYNONYMS"))
            + "\n}");
    }

    /** The broker's keys, and its quotas, which have no default and are described only where they are set. */
    private static ConfigDef withQuotas(Object broker, Object quotas) {
        ConfigDef all = new ConfigDef((ConfigDef) broker);
        for (ConfigDef.ConfigKey key : ((ConfigDef) quotas).configKeys().values()) {
            if (!all.names().contains(key.name)) {
                all.defineInternal(
                    key.name, key.type, ConfigDef.NO_DEFAULT_VALUE, key.validator, key.importance, key.documentation);
            }
        }
        return all;
    }

    /** The first of the members, each "class#member" and static or of a Scala object, that the release has. */
    private static Object first(Object none, String... places) throws Exception {
        for (String place : places) {
            String[] parts = place.split("#");
            try {
                Class<?> type = Class.forName(parts[0]);
                for (var method : type.getMethods()) {
                    if (method.getName().equals(parts[1]) && method.getParameterCount() == 0) {
                        return method.invoke(parts[0].endsWith("$") ? type.getField("MODULE$").get(null) : null);
                    }
                }
                return field(type, parts[1]).get(null);
            } catch (ClassNotFoundException | NoSuchFieldException notInThisRelease) {
                continue;
            }
        }
        return none;
    }

    private static String keys(Object def, Map<?, ?> updateModes) throws Exception {
        StringJoiner text = new StringJoiner(",\n    ", "[\n    ", "\n  ]");
        for (ConfigDef.ConfigKey key : ((ConfigDef) def).configKeys().values()) {
            StringJoiner fields = new StringJoiner(", ", "{", "}");
            fields.add("\"name\": " + quote(key.name)).add("\"type\": " + quote(key.type));
            if (key.hasDefault()) {
                Object value = key.defaultValue;
                fields.add("\"default\": " + (value == null ? "null" : quote(ConfigDef.convertToString(value, key.type))));
            }
            if (key.internalConfig) {
                fields.add("\"internal\": true");
            }
            if (updateModes.containsKey(key.name)) {
                fields.add("\"update_mode\": " + quote(updateModes.get(key.name)));
            }
            if (key.validator != null) {
                fields.add("\"validator\": " + validator(key.validator));
            }
            text.add(fields.toString());
        }
        return text.toString();
    }

    private static String validator(ConfigDef.Validator validator) throws Exception {
        StringJoiner fields = new StringJoiner(", ", "{", "}");
        fields.add("\"kind\": " + quote(validator.getClass().getSimpleName()));
        if (validator instanceof ConfigDef.Range) {
            fields.add("\"min\": " + get(validator, "min")).add("\"max\": " + get(validator, "max"));
        } else if (validator instanceof ConfigDef.ValidString) {
            fields.add("\"values\": " + strings(get(validator, "validStrings")));
        } else if (validator instanceof ConfigDef.ValidList list) {
            Field values = field(ConfigDef.ValidList.class, "validString");
            fields.add("\"values\": " + strings(get(values.get(list), "validStrings")));
            try {
                fields.add("\"empty_allowed\": " + get(list, "isEmptyAllowed"));
                fields.add("\"null_allowed\": " + get(list, "isNullAllowed"));
            } catch (NoSuchFieldException before42) {
                fields.add("\"empty_allowed\": true").add("\"null_allowed\": true");
            }
        } else {
            fields.add("\"says\": " + quote(validator));
        }
        return fields.toString();
    }

    private static String synonyms(Map<?, ?> all) throws Exception {
        StringJoiner text = new StringJoiner(",\n    ", "{\n    ", "\n  }");
        for (Map.Entry<?, ?> entry : new TreeMap<>(all).entrySet()) {
            StringJoiner synonyms = new StringJoiner(", ", "[", "]");
            for (Object synonym : (List<?>) entry.getValue()) {
                @SuppressWarnings("unchecked")
                Function<String, String> converter = (Function<String, String>) get(synonym, "converter");
                synonyms.add("{\"name\": " + quote(get(synonym, "name")) + ", \"times\": " + converter.apply("1") + "}");
            }
            text.add(quote(entry.getKey()) + ": " + synonyms);
        }
        return text.toString();
    }

    private static Object get(Object target, String name) throws Exception {
        return field(target.getClass(), name).get(target);
    }

    private static Field field(Class<?> type, String name) throws Exception {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }

    private static String strings(Object values) {
        StringJoiner text = new StringJoiner(", ", "[", "]");
        ((Collection<?>) values).forEach(value -> text.add(quote(value)));
        return text.toString();
    }

    private static String quote(Object text) {
        return "\"" + text.toString().replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + "\"";
    }
}
