import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Prints, as JSON, what Kafka's own classes say of metadata versions and features.
 * What a release may lack is asked for by reflection, so that one program serves every release.
 */
public class FeatureLevels {
    public static void main(String[] args) throws Exception {
        List<MetadataVersion> all = Arrays.stream(MetadataVersion.VERSIONS)
            .filter(version -> version.featureLevel() > 0).toList();
        List<MetadataVersion> production = all.stream().filter(MetadataVersion::isProduction).toList();
        StringJoiner features = new StringJoiner(",\n    ", "{\n    ", "\n  }");
        features.add("\"metadata.version\": {\"min\": " + production.get(0).featureLevel()
            + ", \"max\": " + production.get(production.size() - 1).featureLevel() + ", \"dependencies\": {}}");
        for (Object feature : productionFeatures()) {
            features.add(feature(feature));
        }
        System.out.println("{\n  \"metadata_versions\": " + metadataVersions(production)
            + ",\n  \"unstable_metadata_versions\": " + metadataVersions(all.subList(production.size(), all.size()))
            + ",\n  \"features\": " + features + "\n}");
    }

    private static StringJoiner metadataVersions(List<MetadataVersion> versions) throws Exception {
        StringJoiner rows = new StringJoiner(",\n    ", "[\n    ", "\n  ]").setEmptyValue("[]");
        for (MetadataVersion version : versions) {
            rows.add(metadataVersion(version));
        }
        return rows;
    }

    private static String metadataVersion(MetadataVersion version) throws Exception {
        StringJoiner supports = new StringJoiner(", ", "[", "]");
        TreeMap<String, Object> records = new TreeMap<>();
        for (Method method : sortedMethods()) {
            if (method.getReturnType() == boolean.class && method.getName().endsWith("Supported")) {
                if ((boolean) method.invoke(version)) {
                    supports.add(quote(snake(method.getName().replaceAll("^is|Supported$", ""))));
                }
            } else if (method.getReturnType() == short.class && method.getName().endsWith("RecordVersion")) {
                try {
                    String record = method.getName().replaceAll("Version$", "");
                    records.put(record.substring(0, 1).toUpperCase() + record.substring(1), method.invoke(version));
                } catch (ReflectiveOperationException notAtThisLevel) {
                    continue;
                }
            }
        }
        TreeMap<String, Object> levels = new TreeMap<>();
        for (Object feature : productionFeatures()) {
            levels.put((String) call(feature, "featureName"), defaultLevel(feature, version));
        }
        return "{\"level\": " + version.featureLevel()
            + ", \"name\": " + quote(version.version())
            + ", \"release\": " + quote(version.shortVersion())
            + ", \"metadata_changed\": " + version.didMetadataChange()
            + ",\n     \"supports\": " + supports
            + ",\n     \"leader_epoch_bump_on_isr_shrink\": " + call(version, "isLeaderEpochBumpRequiredOnIsrShrink")
            + ",\n     \"record_versions\": " + object(records)
            + ",\n     \"default_levels\": " + object(levels) + "}";
    }

    private static List<Method> sortedMethods() {
        return Arrays.stream(MetadataVersion.class.getMethods())
            .filter(method -> method.getParameterCount() == 0 && method.getDeclaringClass() == MetadataVersion.class)
            .sorted((a, b) -> a.getName().compareTo(b.getName())).toList();
    }

    /** The features that a release offers: Features before 4.0 lists some that are not ready, with level 0 at most. */
    private static Collection<?> productionFeatures() throws Exception {
        for (String name : List.of("Feature", "Features")) {
            try {
                Collection<?> all = (Collection<?>) Class.forName("org.apache.kafka.server.common." + name)
                    .getField("PRODUCTION_FEATURES").get(null);
                List<Object> offered = new ArrayList<>();
                for (Object feature : all) {
                    if ((short) call(feature, "latestProduction") > 0) {
                        offered.add(feature);
                    }
                }
                return offered;
            } catch (ClassNotFoundException | NoSuchFieldException notInThisRelease) {
                continue;
            }
        }
        return List.of();
    }

    private static Object defaultLevel(Object feature, MetadataVersion version) throws Exception {
        try {
            return feature.getClass().getMethod("defaultLevel", MetadataVersion.class).invoke(feature, version);
        } catch (NoSuchMethodException before40) {
            return feature.getClass().getMethod("defaultValue", MetadataVersion.class).invoke(feature, version);
        }
    }

    private static String feature(Object feature) throws Exception {
        short max = (short) call(feature, "latestProduction");
        StringJoiner dependencies = new StringJoiner(", ", "{", "}");
        for (Object version : (Object[]) call(feature, "featureVersions")) {
            Map<?, ?> needs = (Map<?, ?>) call(version, "dependencies");
            short level = (short) call(version, "featureLevel");
            if (!needs.isEmpty()) {
                dependencies.add("\"" + level + "\": " + object(needs));
            }
        }
        return quote(call(feature, "featureName")) + ": {\"min\": " + call(feature, "minimumProduction")
            + ", \"max\": " + max + ", \"unstable_max\": " + call(feature, "latestTesting") + ", \"dependencies\": " + dependencies + "}";
    }

    private static Object call(Object target, String method) throws Exception {
        Method found = target.getClass().getMethod(method);
        found.setAccessible(true);
        return found.invoke(target);
    }

    private static String object(Map<?, ?> members) {
        return members.entrySet().stream().map(each -> quote(each.getKey()) + ": " + each.getValue())
            .sorted().collect(Collectors.joining(", ", "{", "}"));
    }

    private static String snake(String camel) {
        return camel.replaceAll("([a-z0-9])([A-Z])", "$1_$2").toLowerCase();
    }

    private static String quote(Object text) {
        return "\"" + text + "\"";
    }
}
