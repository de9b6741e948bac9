"""One entity of a request refused, the rest handled: topics, partitions, groups, resources, as Kafka's specs name them.

    stub("CreateTopics", topic="b").inject_error("POLICY_VIOLATION")

creates a and not b. A `Shape` says where one version of a request names entities: in a field of its own, or in a list,
and which list of the response has their results. It is made from the two specs: a field that has an `entityType`, or a
name of `ENTITIES`, names an entity, and the lists of the two sides with the same entities belong together.

A `Selection` finds the selected entities of a request as a tree, `Taken`, which can take them out of the request, so
that they change nothing, and put their errors into the response to the rest, where the client asked for them. Where one
value is the whole request (the group of a JoinGroup), the whole request is refused.

`kafka_api.error_responses` pairs lists by hand for errors of whole requests: specs are parsed for stubs only, and not
while a controller answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from mockraft.server.stubs.errors import StubError
from mockraft.server.stubs.predicates import Test
from mockraft.wire import messages
from mockraft.wire.api_keys import name
from mockraft.wire.message import Message, Struct, field_names, item_class
from mockraft.wire.names import camel
from mockraft.wire.schema_files import FieldSpec, StructSpec, schema_of
from mockraft.wire.uuids import text_of

Part: TypeAlias = "Struct | int | str | bytes"
"""A request, a struct in it, or an element of a list."""

TopicName: TypeAlias = Callable[[bytes], "str | None"]
"""Return the name of the topic with an id, None for an unknown one."""


class Entity(NamedTuple):
    """A kind of thing that requests name: the `entityType` of such fields, and names of those whose spec has none."""

    summary: str
    entity_type: str = ""
    names: tuple[str, ...] = ()
    is_number: bool = False


ENTITIES: Final = {
    "topic": Entity("name of a topic", "topicName", ("topic_id",)),
    "partition": Entity(
        "number of a partition",
        names=("partition", "partition_index", "partition_id", "index", "[partitions]", "[partition_indexes]"),
        is_number=True,
    ),
    "group": Entity("id of a group", "groupId", (".key", "coordinators.key", "[coordinator_keys]")),
    "transactional_id": Entity(
        "transactional id", "transactionalId", (".key", "coordinators.key", "[coordinator_keys]")
    ),
    "producer_id": Entity("producer id", "producerId", is_number=True),
    "resource": Entity("name of a resource", names=("resource_name", "resource_name_filter")),
    "directory": Entity("path or id of a log directory", names=("path", "directories.id")),
    "feature": Entity("name of a feature", names=("feature",)),
    "user": Entity("name of a user", names=("user", "users.name", "deletions.name", "upsertions.name")),
}
"""Entities that a match can select. Names in brackets are those of lists; a name may have its list before it."""

TOPIC_ID: Final = "topic_id"

_UNNAMED: Final = (None, "", bytes(16))
"""Values of a field that another one names the entity instead of."""

_FORGOTTEN: Final = "forgotten_topics_data"
"""The list of a Fetch that names what it does not want (KIP-227)."""

_COORDINATOR_TYPES: Final = {"group": 0, "transactional_id": 1}
"""FindCoordinatorRequest.CoordinatorType: whose coordinator a key is about."""

_NO_VALUE: Final = dict.fromkeys(
    ("base_offset", "log_append_time_ms", "high_watermark", "low_watermark", "node_id", "port"), -1
)
"""Kafka's values of fields of a result with an error, where the spec has another default."""


class Listed(NamedTuple):
    """A list of a request: `shape` is that of an element, `results` the list of the response, empty for none.

    `keys` are the fields that an element (its own value, for an empty name) and its result have in common, `errors` the
    fields of a result for an error code and its message. `has_errors`: a response can say that an element is refused.
    """

    asked: str
    shape: Shape
    results: str
    keys: tuple[tuple[str, str], ...]
    errors: tuple[str, ...]
    has_errors: bool


class Shape(NamedTuple):
    """The entities in the fields of a struct, as pairs of entity and field (empty: the value itself), and its lists."""

    own: tuple[tuple[str, str], ...]
    lists: tuple[Listed, ...]

    @property
    def reach(self) -> frozenset[str]:
        """All entities that it names, at any depth."""
        return self.entities.union(*(each.shape.reach for each in self.lists))

    @property
    def entities(self) -> frozenset[str]:
        """The entities in its own fields."""
        return frozenset(entity for entity, _ in self.own)

    def value(self, part: Part, entity: str, topic_name: TopicName) -> object:
        """Return what a struct, or a value, names as this entity; the name of a topic also if it has the id."""
        for each, attribute in self.own:
            value = getattr(part, attribute) if attribute else part
            if each == entity and value not in _UNNAMED:
                return (topic_name(value) or text_of(value)) if isinstance(value, bytes) else value
        return None

    def holds(self, wanted: frozenset[str]) -> bool:
        """Return True if it names all these entities in one place: in its own fields, or further in one list."""
        left = wanted - self.entities
        return not left or any(each.shape.holds(left) for each in self.lists)

    def refuses(self, wanted: frozenset[str], has_errors: bool = True) -> bool:
        """Return True if the response can have an error for entities selected by these."""
        left = wanted - self.entities
        if not left:
            return has_errors
        return any(each.shape.refuses(left, each.has_errors) for each in self.lists)


