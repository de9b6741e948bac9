import java.util.StringJoiner;
import org.apache.kafka.common.message.ApiMessageType.ListenerType;
import org.apache.kafka.common.protocol.ApiKeys;

/** Prints, as JSON, the versions of each API that a release offers on the controller's listener. */
public class ApiVersions {
    public static void main(String[] args) {
        StringJoiner apis = new StringJoiner(",\n  ", "{\n  ", "\n}");
        for (ApiKeys api : ApiKeys.apisForListener(ListenerType.CONTROLLER)) {
            api.toApiVersion(false).ifPresent(versions -> apis.add(String.format(
                "\"%d\": [%d, %d]", api.id, versions.minVersion(), versions.maxVersion())));
        }
        System.out.println(apis);
    }
}
