"""OFRecord, the binary format of OneFlow: files of records, a reader of parts, and decoders."""
