package io.github.mockraft;

import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Tests with a mockraft controller, which parameters of type {@link Mockraft} receive.
 *
 * <p>The controller is started for the first test of the class (or of the method, if that is annotated), reset before
 * each, and stopped after the last. A stub or a fault that was never used fails its test; the failure of a test has the
 * last requests that the controller received as a suppressed exception.
 */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@ExtendWith(MockraftExtension.class)
public @interface MockraftTest {
    /** Options of {@code mockraft serve}, such as {@code {"--brokers", "1"}}. */
    String[] value() default {};
}
