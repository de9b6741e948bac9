package io.github.mockraft;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.github.mockraft.api.ApiClient;
import io.github.mockraft.api.ApiException;
import io.github.mockraft.api.FaultsApi;
import io.github.mockraft.api.RequestsApi;
import io.github.mockraft.api.StateApi;
import io.github.mockraft.api.StubsApi;
import io.github.mockraft.api.SystemApi;
import io.github.mockraft.api.model.Action;
import io.github.mockraft.api.model.Advance;
import io.github.mockraft.api.model.Broker;
import io.github.mockraft.api.model.Complaint;
import io.github.mockraft.api.model.Complaints;
import io.github.mockraft.api.model.Fault;
import io.github.mockraft.api.model.FaultKind;
import io.github.mockraft.api.model.FaultParams;
import io.github.mockraft.api.model.FieldError;
import io.github.mockraft.api.model.Find;
import io.github.mockraft.api.model.Health;
import io.github.mockraft.api.model.Match;
import io.github.mockraft.api.model.NewFault;
import io.github.mockraft.api.model.NewStub;
import io.github.mockraft.api.model.Problem;
import io.github.mockraft.api.model.ReceivedRequest;
import io.github.mockraft.api.model.Reset;
import io.github.mockraft.api.model.Stub;
import io.github.mockraft.api.model.Trigger;
import io.github.mockraft.api.model.Verification;
import io.github.mockraft.api.model.Verify;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;

/**
 * A running mockraft controller: {@link #launch} starts one in a process of its own, {@link #attach} uses one that runs.
 *
 * <p>Every kind of fault is a method, such as {@code fence(1)}. Refused calls are {@link IllegalStateException}s with the server's text, failed verifications {@link
 * AssertionError}s with the nearest requests. {@link #client} is for the rest of the HTTP API: {@code new
 * RecordingsApi(mockraft.client())}.
 */
public final class Mockraft implements Faults, AutoCloseable {
    private static final Duration VERIFY_TIMEOUT = Duration.ofSeconds(5);
    private static final Duration WAIT_TIMEOUT = Duration.ofSeconds(10);
    private static final long POLL_INTERVAL_MS = 20;
    private static final String BODY = "#";
    private static final long REQUESTS_MAX = 1_000;

    private final ApiClient client;
    private final MockraftProcess process;
    private final URI adminUrl;
    private final Health health;

    private Mockraft(URI adminUrl, ApiClient client, MockraftProcess process) {
        this.adminUrl = adminUrl;
        this.client = client;
        this.process = process;
        client.updateBaseUri(adminUrl.toString());
        health = call(() -> new SystemApi(client).getHealth());
    }

    /**
     * Starts {@code mockraft serve} on free ports, with these further options. The environment's MOCKRAFT is the command,
     * if it is set.
     */
    public static Mockraft launch(String... options) throws IOException {
        MockraftProcess process = MockraftProcess.start(options);
        ApiClient client = newClient(HttpClient.newBuilder().sslContext(withoutCertificates()));
        CompletableFuture.runAsync(() -> prepare(client.getObjectMapper())); // while the process imports its HTTP API
        return new Mockraft(process.adminUrl(), client, process);
    }

    /** Lets Jackson make what the calls of a first test need, which takes a fifth of a second in a new JVM. */
    private static void prepare(ObjectMapper json) {
        NewStub stub = new NewStub().match(new Match()).trigger(new Trigger()).actions(List.of(new Action()));
        try {
            for (Object sent : List.of(new Reset(), stub, new Verify().match(new Match()))) {
                json.writeValueAsString(sent);
            }
            for (Class<?> received : List.of(Health.class, Stub.class, Verification.class, Complaints.class)) {
                json.readValue("{}", received);
            }
        } catch (JsonProcessingException never) {
            throw new UncheckedIOException(never);
        }
    }

