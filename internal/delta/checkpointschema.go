package delta

import (
	"varve/internal/value"
)

// checkpointSchema is the columns of a checkpoint that this package reads. PROTOCOL.md, Checkpoint Schema.
func checkpointSchema() value.Schema {
	return value.Schema{
		structField("txn", stringField("appId"), longField("version"), longField("lastUpdated")),
		structField("add", append(fileFields(), stringField("stats"), mapField("tags"), stringField("clusteringProvider"))...),
		structField("remove", append(fileFields(), longField("deletionTimestamp"), field("extendedFileMetadata", value.Boolean))...),
		structField("metaData", stringField("id"), stringField("name"), stringField("description"),
			structField("format", stringField("provider"), mapField("options")), stringField("schemaString"),
			listField("partitionColumns"), mapField("configuration"), longField("createdTime")),
		structField("protocol", field("minReaderVersion", value.Integer), field("minWriterVersion", value.Integer),
			listField("readerFeatures"), listField("writerFeatures")),
		structField("domainMetadata", stringField("domain"), stringField("configuration"), field("removed", value.Boolean)),
		structField("sidecar", stringField("path"), longField("sizeInBytes")),
	}
}

// fileFields are the members that add and remove share.
func fileFields() []value.Field {
	return []value.Field{
		stringField("path"), mapField("partitionValues"), longField("size"), longField("modificationTime"),
		field("dataChange", value.Boolean),
		structField("deletionVector", stringField("storageType"), stringField("pathOrInlineDv"), field("offset", value.Integer),
			field("sizeInBytes", value.Integer), longField("cardinality")),
		longField("baseRowId"), longField("defaultRowCommitVersion"),
	}
}

func field(name string, kind value.Kind) value.Field {
	return value.Field{Name: name, Type: value.Type{Kind: kind}, Nullable: true}
}

func stringField(name string) value.Field { return field(name, value.StringKind) }

func longField(name string) value.Field { return field(name, value.Long) }

func structField(name string, fields ...value.Field) value.Field {
	return value.Field{Name: name, Type: value.Type{Kind: value.StructKind, Fields: fields}, Nullable: true}
}

func mapField(name string) value.Field {
	text := value.Type{Kind: value.StringKind}
	return value.Field{Name: name, Type: value.Type{Kind: value.MapKind, Key: &text, Elem: &text, ElemNullable: true}, Nullable: true}
}

func listField(name string) value.Field {
	text := value.Type{Kind: value.StringKind}
	return value.Field{Name: name, Type: value.Type{Kind: value.ArrayKind, Elem: &text, ElemNullable: true}, Nullable: true}
}
