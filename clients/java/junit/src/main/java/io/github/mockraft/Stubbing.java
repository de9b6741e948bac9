package io.github.mockraft;

import io.github.mockraft.api.model.Action;
import io.github.mockraft.api.model.Change;
import io.github.mockraft.api.model.Match;
import io.github.mockraft.api.model.Trigger;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Matches, triggers and actions of stubs, for static imports. */
public final class Stubbing {
    private Stubbing() {}

    /** Matches requests of an API, or of one of several; further conditions follow ({@code .brokerId(1)}). */
    public static Match request(String... apis) {
        return new Match().api(apis.length == 1 ? apis[0] : List.of(apis));
    }

    /** Matches requests of an API by a constant of Kafka's {@code ApiKeys}. */
    public static Match request(Enum<?> apiKey) {
        return request(apiKey.name());
    }

    /** Fires for the first matching request. */
    public static Trigger once() {
        return new Trigger().once(true);
    }

    /** Fires for the first matching requests, up to this number. */
    public static Trigger times(long n) {
        return new Trigger().times(n);
    }

    /** Fires for the matching request of this number, from 1. */
    public static Trigger onCall(long n) {
        return new Trigger().onCall(n);
    }

    /** Answers with an error by Kafka's name, such as NOT_CONTROLLER; the controller does not see the request. */
    public static Action injectError(String name) {
        return new Action().injectError(name);
    }

    /** Answers with an error by a constant of Kafka's {@code Errors}. */
    public static Action injectError(Enum<?> error) {
        return injectError(error.name());
    }

    /** Answers with these fields of the response, the others at their defaults. */
    public static Action answer(Map<String, ?> fields) {
        return new Action().answer(fields);
    }

    /** Lets the controller answer, and changes fields of its answer by path. */
    public static Action changeResponse(Map<String, ?> fields) {
        return new Action().change(new Change().response(fields));
    }

    /** Delays the answer. */
    public static Action delayOn(Duration delay) {
        return new Action().delayOn(delay.toMillis());
    }

    /** Sends no answer. */
    public static Action drop() {
        return new Action().drop(true);
    }

    /** Closes the connection. */
    public static Action disconnectOn() {
        return new Action().disconnectOn(true);
    }
}