    /** Returns a controller that runs; the token is that of {@code --admin-token-file}, null for none. */
    public static Mockraft attach(URI adminUrl, String token) {
        ApiClient client = newClient(HttpClient.newBuilder());
        if (token != null) {
            client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + token));
        }
        return new Mockraft(adminUrl, client, null);
    }

    /** Returns a context for a client of plain HTTP: the default one reads the JDK's certificates, for 0.2 s. */
    private static SSLContext withoutCertificates() {
        try {
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, new TrustManager[0], null);
            return context;
        } catch (GeneralSecurityException never) {
            throw new IllegalStateException(never);
        }
    }

    private static ApiClient newClient(HttpClient.Builder builder) {
        // The generated client builds an HttpClient, with threads and connections of its own, for each API object.
        HttpClient http = builder.version(HttpClient.Version.HTTP_1_1).build();
        return new ApiClient() {
            @Override
            public HttpClient getHttpClient() {
                return http;
            }
        };
    }

    /** Returns the value of {@code controller.quorum.bootstrap.servers} and {@code bootstrap.controllers}. */
    public String bootstrap() {
        return health.getBootstrap();
    }

    /** Returns the id with which brokers format their directories. */
    public String clusterId() {
        return health.getClusterId();
    }

    /** Returns the address of the HTTP API and the live page. */
    public URI adminUrl() {
        return adminUrl;
    }

    /** Returns the client of the generated APIs. */
    public ApiClient client() {
        return client;
    }

    /** Serves matching requests with actions, in their order; see {@link Stubbing}. */
    public Stub stub(Match match, Trigger trigger, Action... actions) {
        return stub(new NewStub().match(match).trigger(trigger).actions(List.of(actions)));
    }

    /** Serves every matching request with actions. */
    public Stub stub(Match match, Action... actions) {
        return stub(match, null, actions);
    }

    /** Adds a stub with any of its fields: a scenario, a priority, a name. */
    public Stub stub(NewStub stub) {
        return call(() -> new StubsApi(client).addStub(stub));
    }

    /** Returns how often a stub has served. */
    public long calls(Stub stub) {
        return call(() -> new StubsApi(client).getStub(stub.getId())).getCalls();
    }

    /** Removes a stub; it need not have been used then. */
    public void remove(Stub stub) {
        run(() -> new StubsApi(client).removeStub(stub.getId()));
    }

    /** Returns why a test should fail although no assertion does: unused stubs and faults, and what broke. */
    public List<Complaint> complaints() {
        return call(() -> new RequestsApi(client).listComplaints()).getComplaints();
    }

    @Override
    public Fault fault(FaultKind kind, FaultParams params) {
        return fault(new NewFault().kind(kind).params(params));
    }

    /** Adds a fault with any of its fields: the connections of a network fault, its share of them, a name. */
    public Fault fault(NewFault fault) {
        return call(() -> new FaultsApi(client).addFault(fault));
    }

    /** Returns how often a fault has acted. */
    public long fired(Fault fault) {
        return call(() -> new FaultsApi(client).getFault(fault.getId())).getFired();
    }

    /** Ends a fault; it need not have acted then. */
    public void remove(Fault fault) {
        run(() -> new FaultsApi(client).removeFault(fault.getId()));
    }

    /** Verifies that exactly so many requests match, and waits up to five seconds for them. */
    public void verify(long count, Match match) {
        verify(new Verify().match(match).count(count), VERIFY_TIMEOUT);
    }

    /** Waits until so many requests match. */
    public void await(long count, Match match, Duration timeout) {
        verify(new Verify().match(match).atLeast(count), timeout);
    }

    private void verify(Verify wanted, Duration timeout) {
        Verification found = call(() -> new RequestsApi(client).verifyRequests(wanted.withinMs(timeout.toMillis())));
        if (!found.getVerified()) {
            throw new AssertionError(found.getReport());
        }
    }

    /** Returns the newest 1,000 matching requests with their bodies, oldest first. */
    public List<ReceivedRequest> requests(Match match) {
        Find find = new Find().match(match).summary(false).limit(REQUESTS_MAX);
        return call(() -> new RequestsApi(client).findRequests(find)).getRequests();
    }

    /** Returns the registered brokers, by id. */
    public List<Broker> brokers() {
        return call(() -> new StateApi(client).listBrokers()).getBrokers();
    }

    /** Waits until so many brokers are registered and unfenced, for ten seconds at most. */
    public void awaitBrokers(int count) {
        runningBrokers(count);
    }

    /**
     * Returns the addresses of the registered brokers that are not fenced, for clients: host:port, with commas between. It
     * waits for the first of them as {@link #awaitBrokers} does.
     */
    public String bootstrapServers() {
        return runningBrokers(1).stream()
                .flatMap(each -> each.getListeners().stream().limit(1))
                .map(each -> each.getHost() + ":" + each.getPort())
                .collect(Collectors.joining(","));
    }

    private List<Broker> runningBrokers(int count) {
        long end = System.nanoTime() + WAIT_TIMEOUT.toNanos();
        while (true) {
            List<Broker> running = brokers().stream().filter(each -> !each.getFenced()).toList();
            if (running.size() >= count) {
                return running;
            }
            if (System.nanoTime() > end) {
                throw new AssertionError("%d of %d brokers are registered and unfenced after %d s; simulated ones: --brokers %d"
                        .formatted(running.size(), count, WAIT_TIMEOUT.toSeconds(), count));
            }
            try {
                Thread.sleep(POLL_INTERVAL_MS);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("interrupted while waiting for brokers", interrupted);
            }
        }
    }

    /** Moves the time of a controller that was started with {@code --virtual-clock}. */
    public void advanceClock(Duration by) {
        call(() -> new SystemApi(client).advanceClock(new Advance().ms(by.toMillis())));
    }

    /** Removes stubs, faults and requests, as between two tests. */
    public void reset() {
        run(() -> new SystemApi(client).reset(new Reset()));
    }

    /** Ends the process if {@link #launch} started it. AssertionError for {@link #complaints}. */
    @Override
    public void close() {
        try {
            verifyNoComplaints();
        } finally {
            end();
        }
    }

    void end() {
        if (process != null) {
            process.close();
        }
    }

    void verifyNoComplaints() {
        List<Complaint> found = complaints();
        if (!found.isEmpty()) {
            throw new AssertionError(found.stream().map(Complaint::getText).collect(Collectors.joining("\n\n")));
        }
    }

    private interface Call<T> {
        T run() throws ApiException;
    }

    private interface Command {
        void run() throws ApiException;
    }

    private static void run(Command command) {
        call(() -> {
            command.run();
            return null;
        });
    }

    private static <T> T call(Call<T> call) {
        try {
            return call.run();
        } catch (ApiException refused) {
            throw new IllegalStateException(inWords(refused), refused);
        }
    }

    /** Returns the text of a refusal, with the fields that are wrong. */
    private static String inWords(ApiException refused) {
        if (refused.getResponseBody() == null) {
            return "the controller does not answer: " + refused.getMessage();
        }
        try {
            Problem problem = ApiClient.createDefaultObjectMapper().readValue(refused.getResponseBody(), Problem.class);
            String places = problem.getErrors().stream()
                    .map(FieldError::getPointer).filter(each -> each != null && !each.equals(BODY)).collect(Collectors.joining(" and "));
            return places.isEmpty() ? problem.getDetail() : problem.getDetail() + " at " + places;
        } catch (IOException | IllegalArgumentException notAProblem) {
            return refused.getMessage();
        }
    }
}
