package schemas

// later says, for the fields and the values of fields that the language has and this version does not, what to do
// meanwhile. It is the one place that knows.
func later(name string) (way string, ok bool) {
	switch name {
	case "flows", "extract":
		return "write one source; a dataset has one flow for now", true
	case "delivery: snapshot", "snapshot_version":
		return "send changes or new and changed records for now", true
	case "columns_to_update":
		return "leave absent columns out of the record: absent: keep", true
	case "surrogate_key", "surrogate_keys":
		return "leave it out; add numbers in a model for now", true
	case "deleted_at":
		return "leave it out; deletes: logical gives " + DeletedColumn, true
	case "apply_as_truncates":
		return "leave it out; delete by key with apply_as_deletes for now", true
	case "apply", "restate":
		return "leave it out; every day is applied to every target in order of landing", true
	case "arrival":
		return "leave it out; start the day when its files are there", true
	case "expect", "freshness":
		return "leave it out; keys, duplicates of keys, bad records and mass deletes are checked always", true
	case "on_tie":
		return "leave it out; ties are resolved leaf by leaf and counted", true
	case "on_failed_day", "on_waiting":
		return "leave it out; such a day is set aside", true
	case "partition_by":
		return "leave it out; zorder: [column] keeps neighbours together", true
	case "several columns in zorder":
		return "name one column", true
	case "deletion_vectors: on":
		return "write auto or off", true
	case "foreign_writes":
		return "leave it out; a change by another engine is refused", true
	case "state_horizon", "retention":
		return "leave it out; nothing is forgotten", true
	case "stored_as_scd_type: BITEMPORAL":
		return "write 1 or 2", true
	case "every":
		return `write a cron, as cron: "*/15 * * * *"`, true
	case "envelope", "rename", "from":
		return "name columns as the source does", true
	}
	return "", false
}

// home gives the mapping that a field belongs to, for hints on fields that stand in another.
func home(name string) string {
	switch name {
	case "path", "format", "delivery", "csv":
		return "source"
	case "delimiter", "quote", "header", "null_text":
		return "source.csv"
	case "table", "stored_as_scd_type", "max_delete_share", "deletes", "history", "track_history_column_list", "track_history_except_column_list":
		return "an entry of targets"
	case "start", "end", "current", "by", "delete_by", "max_behind", "max_ahead":
		return "history of an entry of targets"
	case "zorder", "deletion_vectors", "target_file_size":
		return "layout"
	case "cron", "time_zone", "day", "catch_up":
		return "schedule"
	case "keys", "sequence_by", "apply_as_deletes", "column_list", "except_column_list", "absent", "max_invalid_share", "ignore_null_updates",
		"ignore_null_updates_column_list", "ignore_null_updates_except_column_list":
		return "the contract itself"
	}
	return ""
}