@cache
def shape_of(api_key: int, version: int | None = None) -> Shape:
    """Return the shape of a version of a request; of all its versions together for None."""
    asked, answered = messages.request(api_key), messages.response(api_key)
    return _shape(schema_of(asked).root, schema_of(answered).root, version)


def _shape(asked: StructSpec, answered: StructSpec | None, version: int | None, within: str = "") -> Shape:
    fields = _fields(asked, version)
    own = tuple((entity, each.attribute) for each in fields if not each.is_array for entity in _entities(each, within))
    lists = []
    for each in fields:
        if not each.is_array or each.attribute == _FORGOTTEN:
            continue
        if each.struct is None:
            inner = Shape(tuple((entity, "") for entity in _entities(each, within)), ())
        else:
            inner = _shape(each.struct, None, version, each.attribute)
        result, keys = _results(inner, answered, version)
        if each.struct is not None:
            inner = _shape(each.struct, answered if result is None else result.struct, version, each.attribute)
        if inner.reach:
            errors = _errors(None if result is None else result.struct, version)
            has_errors = bool(errors) or any(each.has_errors for each in inner.lists)
            results = "" if result is None else result.attribute
            lists.append(Listed(each.attribute, inner, results, keys, errors, has_errors))
    return Shape(own, tuple(lists))


def _fields(struct: StructSpec | None, version: int | None) -> list[FieldSpec]:
    fields = () if struct is None else struct.fields
    return [each for each in fields if version is None or each.versions.covers(version)]


def _entities(field: FieldSpec, within: str) -> Iterator[str]:
    plain = f"[{field.attribute}]" if field.is_array else field.attribute
    for entity, (_, entity_type, names, _) in ENTITIES.items():
        if (entity_type and field.entity_type == entity_type) or plain in names or f"{within}.{plain}" in names:
            yield entity


def _results(
    element: Shape, answered: StructSpec | None, version: int | None
) -> tuple[FieldSpec | None, tuple[tuple[str, str], ...]]:
    """Return the list of a response that has the results of a list's elements, and the fields in common."""
    own = element.own
    for field in _fields(answered, version) if own else ():
        if field.is_array and field.struct is not None:
            item = _shape(field.struct, None, version, field.attribute)
            pairs = [(mine, theirs) for entity, mine in own for other, theirs in item.own if entity == other]
            keys = dict.fromkeys(pair for pair in pairs if pair.count(TOPIC_ID) != 1)
            if keys and ("resource", "resource_name") in own:
                keys = {("resource_type", "resource_type"): None, **keys}
            if keys:
                return field, tuple(keys)
            if not item.own and any(entity == "resource" for entity, _ in own) and _errors(field.struct, version):
                return field, ()  # CreateAcls and DeleteAcls: results are in the order of the request
    return None, ()


def _named(part: Part, shape: Shape, wanted: frozenset[str], topic_name: TopicName) -> Iterator[dict[str, object]]:
    here = {entity: shape.value(part, entity, topic_name) for entity in sorted(shape.entities & wanted)}
    left = wanted - here.keys()
    if not left:
        yield here
    for each in shape.lists:
        if left and each.shape.holds(left):
            for element in getattr(part, each.asked) or ():
                yield from ({**here, **inner} for inner in _named(element, each.shape, left, topic_name))


def _errors(result: StructSpec | None, version: int | None) -> tuple[str, ...]:
    """Return the fields of a result for its error code and the message; none for a result without an error."""
    names = [each.attribute for each in _fields(result, version)]
    codes = [each for each in names if each.endswith("error_code")]
    code = "error_code" if "error_code" in codes else codes[0] if len(codes) == 1 else ""
    return tuple(each for each in (code, "error_message") if each in names) if code else ()


class Refusal(NamedTuple):
    """The error of refused entities."""

    error_code: int
    message: str | None

    def result(self, kind: type[Struct], errors: tuple[str, ...], keys: Mapping[str, object]) -> Struct:
        """Return a result with the error in the fields `errors`; `keys` are the fields that name the entity."""
        error = dict(zip(errors, self, strict=False))
        unset = {each: value for each, value in _NO_VALUE.items() if each in field_names(kind)}
        made: Callable[..., Struct] = kind
        return made(**error, **unset, **keys)


