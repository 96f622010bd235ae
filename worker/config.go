package worker

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"

	"varve/schemas"
)

// stateFile is where an embedded server keeps its state in a project.
var stateFile = filepath.Join(".varve", "temporal.db") //nolint:gochecknoglobals // a constant that the system's separator makes

// Config says how a process reaches Temporal, and how much it does at once.
type Config struct {
	// Temporal is the project's part.
	Temporal schemas.Temporal
	// File is where an embedded server keeps its state. Default .varve/temporal.db.
	File string
	// Stages is how many activities run at once; each may take the memory of one stage. Default the number of CPUs, at least 2,
	// so that a small one need not wait for a long one.
	Stages int
	// Log takes what Temporal's client and server warn of. Default discarded.
	Log *slog.Logger
}

// Config gives the configuration of a project.
func (p *Project) Config(log *slog.Logger) Config {
	return Config{Temporal: p.Settings.Temporal, File: filepath.Join(p.Dir, stateFile), Log: log}.WithDefaults()
}

// WithDefaults fills in what is not set.
func (c Config) WithDefaults() Config {
	c.Temporal.TaskQueue = cmp.Or(c.Temporal.TaskQueue, schemas.DefaultTaskQueue)
	c.File = cmp.Or(c.File, stateFile)
	c.Stages = cmp.Or(c.Stages, max(2, runtime.NumCPU()))
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate tells everything that is wrong with a configuration whose defaults are filled in.
func (c Config) Validate() error {
	var all []error
	wrong := func(field, format string, args ...any) {
		all = append(all, fmt.Errorf(field+": "+format, args...))
	}
	const most = 65535
	for _, port := range []struct {
		field  string
		number int
	}{{"Temporal.Port", c.Temporal.Port}, {"Temporal.UIPort", c.Temporal.UIPort}} {
		if port.number < 0 || port.number > most {
			wrong(port.field, "%d is not a port", port.number)
		}
	}
	if c.Temporal.Port != 0 && c.Temporal.Port == c.Temporal.UIPort {
		wrong("Temporal.UIPort", "it is Temporal.Port too")
	}
	if c.Temporal.TaskQueue == "" {
		wrong("Temporal.TaskQueue", "it is empty")
	}
	if c.File == "" {
		wrong("File", "it is empty")
	}
	if c.Stages < 1 {
		wrong("Stages", "%d is less than 1", c.Stages)
	}
	if c.Log == nil {
		wrong("Log", "it is nil")
	}
	return errors.Join(all...)
}

// clientOptions are those of the environment, as every Temporal client takes them, with the project's before them.
func (c Config) clientOptions() (client.Options, error) {
	o, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return o, fmt.Errorf("read Temporal's settings from the environment: %w", err)
	}
	o.HostPort = cmp.Or(c.Temporal.Address, o.HostPort, client.DefaultHostPort)
	o.Namespace = cmp.Or(c.Temporal.Namespace, o.Namespace, client.DefaultNamespace)
	o.Logger = c.sdkLogger()
	return o, nil
}

// embeddedOptions are those of the embedded service, with which the environment has nothing to do.
func (c Config) embeddedOptions(address string) client.Options {
	return client.Options{HostPort: address, Namespace: cmp.Or(c.Temporal.Namespace, client.DefaultNamespace), Logger: c.sdkLogger()}
}

func (c Config) sdkLogger() sdklog.Logger {
	return sdklog.NewStructuredLogger(slog.New(quiet{c.Log.Handler()}))
}
