import static io.github.mockraft.Stubbing.injectError;
import static io.github.mockraft.Stubbing.once;
import static io.github.mockraft.Stubbing.request;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import io.github.mockraft.Mockraft;
import io.github.mockraft.MockraftTest;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.Socket;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** A first test as JUnit runs it: one stub, one refused request, one verification; its result is printed. */
@MockraftTest({"--brokers", "1"})
public class FirstTest implements TestExecutionListener {
    private static final byte[] API_VERSIONS = {0, 0, 0, 14, 0, 18, 0, 0, 0, 0, 0, 7, 0, 4, 'j', 'a', 'v', 'a'};
    private static final int UNSUPPORTED_VERSION = 35;

    @Test
    void aStubServesOneClientOnce(Mockraft mockraft) throws IOException {
        var match = request("ApiVersions").clientId("java");
        mockraft.stub(match, once(), injectError("UNSUPPORTED_VERSION"));
        String[] address = mockraft.bootstrap().split(":");
        try (Socket socket = new Socket(address[0], Integer.parseInt(address[1]))) {
            socket.getOutputStream().write(API_VERSIONS);
            DataInputStream answer = new DataInputStream(socket.getInputStream());
            answer.readLong(); // the length and the correlation id
            Assertions.assertEquals(UNSUPPORTED_VERSION, answer.readShort());
        }
        mockraft.verify(1, match);
    }

    @Override
    public void executionFinished(TestIdentifier what, TestExecutionResult result) {
        if (what.isTest()) {
            System.out.println(result.getStatus());
        }
    }

    public static void main(String[] arguments) {
        var request = LauncherDiscoveryRequestBuilder.request().selectors(selectClass(FirstTest.class)).build();
        LauncherFactory.create().execute(request, new FirstTest());
    }
}
