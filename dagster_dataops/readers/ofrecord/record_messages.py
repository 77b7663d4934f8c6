"""`features_of`: the values in the bytes of an OFRecord, which is a message of protobuf."""

from functools import cache
from typing import Any, Final

from dagster_dataops.errors import MissingExtraError

_LISTS: Final = ("bytes", "float", "double", "int32", "int64")  # numbered from 1


@cache
def record_class() -> Any:
    """Return the class of the message: ``map<string, Feature> feature = 1``.

    A ``Feature`` has one of the lists ``bytes_list = 1``, ``float_list``, ``double_list``,
    ``int32_list`` and ``int64_list = 5``, whose elements are ``value = 1``.

    Raises:
        MissingExtraError: protobuf is not installed.
    """
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ModuleNotFoundError as error:
        if error.name not in {"google", "google.protobuf"}:
            raise
        raise MissingExtraError("OFRecord", "ofrecord") from None
    file = descriptor_pb2.FileDescriptorProto(
        name="dagster_dataops/ofrecord.proto", package="dagster_dataops.ofrecord", syntax="proto3"
    )
    field = descriptor_pb2.FieldDescriptorProto
    scope = f".{file.package}"
    feature = descriptor_pb2.DescriptorProto(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, kind in enumerate(_LISTS, 1):
        listed = file.message_type.add(name=f"{kind.title()}List")
        of_kind = getattr(field, f"TYPE_{kind.upper()}")
        listed.field.add(name="value", number=1, type=of_kind, label=field.LABEL_REPEATED)
        feature.field.add(
            name=f"{kind}_list",
            number=number,
            type=field.TYPE_MESSAGE,
            type_name=f"{scope}.{listed.name}",
            label=field.LABEL_OPTIONAL,
            oneof_index=0,
        )
    file.message_type.append(feature)
    record = file.message_type.add(name="OFRecord")
    entry = record.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    entry.field.add(
        name="value",
        number=2,
        type=field.TYPE_MESSAGE,
        type_name=f"{scope}.Feature",
        label=field.LABEL_OPTIONAL,
    )
    record.field.add(
        name="feature",
        number=1,
        type=field.TYPE_MESSAGE,
        type_name=f"{scope}.OFRecord.FeatureEntry",
        label=field.LABEL_REPEATED,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    message = pool.FindMessageTypeByName(f"{file.package}.OFRecord")
    return message_factory.GetMessageClass(message)


def features_of(payload: bytes) -> dict[str, list[Any]]:
    """Return the features in the bytes of a record by name, sorted: a list of values for each."""
    record = record_class()()
    try:
        record.ParseFromString(payload)
    except Exception as error:  # protobuf has several classes of this error
        msg = f"is damaged, or is no OFRecord: {error}"
        raise ValueError(msg) from error
    values = {}
    for name in sorted(record.feature):
        feature = record.feature[name]
        kind = feature.WhichOneof("kind")
        values[name] = [] if kind is None else list(getattr(feature, kind).value)
    return values
