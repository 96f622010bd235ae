// Package sql is the only door to DuckDB: it runs queries and expressions and gives typed values back. It keeps no state
// between calls but the views that its caller made, and writes nothing but its own scratch.
package sql

import (
	"cmp"
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"

	duckdb "github.com/duckdb/duckdb-go/v2"
)

const defaultMemoryMiB = 1024

// Options are the limits of one engine.
type Options struct {
	// Dir is where the engine spills to. It is made if it is not there. Default the system's folder for temporary files.
	Dir string
	// MemoryMiB bounds the engine's memory. Default 1024.
	MemoryMiB int
	// Threads bounds the engine's threads. Default the number of processors.
	Threads int
}

// WithDefaults gives the options with each zero replaced.
func (o Options) WithDefaults() Options {
	o.Dir = cmp.Or(o.Dir, os.TempDir())
	o.MemoryMiB = cmp.Or(o.MemoryMiB, defaultMemoryMiB)
	o.Threads = cmp.Or(o.Threads, runtime.NumCPU())
	return o
}

// Validate names every option that cannot be used.
func (o Options) Validate() error {
	var problems []error
	if o.MemoryMiB < 0 {
		problems = append(problems, fmt.Errorf("%s is %d: it must be positive", "MemoryMiB", o.MemoryMiB))
	}
	if o.Threads < 0 {
		problems = append(problems, fmt.Errorf("%s is %d: it must be positive", "Threads", o.Threads))
	}
	return errors.Join(problems...)
}

// DB is one engine, in memory. It is safe for use by several goroutines.
type DB struct {
	db *stdsql.DB
}

// Open starts an engine that computes in UTC, never loads an extension and never touches the network.
func Open(o Options) (*DB, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("sql options: %w", err)
	}
	o = o.WithDefaults()
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("make the engine's scratch folder: %w", err)
	}
	settings := url.Values{
		"memory_limit":                 {strconv.Itoa(o.MemoryMiB) + "MiB"},
		"threads":                      {strconv.Itoa(o.Threads)},
		"temp_directory":               {o.Dir},
		"autoinstall_known_extensions": {"false"},
		"autoload_known_extensions":    {"false"},
		"allow_community_extensions":   {"false"},
		"preserve_insertion_order":     {"true"},
	}
	connector, err := duckdb.NewConnector("?"+settings.Encode(), inUTC)
	if err != nil {
		return nil, fmt.Errorf("open the SQL engine: %w", clean(err))
	}
	return &DB{db: stdsql.OpenDB(connector)}, nil
}

// Close ends the engine and removes what it spilled.
func (db *DB) Close() error { return db.db.Close() }

func inUTC(execer driver.ExecerContext) error {
	_, err := execer.ExecContext(context.Background(), "SET TimeZone='UTC'", nil)
	return err
}

// raw runs f with one connection of the driver's own type, which gives exact types.
func (db *DB) raw(ctx context.Context, f func(*duckdb.Conn) error) error {
	conn, err := db.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to the SQL engine: %w", clean(err))
	}
	err = conn.Raw(func(c any) error {
		duck, ok := c.(*duckdb.Conn)
		if !ok {
			return fmt.Errorf("the SQL engine's connection is a %T", c)
		}
		return f(duck)
	})
	return errors.Join(err, conn.Close())
}

func exec(ctx context.Context, c *duckdb.Conn, text string) error {
	if _, err := c.ExecContext(ctx, text, nil); err != nil {
		return clean(err)
	}
	return nil
}

// Ident quotes a name for use in SQL text.
func Ident(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Text quotes a string for use in SQL text.
func Text(s string) string { return `'` + strings.ReplaceAll(s, `'`, `''`) + `'` }
