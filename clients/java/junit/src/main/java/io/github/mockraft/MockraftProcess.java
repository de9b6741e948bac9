package io.github.mockraft;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A mockraft process; it ends with this one, because it watches its standard input. */
record MockraftProcess(Process process, List<String> command) implements AutoCloseable {
    /** The command and its first arguments: the environment's MOCKRAFT, if it is set. */
    static final List<String> COMMAND =
            List.of(Optional.ofNullable(System.getenv("MOCKRAFT")).map(String::strip).filter(each -> !each.isEmpty())
                    .orElse("mockraft").split("\\s+"));

    private static final Pattern READY = Pattern.compile("mockraft ready bootstrap=\\S+ .*admin=(\\S+).*");
    private static final long START_TIMEOUT_S = 30;
    private static final long STOP_TIMEOUT_S = 20;

    static MockraftProcess start(String... options) throws IOException {
        List<String> command = new ArrayList<>(COMMAND);
        command.addAll(List.of("serve", "--port", "0", "--admin-port", "0", "--until-stdin-ends",
                "--broker-heartbeat-interval-ms", "100"));
        command.addAll(List.of(options));
        Process process = run(new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT));
        return new MockraftProcess(process, command);
    }

    /** Waits until the process is ready, and returns the address of its HTTP API. */
    URI adminUrl() throws IOException {
        BufferedReader output = process.inputReader();
        String line = firstLine(output);
        Matcher ready = READY.matcher(line == null ? "" : line);
        if (!ready.matches()) {
            process.destroyForcibly();
            String found = line == null ? "standard error has the reason" : "its output: " + line;
            throw new IOException(String.join(" ", command) + " did not start; " + found);
        }
        Thread rest = new Thread(() -> output.lines().forEach(each -> {}), "mockraft output");
        rest.setDaemon(true);
        rest.start();
        return URI.create(ready.group(1));
    }

    /** Starts a command of mockraft; the exception names the ways to install it. */
    static Process run(ProcessBuilder builder) throws IOException {
        try {
            return builder.start();
        } catch (IOException missing) {
            throw new IOException(
                    missing.getMessage() + ": pip install 'mockraft[admin]' (in a clone: '.[admin]'), "
                            + "or its path in the environment variable MOCKRAFT",
                    missing);
        }
    }

    private static String firstLine(BufferedReader output) {
        try {
            return CompletableFuture.supplyAsync(() -> output.lines().findFirst().orElse(null))
                    .get(START_TIMEOUT_S, TimeUnit.SECONDS);
        } catch (ExecutionException | TimeoutException none) {
            return null;
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return null;
        }
    }

    @Override
    public void close() {
        process.destroy();
        try {
            if (!process.waitFor(STOP_TIMEOUT_S, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException interrupted) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
