"""TxnOffsetCommit (28): KIP-98, KIP-447 (a member of the group commits), KIP-890 (the coordinator adds its partition).

The offsets take effect when the transaction is committed. They must be in the transaction, as records must.
"""

from __future__ import annotations

import contextlib
from typing import Final

from mockraft.brokers.apis.api import READ_GROUP, WRITE_TRANSACTIONAL_ID, Api, ApiError, Parked, RequestContext, parked
from mockraft.brokers.apis.offsets import checked
from mockraft.brokers.coordinators.members import Commit
from mockraft.brokers.coordinators.state_log import COORDINATOR_ERRORS
from mockraft.brokers.coordinators.transaction import Producer
from mockraft.brokers.coordinators.verification import ClientSupport
from mockraft.brokers.coordinators.waiting import Waiting
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.partitions.hosted import HostedPartition
from mockraft.brokers.partitions.producers import Verification
from mockraft.kafka_api.api import NEVER_MS
from mockraft.kafka_api.error_responses import Items, error_for_each
from mockraft.wire import error_codes
from mockraft.wire.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from mockraft.wire.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from mockraft.wire.topic_names import GROUP_METADATA

TOPIC_IDS_FROM: Final = 6
GROUP_ID_NOT_FOUND_FROM: Final = 6
STALE_EPOCH_FROM: Final = 6
NO_SEQUENCE: Final = -1
LOAD_ERROR_FROM: Final = 2
SUPPORT_FROM: Final = ((5, ClientSupport.ADDS_BY_LEADER), (4, ClientSupport.ABORTABLE_ERROR))
Result = TxnOffsetCommitResponse | Parked[TxnOffsetCommitResponse]


def handle(request: TxnOffsetCommitRequest, ctx: RequestContext) -> Result:
    """Commit offsets in a transaction."""
    return _Commit(request, ctx).begin()


error = error_for_each(
    TxnOffsetCommitResponse,
    Items("topics", "topics", ("name", "topic_id")),
    Items("partitions", "partitions", ("partition_index",)),
)


class _Commit:
    """One request: the partitions are checked, then the transaction, then the group."""

    def __init__(self, request: TxnOffsetCommitRequest, ctx: RequestContext) -> None:
        self._request = request
        self._ctx = ctx
        self._producer = Producer(request.producer_id, request.producer_epoch)
        self._response = error(request, error_codes.NONE, None)
        self._known, self._offsets = checked(ctx, request.topics, self._response.topics, TOPIC_IDS_FROM)

    def begin(self) -> Result:
        """Verify the transaction, unless all partitions are refused."""
        if not self._known:
            return self._response
        try:
            return self._verify()
        except ApiError as refused:
            return self._refused(refused)
        except LogError as offline:
            return self._refused(ApiError(COORDINATOR_ERRORS.get(offline.error_code, error_codes.NOT_COORDINATOR)))

    def _verify(self) -> Result:
        """Ask the transaction's coordinator, unless the transaction has offsets of this partition already."""
        request, broker = self._request, self._ctx.broker
        if not request.group_id:
            raise ApiError(error_codes.INVALID_GROUP_ID)
        index = broker.groups.log.find(request.group_id)
        topic_id = self._ctx.image.topics_by_name[GROUP_METADATA].topic_id
        hosted = broker.replicas.find((topic_id, index))
        if hosted.producers.is_in_transaction(*self._producer):
            return self._commit(None)
        support = next(
            (it for version, it in SUPPORT_FROM if self._ctx.api_version >= version), ClientSupport.OLD_ERRORS
        )

        def begin() -> Verification:
            is_new = support is ClientSupport.ADDS_BY_LEADER
            return hosted.producers.begin_verification(*self._producer, NO_SEQUENCE, starts_at_zero=is_new)

        guard = begin()

        def begin_again() -> None:
            # The marker of the last transaction makes an earlier verification void.
            nonlocal guard
            with contextlib.suppress(LogError):
                guard = begin()

        partition = (GROUP_METADATA, index)
        verified = broker.verifier.verify(
            request.transactional_id, self._producer, frozenset((partition,)), support, begin_again
        )

        def retry(now_ms: int, _expired: bool) -> Result | None:
            errors = verified.result()
            if errors is None:
                return None
            self._ctx.now_ms = now_ms
            try:
                if errors[partition] != error_codes.NONE:
                    raise ApiError(_client_error(errors[partition]))
                return self._commit(guard)
            except ApiError as refused:
                return self._refused(refused)

        return retry(self._ctx.now_ms, False) or parked(NEVER_MS, retry)

    def _commit(self, guard: Verification | None) -> Result:
        """Commit as a member of the group; `guard` is that of the verification, None if there was no need of one."""
        request, groups, now_ms = self._request, self._ctx.broker.groups, self._ctx.now_ms
        if request.generation_id_or_member_epoch >= 0 and groups.find(request.group_id) is None:
            is_new = self._ctx.api_version >= GROUP_ID_NOT_FOUND_FROM
            raise ApiError(error_codes.GROUP_ID_NOT_FOUND if is_new else error_codes.ILLEGAL_GENERATION)
        group = groups.create(request.group_id)
        generation, instance_id = request.generation_id_or_member_epoch, request.group_instance_id
        committing = Commit(request.member_id, generation, instance_id, self._ctx.api_version, is_transactional=True)
        try:
            group.check_commit(committing, self._offsets, now_ms)
        except ApiError as refused:
            if refused.error_code == error_codes.STALE_MEMBER_EPOCH and self._ctx.api_version < STALE_EPOCH_FROM:
                raise ApiError(error_codes.ILLEGAL_GENERATION) from None
            raise

        def check(hosted: HostedPartition) -> None:
            producers, producer_id = hosted.producers, self._producer.producer_id
            if not producers.is_in_transaction(producer_id) and not producers.is_verified(producer_id, guard):
                raise LogError(error_codes.INVALID_TXN_STATE, "the offsets are not part of an ongoing transaction")

        waiting: Waiting[bool] = groups.commit(request.group_id, self._offsets, self._producer, check)
        return waiting.answer(lambda _: self._response, self._refused)

    def _refused(self, refused: ApiError) -> TxnOffsetCommitResponse:
        code = refused.error_code
        if code == error_codes.COORDINATOR_LOAD_IN_PROGRESS and self._ctx.api_version < LOAD_ERROR_FROM:
            code = error_codes.COORDINATOR_NOT_AVAILABLE
        for answer in self._known:
            answer.error_code = code
        return self._response


def _client_error(code: int) -> int:
    if code == error_codes.NETWORK_EXCEPTION:
        return error_codes.COORDINATOR_LOAD_IN_PROGRESS
    return COORDINATOR_ERRORS.get(code, code)


API = Api(TxnOffsetCommitRequest, TxnOffsetCommitResponse, handle, error, needs=(WRITE_TRANSACTIONAL_ID, READ_GROUP))
