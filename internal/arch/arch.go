// Package arch holds the import law: which package may know which, which libraries pass through which door, and what
// stands at the top of the repository. It reads Go files; it does not build them.
package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// module is the path that the repository's own imports begin with.
const module = "varve"

// levels is the order of the house: a package may import those of the levels before its own, and the packages below its
// own folder. A folder stands for every package below it.
var levels = [][]string{ //nolint:gochecknoglobals // a table that nothing changes
	{"internal/format", "internal/value"},
	{"internal/object", "internal/scd", "schemas"},
	{"internal/columnar"},
	{"internal/delta"},
	{"internal/state", "internal/ledger", "internal/sql"},
	{"internal/source"},
	{"internal/normalize", "internal/merge", "internal/layout", "internal/quality", "internal/verify"},
	{"internal/stage"},
	{"activities"},
	{"workflows"},
	{"worker"},
	{"cmd"},
}

// door is a library, named by the beginning of its import path, that only some folders may import.
type door struct {
	library string
	folders []string
}

var doors = []door{ //nolint:gochecknoglobals // a table that nothing changes
	{"github.com/aws", []string{"internal/object/s3store"}},
	{"github.com/parquet-go", []string{"internal/columnar"}},
	{"github.com/duckdb", []string{"internal/sql"}},
	{"go.temporal.io", []string{"workflows", "activities", "worker", "cmd"}},
	{"github.com/temporalio", []string{"worker"}},
	{"github.com/goccy/go-yaml", []string{"schemas"}},
	{"gopkg.in/yaml", []string{"schemas"}},
	{"go.yaml.in/yaml", []string{"schemas"}},
	{"github.com/compose-spec", []string{"internal/arch"}},
	{"github.com/spf13/cobra", []string{"cmd"}},
}

// ban is an import that a folder may not have although its level would allow it. Tests are free of bans.
type ban struct {
	folder, path, why string
}

var bans = []ban{ //nolint:gochecknoglobals // a table that nothing changes
	{"internal/verify", "varve/internal/scd", "verify judges it"},
	{"internal/verify", "varve/internal/merge", "verify judges it"},
	{"internal/value", "context", "value is pure"},
	{"internal/value", "os", "value is pure"},
	{"internal/value", "math/rand", "value is pure"},
	{"internal/scd", "context", "scd is pure"},
	{"internal/scd", "os", "scd is pure"},
	{"internal/scd", "time", "scd is pure"},
	{"internal/scd", "math/rand", "scd is pure"},
}

// typesOnly is the packages of which a folder may use types and constants, and call nothing.
var typesOnly = map[string][]string{ //nolint:gochecknoglobals // a table that nothing changes
	"workflows": {"internal/stage"},
}

// top is every entry that the repository's root may have, beside what version control ignores.
var top = []string{ //nolint:gochecknoglobals // a table that nothing changes
	".ci", ".dockerignore", ".env.example", ".git", ".gitignore", "CHANGELOG.md", "Dockerfile", "README.md",
	"activities", "cmd", "docker-compose.yml", "docs", "go.mod", "go.sum", "internal", "schemas", "worker", "workflows",
}

// vague is names that say nothing of what a package is for.
var vague = []string{"pkg", "util", "utils", "common", "model", "models", "helper", "helpers"} //nolint:gochecknoglobals // a table that nothing changes

// check gives every breach of the law in a repository, in order of the files.
func check(r repository) []string {
	out := entries(r)
	for _, f := range r.files {
		say := func(format string, args ...any) { out = append(out, f.path+": "+fmt.Sprintf(format, args...)) }
		for _, name := range append(strings.Split(f.folder(), "/"), f.name) {
			if slices.Contains(vague, strings.TrimSuffix(name, "_test")) {
				say("package %q: the name says nothing of what it is for", name)
				break
			}
		}
		own, ok := levelOf(f.folder())
		if !ok && f.folder() != "internal/arch" {
			say("package %q has no level: add it to the table in internal/arch", f.folder())
			continue
		}
		for _, imported := range f.imports {
			if reason := refuse(f, own, imported); reason != "" {
				say("imports %q: %s", imported, reason)
			}
		}
		for _, call := range f.calls {
			if slices.Contains(r.functions[call.folder], call.name) {
				say("uses %s.%s: of %q it may use types only", path.Base(call.folder), call.name, call.folder)
			}
		}
	}
	return out
}

// entries gives the root's entries that the house does not have.
func entries(r repository) []string {
	var out []string
	for _, name := range r.entries {
		if !slices.Contains(top, name) {
			out = append(out, name+": no such entry belongs at the top")
		}
	}
	return out
}

// refuse says why a file may not import a package, or nothing.
func refuse(f file, own int, imported string) string {
	for _, d := range doors {
		if within(imported, d.library) && !slices.ContainsFunc(d.folders, func(folder string) bool { return below(f.folder(), folder) }) {
			return "only " + strings.Join(d.folders, ", ") + " may"
		}
	}
	for _, b := range bans {
		if !f.test && below(f.folder(), b.folder) && below(imported, b.path) {
			return b.why
		}
	}
	folder, ours := strings.CutPrefix(imported, module+"/")
	if !ours || sameHouse(f.folder(), folder) {
		return ""
	}
	level, ok := levelOf(folder)
	switch {
	case !ok:
		return "it has no level"
	case level > own:
		return "it is above"
	case level == own && !f.test:
		return "it stands beside"
	}
	return ""
}

// levelOf gives the level of a folder.
func levelOf(folder string) (int, bool) {
	for i, level := range levels {
		if slices.ContainsFunc(level, func(name string) bool { return below(folder, name) }) {
			return i, true
		}
	}
	return 0, false
}

// sameHouse says whether two folders are parts of one entry of the table.
func sameHouse(a, b string) bool {
	for _, name := range slices.Concat(levels...) {
		if below(a, name) && below(b, name) {
			return true
		}
	}
	return a == b
}

// below says whether a folder is another or stands in it.
func below(folder, other string) bool { return folder == other || strings.HasPrefix(folder, other+"/") }

// within says whether an import path belongs to a library; a version may follow the name, as in yaml.v3.
func within(imported, library string) bool {
	rest, ok := strings.CutPrefix(imported, library)
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '.')
}
