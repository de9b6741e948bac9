package io.github.mockraft;

import io.github.mockraft.api.model.Match;
import io.github.mockraft.api.model.ReceivedRequest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;

/** The extension of {@link MockraftTest}. */
final class MockraftExtension implements BeforeEachCallback, AfterEachCallback, ParameterResolver {
    private static final Namespace NAMESPACE = Namespace.create(MockraftExtension.class);
    private static final int REQUESTS_SHOWN = 20;

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == Mockraft.class;
    }

    @Override
    public Mockraft resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return controller(context);
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        controller(context).reset();
    }

    @Override
    public void afterEach(ExtensionContext context) {
        Mockraft mockraft = controller(context);
        Throwable failure = context.getExecutionException().orElse(null);
        if (failure != null) {
            failure.addSuppressed(new ReceivedRequests(mockraft.requests(new Match())));
            return;
        }
        try {
            mockraft.verifyNoComplaints();
        } catch (AssertionError error) {
            error.addSuppressed(new ReceivedRequests(mockraft.requests(new Match())));
            throw error;
        }
    }

    private static Mockraft controller(ExtensionContext context) {
        ExtensionContext owner = context;
        MockraftTest annotation = null;
        while (annotation == null) {
            annotation = owner.getElement()
                    .flatMap(element -> AnnotationSupport.findAnnotation(element, MockraftTest.class))
                    .orElse(null);
            if (annotation == null) {
                owner = owner.getParent().orElseThrow();
            }
        }
        String[] options = annotation.value();
        return owner.getStore(NAMESPACE)
                .getOrComputeIfAbsent(owner.getUniqueId(), key -> new Running(options), Running.class)
                .mockraft;
    }

    /** A controller that ends with the context whose store has it; JUnit before 5.13 does not know AutoCloseable. */
    private static final class Running implements ExtensionContext.Store.CloseableResource, AutoCloseable {
        private final Mockraft mockraft;

        Running(String... options) {
            try {
                mockraft = Mockraft.launch(options);
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        }

        @Override
        public void close() {
            mockraft.end();
        }
    }

    /** The last requests that the controller received, as text below a failure. */
    private static final class ReceivedRequests extends Exception {
        ReceivedRequests(List<ReceivedRequest> all) {
            super(text(all.subList(Math.max(0, all.size() - REQUESTS_SHOWN), all.size())), null, false, false);
        }

        private static String text(List<ReceivedRequest> requests) {
            return requests.stream()
                    .map(each -> "\n  #%d %s v%d of client %s: served by %s, error %s".formatted(
                            each.getId(), each.getApi(), each.getApiVersion(), each.getClientId(), each.getServedBy(),
                            each.getError()))
                    .collect(Collectors.joining("", "the controller received", ""));
        }
    }
}
