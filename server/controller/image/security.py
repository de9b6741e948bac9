"""SCRAM credentials, ACLs and delegation tokens."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from mockraft.kafka_api.authorization.acl_index import AccessControlEntry, AclIndex
from mockraft.releases import Behaviour, MetadataVersion
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.access_control_entry_record import AccessControlEntryRecord
from mockraft.wire.records.delegation_token_record import DelegationTokenRecord
from mockraft.wire.records.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from mockraft.wire.records.remove_delegation_token_record import RemoveDelegationTokenRecord
from mockraft.wire.records.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from mockraft.wire.records.user_scram_credential_record import UserScramCredentialRecord
from mockraft.wire.scram import ScramCredential


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    """One delegation token; principals are `type:name`, times milliseconds since the epoch."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int

    def to_record(self, token_id: str) -> RecordAt:
        """Return the record that adds this token, which does not know its own id."""
        return RecordAt(
            DelegationTokenRecord(
                owner=self.owner,
                requester=self.requester,
                renewers=list(self.renewers),
                issue_timestamp=self.issue_timestamp,
                max_timestamp=self.max_timestamp,
                expiration_timestamp=self.expiration_timestamp,
                token_id=token_id,
            ),
            0,
        )


@dataclass(slots=True)
class SecurityImage:
    """Credentials by (mechanism, user), ACLs by 16-byte id and in an index, tokens by token id."""

    scram: dict[tuple[int, str], ScramCredential] = field(default_factory=dict)
    acls: dict[bytes, AccessControlEntry] = field(default_factory=dict)
    acl_index: AclIndex = field(default_factory=AclIndex, compare=False)
    delegation_tokens: dict[str, DelegationToken] = field(default_factory=dict)

    def apply_scram(self, record: UserScramCredentialRecord, offset: int) -> None:
        """Set a user's credential."""
        self.scram[record.mechanism, record.name] = ScramCredential(
            record.salt, record.stored_key, record.server_key, record.iterations
        )

    def apply_remove_scram(self, record: RemoveUserScramCredentialRecord, offset: int) -> None:
        """Remove a user's credential."""
        self.scram.pop((record.mechanism, record.name), None)

    def apply_acl(self, record: AccessControlEntryRecord, offset: int) -> None:
        """Add an ACL."""
        acl = AccessControlEntry.from_record(record)
        self.acls[record.id] = acl
        self.acl_index.add(acl)

    def apply_remove_acl(self, record: RemoveAccessControlEntryRecord, offset: int) -> None:
        """Remove an ACL; no effect if there is none with this id."""
        acl = self.acls.pop(record.id, None)
        if acl is not None:
            self.acl_index.remove(acl)

    def apply_delegation_token(self, record: DelegationTokenRecord, offset: int) -> None:
        """Add or replace a token."""
        self.delegation_tokens[record.token_id] = DelegationToken(
            owner=record.owner,
            requester=record.requester,
            renewers=tuple(record.renewers),
            issue_timestamp=record.issue_timestamp,
            max_timestamp=record.max_timestamp,
            expiration_timestamp=record.expiration_timestamp,
        )

    def apply_remove_delegation_token(self, record: RemoveDelegationTokenRecord, offset: int) -> None:
        """Remove a token; no effect if there is none with this id."""
        self.delegation_tokens.pop(record.token_id, None)

    def scram_to_records(self, version: MetadataVersion) -> Iterator[RecordAt]:
        """Return the credentials as records, if the version has them (ScramImage.write)."""
        if not version.has(Behaviour.SCRAM):
            return
        for (mechanism, name), credential in self.scram.items():
            yield RecordAt(
                UserScramCredentialRecord(
                    name=name,
                    mechanism=mechanism,
                    salt=credential.salt,
                    stored_key=credential.stored_key,
                    server_key=credential.server_key,
                    iterations=credential.iterations,
                ),
                0,
            )

    def delegation_tokens_to_records(self, version: MetadataVersion) -> Iterator[RecordAt]:
        """Return the tokens as records, if the version has them (DelegationTokenImage.write)."""
        if not version.has(Behaviour.DELEGATION_TOKENS):
            return
        for token_id, token in self.delegation_tokens.items():
            yield token.to_record(token_id)