class Taken(NamedTuple):
    """A selected part of a request: a struct or value, its place in its list, and what is selected in it.

    Without `lists` all of it is selected.
    """

    part: Part
    place: int
    lists: tuple[tuple[Listed, tuple[Taken, ...]], ...] = ()

    def remove(self) -> bool:
        """Remove what is selected from the part; return True if nothing is left of it."""
        for listed, taken in self.lists:
            gone = {each.place for each in taken if each.remove()}
            kept = [each for index, each in enumerate(getattr(self.part, listed.asked)) if index not in gone]
            setattr(self.part, listed.asked, kept)
        return not any(getattr(self.part, listed.asked) for listed, _ in self.lists)

    def clear(self, answered: Message) -> None:
        """Empty the lists of results: nothing was left to ask for, and no names stand for all of them in some APIs."""
        for listed, _ in self.lists:
            if listed.results:
                setattr(answered, listed.results, [])

    def refuse(self, answered: Struct, refusal: Refusal) -> None:
        """Add the errors of what is selected to the response, or to the part of it that belongs to this part."""
        for listed, taken in self.lists:
            if not listed.results:
                for each in taken:
                    each._expanded(listed.shape).refuse(answered, refusal)
                continue
            kind = item_class(type(answered), listed.results)
            results = getattr(answered, listed.results) or []
            setattr(answered, listed.results, results)
            for each in taken:
                each._refuse_in(results, kind, listed, refusal)

    def _refuse_in(self, results: list[Struct], kind: type[Struct], listed: Listed, refusal: Refusal) -> None:
        keys = {theirs: getattr(self.part, mine) if mine else self.part for mine, theirs in listed.keys}
        same = (at for at, each in enumerate(results) if keys and all(getattr(each, k) == keys[k] for k in keys))
        # Of a part of which something else is selected the error is within: it has none of its own.
        errors = () if self.lists else listed.errors
        if (at := next(same, None)) is None:
            at = min(self.place, len(results))
            results.insert(at, refusal.result(kind, errors, keys))
        if errors:
            results[at] = refusal.result(kind, errors, keys)
        else:
            self._expanded(listed.shape).refuse(results[at], refusal)

    def _expanded(self, shape: Shape) -> Taken:
        """Return the part with all elements of its lists, if all of it is selected."""
        if self.lists:
            return self
        lists = ((each, getattr(self.part, each.asked) or ()) for each in shape.lists)
        return self._replace(lists=tuple((each, tuple(map(Taken, parts, range(len(parts))))) for each, parts in lists))


class Selection:
    """The entities that a match selects, by their tests: all of them in one place (partition 1 of topic b)."""

    def __init__(self, tests: Mapping[str, Test]) -> None:
        self._tests = dict(tests)
        self._wanted = frozenset(tests)

    def check(self, api_key: int) -> None:
        """Raise StubError if no version of the API names such entities in one place."""
        shape = shape_of(api_key)
        for each in sorted(self._wanted - shape.reach):
            known = " and ".join(map(camel, sorted(shape.reach))) or "no entities"
            raise StubError(f"{name(api_key)} names no {camel(each)}; it names {known}", camel(each))
        if not shape.holds(self._wanted):
            raise StubError(f"{name(api_key)} names {self} in different places: select by one of them", f"{self}")

    def is_in(self, api_key: int) -> bool:
        """Return True if a version of the API's request names such entities in one place."""
        return shape_of(api_key).holds(self._wanted)

    def is_refused_alone(self, api_key: int, version: int | None = None) -> bool:
        """Return True if a response of the version, or of any, can have an error for such an entity alone."""
        return shape_of(api_key, version).refuses(self._wanted)

    def check_refusal(self, api_key: int) -> None:
        """Raise StubError if no response of the API has an error for such an entity alone."""
        if not self.is_refused_alone(api_key):
            raise StubError(f"the response of {name(api_key)} has no error for one {self}: leave it out of the match")

    def of(self, request: Message, version: int, topic_name: TopicName) -> Taken | None:
        """Return what is selected in a request of a version, None for nothing."""
        types = [_COORDINATOR_TYPES[each] for each in self._wanted & _COORDINATOR_TYPES.keys()]
        if types and getattr(request, "key_type", types[0]) != types[0]:
            return None
        return self._within(request, 0, shape_of(request.api_key, version), self._tests, topic_name)

    def named(self, request: Message, version: int, topic_name: TopicName) -> list[object]:
        """Return the entities of these kinds that a request names, whether they are selected or not."""
        found = _named(request, shape_of(request.api_key, version), self._wanted, topic_name)
        return [next(iter(each.values())) if len(each) == 1 else each for each in found]

    def __str__(self) -> str:
        return " and ".join(map(camel, sorted(self._wanted)))

    def _within(
        self, part: Part, index: int, shape: Shape, tests: Mapping[str, Test], topic_name: TopicName
    ) -> Taken | None:
        left = dict(tests)
        for entity in shape.entities & left.keys():
            if not left.pop(entity)(shape.value(part, entity, topic_name)):
                return None
        if not left:
            return Taken(part, index)
        lists = []
        for each in shape.lists:
            if each.shape.holds(frozenset(left)):
                inner = enumerate(getattr(part, each.asked) or ())
                found = (self._within(element, at, each.shape, left, topic_name) for at, element in inner)
                if taken := tuple(filter(None, found)):
                    lists.append((each, taken))
        return Taken(part, index, tuple(lists)) if lists else None
