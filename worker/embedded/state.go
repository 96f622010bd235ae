package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/headers"
	"go.temporal.io/server/schema/sqlite"
)

// InUseError says that another process serves on the same state.
type InUseError struct{ File string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("another process serves on %q: end it first, or use another folder", e.File)
}

// stampOf is the file that says which server version made the state, and that it made all of it.
func stampOf(file string) string { return file + ".version" }

// parts are the ends of the names of SQLite's files.
func parts() []string { return []string{"", "-wal", "-shm"} }

// setAsideOlder moves away state that this version did not make, or not to its end: SQLite's schema has no migration, and
// nothing is lost, since schedules and days are taken up from the store.
func setAsideOlder(file string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return "", fmt.Errorf("make the folder of Temporal's state: %w", err)
	}
	stamp, err := os.ReadFile(stampOf(file))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the version of Temporal's state: %w", err)
	}
	version := strings.TrimSpace(string(stamp))
	if version == headers.ServerVersion {
		return "", nil
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	aside := file + ".unfinished"
	if version != "" {
		aside = file + ".of-" + filepath.Base(version)
	}
	for _, part := range parts() {
		if err := os.Rename(file+part, aside+part); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("set aside the state of another Temporal version: %w", err)
		}
	}
	return aside, nil
}

// prepare makes the schema where it is missing and the namespace. Before a schema the stamp goes, which another state may have
// left, and it comes last, so that a process that is killed over it leaves nothing that passes for a whole.
func prepare(c *config.Config, o Options) error {
	store := c.Persistence.DataStores[storeName].SQL
	_, err := os.Stat(o.File)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.Remove(stampOf(o.File)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the stamp of a state that is gone: %w", err)
		}
		err = sqlite.SetupSchema(store)
	}
	if err != nil {
		return fmt.Errorf("make the schema in %q: %w", o.File, err)
	}
	attributes := map[string]enumspb.IndexedValueType{}
	for _, name := range o.Attributes {
		attributes[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	namespace, err := sqlite.NewNamespaceConfig(clusterName, o.Namespace, false, attributes)
	if err != nil {
		return fmt.Errorf("namespace %q: %w", o.Namespace, err)
	}
	if err := sqlite.CreateNamespaces(store, namespace); err != nil {
		return fmt.Errorf("make namespace %q in %q: %w", o.Namespace, o.File, err)
	}
	if err := os.WriteFile(stampOf(o.File), []byte(headers.ServerVersion+"\n"), 0o600); err != nil {
		return fmt.Errorf("stamp Temporal's state: %w", err)
	}
	return nil
}
