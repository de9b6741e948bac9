package io.github.mockraft;

import static io.github.mockraft.Stubbing.answer;
import static io.github.mockraft.Stubbing.changeResponse;
import static io.github.mockraft.Stubbing.delayOn;
import static io.github.mockraft.Stubbing.disconnectOn;
import static io.github.mockraft.Stubbing.drop;
import static io.github.mockraft.Stubbing.injectError;
import static io.github.mockraft.Stubbing.onCall;
import static io.github.mockraft.Stubbing.once;
import static io.github.mockraft.Stubbing.request;
import static io.github.mockraft.Stubbing.times;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectMethod;

import io.github.mockraft.api.model.Match;
import io.github.mockraft.api.model.Stub;
import java.io.IOException;
import java.net.Socket;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.testkit.engine.EngineTestKit;

@MockraftTest({"--brokers", "1"})
class MockraftTestTest {
    private static final Duration LONG = Duration.ofSeconds(20);
    private static final Match HEARTBEATS = request("BrokerHeartbeat").brokerId(1);

    private Mockraft before;

    @BeforeEach
    void keep(Mockraft mockraft) {
        before = mockraft;
    }

    @Test
    void aBrokerRetriesARefusedHeartbeat(Mockraft mockraft) {
        Stub refused = mockraft.stub(HEARTBEATS, once(), injectError("NOT_CONTROLLER"));
        mockraft.await(20, HEARTBEATS, LONG); // some may have come before the stub
        assertEquals(1, mockraft.calls(refused));
        assertTrue(mockraft.requests(HEARTBEATS).stream().anyMatch(each -> "NOT_CONTROLLER".equals(each.getError())));
        assertSame(before, mockraft);
    }

    @Test
    void aFaultIsWhatABrokerGets(Mockraft mockraft) {
        var stale = mockraft.staleBrokerEpoch(1);
        mockraft.await(20, HEARTBEATS, LONG); // some may have come before the fault
        var received = mockraft.requests(HEARTBEATS);
        assertEquals("STALE_BROKER_EPOCH", received.get(received.size() - 1).getError());
        assertEquals(1, mockraft.brokers().get(0).getBrokerId());
        assertTrue(mockraft.fired(stale) > 0);
    }

    @Test
    void aFenceLastsUntilItIsRemoved(Mockraft mockraft) throws IOException {
        mockraft.awaitBrokers(1);
        var fence = mockraft.fence(1);
        assertTrue(mockraft.brokers().get(0).getFenced());
        mockraft.remove(fence);
        String[] address = mockraft.bootstrapServers().split(":");
        new Socket(address[0], Integer.parseInt(address[1])).close();
    }

    @Test
    void everyActionAndTriggerIsAccepted(Mockraft mockraft) {
        var votes = request("Vote", "BeginQuorumEpoch").where(Map.of("clusterId", Map.of("exists", true)));
        for (var action : List.of(
                injectError("NOT_CONTROLLER"), answer(Map.of("errorCode", 1)), changeResponse(Map.of("errorCode", 1)),
                delayOn(LONG), drop(), disconnectOn())) {
            for (var trigger : List.of(once(), times(2), onCall(3))) {
                mockraft.remove(mockraft.stub(votes, trigger, action));
            }
            mockraft.remove(mockraft.stub(votes, action));
        }
    }

    @Test
    void aFailedVerificationShowsTheNearestRequests(Mockraft mockraft) {
        mockraft.await(1, HEARTBEATS, LONG);
        Match missing = request("BrokerHeartbeat").brokerId(7);
        var failed = assertThrows(AssertionError.class, () -> mockraft.await(1, missing, Duration.ofMillis(1)));
        assertTrue(failed.getMessage().contains("nearest other requests"), failed.getMessage());
    }

    @Test
    void aRefusalNamesTheField(Mockraft mockraft) {
        var refused = assertThrows(
                IllegalStateException.class, () -> mockraft.stub(request("BrokerHeartbeet"), drop()));
        assertTrue(refused.getMessage().startsWith("match.api: there is no API"), refused.getMessage());
        assertTrue(refused.getMessage().endsWith(" at #/match/api"), refused.getMessage());
        refused = assertThrows(IllegalStateException.class, () -> mockraft.failLogDir(7));
        assertEquals("broker 7 is not registered; there are [1]", refused.getMessage());
    }

    @Test
    void anUnusedStubFailsItsTest() {
        Throwable failure = failureOf("unusedStub");
        assertTrue(failure.getMessage().contains("was never used: Vote"), failure.getMessage());
    }

    @Test
    void aClosedControllerComplainsOfAnUnusedStub(Mockraft mockraft) {
        Mockraft attached = Mockraft.attach(mockraft.adminUrl(), null);
        Stub unused = attached.stub(request("Vote"), drop());
        Throwable failure = assertThrows(AssertionError.class, attached::close);
        assertTrue(failure.getMessage().contains("was never used: Vote"), failure.getMessage());
        mockraft.remove(unused);
    }

    @Test
    void aFaultThatMeetsNothingFailsItsTest() {
        assertEquals(
                "fault lost_heartbeats-1 never met anything: lost_heartbeats, brokerId=7\n  broker 7 is not registered; there are [1]",
                failureOf("unfiredFault").getMessage());
    }

    @Test
    void aFailureHasTheRequestsOfItsController() {
        Throwable failure = failureOf("failing");
        assertEquals("no reason", failure.getMessage());
        String requests = failure.getSuppressed()[0].getMessage();
        assertTrue(requests.contains("BrokerHeartbeat"), requests);
    }

    private static Throwable failureOf(String method) {
        var events = EngineTestKit.engine("junit-jupiter")
                .selectors(selectMethod(Failing.class, method, Mockraft.class))
                .configurationParameter("junit.jupiter.conditions.deactivate", "*")
                .execute()
                .testEvents();
        assertEquals(1, events.failed().count());
        return events.failed().stream()
                .flatMap(event -> event.getPayload(TestExecutionResult.class).stream())
                .findFirst().orElseThrow().getThrowable().orElseThrow();
    }

    @Nested
    class InANestedClass {
        @Test
        void theControllerIsThatOfTheOuterClass(Mockraft mockraft) {
            assertSame(before, mockraft);
        }

        @Test
        @MockraftTest("--virtual-clock")
        void aMethodMayHaveItsOwn(Mockraft mockraft) {
            mockraft.advanceClock(Duration.ofSeconds(9));
            assertNotEquals(before.clusterId(), "");
            assertEquals(List.of(), mockraft.brokers());
        }
    }

    /** Tests that fail; run by the tests above. */
    @Disabled
    @MockraftTest({"--brokers", "1"})
    static class Failing {
        @Test
        void unusedStub(Mockraft mockraft) {
            mockraft.stub(request("Vote"), drop());
        }

        @Test
        void unfiredFault(Mockraft mockraft) {
            mockraft.awaitBrokers(1);
            mockraft.lostHeartbeats(7);
        }

        @Test
        void failing(Mockraft mockraft) {
            mockraft.await(1, HEARTBEATS, LONG);
            fail("no reason");
        }
    }
}
