package io.github.mockraft;

import java.io.IOException;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * A plan on the twin of a real cluster, done by {@code mockraft twin plan} in virtual time.
 *
 * <p>{@code mockraft twin plan --save-test} writes tests with it.
 */
public final class TwinPlan {
    private static final int NOT_SAFE = 1;
    private static final String VERDICT = "mockraft twin plan: the plan is not safe";

    private final URL state;
    private final List<String> options;

    private TwinPlan(URL state, List<String> options) {
        this.state = state;
        this.options = options;
    }

    /** Returns a plan on the twin of a state, a file that is a resource, with options of {@code mockraft twin plan}. */
    public static TwinPlan on(URL state, String... options) {
        return new TwinPlan(Objects.requireNonNull(state, "the state is no resource: it belongs to src/test/resources"),
                List.of(options));
    }

    /** Does the steps, as YAML or JSON, and fails with their table if one is refused or makes partitions unavailable. */
    public void assertSafe(String steps) throws IOException, InterruptedException, URISyntaxException {
        Path plan = Files.createTempFile("plan", ".yaml");
        try {
            Files.writeString(plan, steps);
            List<String> command = new ArrayList<>(MockraftProcess.COMMAND);
            command.addAll(List.of("twin", "plan", "--from", Path.of(state.toURI()).toString(), plan.toString()));
            command.addAll(options);
            Process process = MockraftProcess.run(new ProcessBuilder(command).redirectErrorStream(true));
            process.getOutputStream().close();
            String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            int code = process.waitFor();
            // A program that fails for another reason may end with the same code.
            if (code == NOT_SAFE && output.contains(VERDICT)) {
                throw new AssertionError("the plan is not safe:\n" + output);
            }
            if (code != 0) {
                throw new IllegalStateException(String.join(" ", command) + " ended with " + code + ":\n" + output);
            }
        } finally {
            Files.delete(plan);
        }
    }
}
