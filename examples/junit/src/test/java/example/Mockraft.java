package example;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A mockraft controller in a process of its own, and its admin API. The command is the environment's MOCKRAFT. */
final class Mockraft implements AutoCloseable {
    private static final Pattern READY =
            Pattern.compile("mockraft ready bootstrap=(\\S+) cluster_id=(\\S+) node_id=\\S+ admin=(\\S+)");

    private final HttpClient http = HttpClient.newHttpClient();
    private final Process process;
    private final String admin;
    final String bootstrap;
    final String clusterId;

    private Mockraft(Process process, Matcher ready) {
        this.process = process;
        this.bootstrap = ready.group(1);
        this.clusterId = ready.group(2);
        this.admin = ready.group(3);
    }

    /** Starts `mockraft serve` on free ports with these further options. */
    static Mockraft start(String... options) throws IOException {
        String said = System.getenv().getOrDefault("MOCKRAFT", "mockraft");
        List<String> command = new ArrayList<>(List.of(said.split(" ")));
        command.addAll(List.of("serve", "--port", "0", "--admin-port", "0"));
        command.addAll(List.of(options));
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        BufferedReader output = process.inputReader();
        String line = output.readLine();
        Matcher ready = READY.matcher(line == null ? "" : line);
        if (!ready.matches()) {
            process.destroy();
            throw new IOException("mockraft did not start: " + line);
        }
        return new Mockraft(process, ready);
    }

    /** Puts a stub in the way, as JSON; gives it back as it is, with its id. */
    String stub(String json) {
        return send("POST", "/v1/stubs", json);
    }

    /** Whether so many requests match, waiting a little for those under way. */
    boolean verify(String match, int count) {
        String body = "{\"match\": %s, \"count\": %d, \"withinMs\": 5000}".formatted(match, count);
        String answer = send("POST", "/v1/requests/verify", body);
        return answer.contains("\"verified\":true");
    }

    /** Takes stubs, faults and requests away, between two tests. */
    void reset() {
        send("POST", "/v1/reset", "");
    }

    /** One request to the admin API; IllegalStateException with the problem's text when it is refused. */
    String send(String method, String path, String body) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(admin + path))
                .header("Content-Type", "application/json")
                .method(method, HttpRequest.BodyPublishers.ofString(body))
                .build();
        try {
            HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
            if (response.statusCode() >= 400) {
                throw new IllegalStateException(response.body());
            }
            return response.body();
        } catch (IOException | InterruptedException error) {
            throw new IllegalStateException(method + " " + path, error);
        }
    }

    @Override
    public void close() throws InterruptedException {
        process.destroy();
        if (!process.waitFor(20, TimeUnit.SECONDS)) {
            process.destroyForcibly();
        }
    }
}
