package cachestore

import (
	"path"
	"regexp"
	"strings"
)

// unique finds a UUID that is a whole word of a name.
var unique = regexp.MustCompile(`(^|[^0-9A-Za-z])[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}([^0-9A-Za-z]|$)`)

// Immutable says of a key of a warehouse that its object has one content for ever, whoever wrote it: that it is a Parquet
// file or a file of deletion vectors, or a checkpoint in JSON, and that a UUID is part of its name. Such are the data files,
// change files, deletion vectors, checkpoints of the second form and sidecars of Delta tables, and varve's own state.
// PROTOCOL.md, Data Files, Deletion Vector Files and Checkpoints.
//
// What is named by a number is not: a commit has another content once its table was removed and made anew, and a classic
// checkpoint may be written twice.
func Immutable(key string) bool {
	name := path.Base(key)
	switch path.Ext(name) {
	case ".parquet", ".bin":
		return unique.MatchString(name)
	case ".json":
		return strings.Contains(name, ".checkpoint.") && unique.MatchString(name)
	}
	return false
}
