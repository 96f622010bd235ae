package worker

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"

	"varve/schemas"
)

// defaultTaskQueue is the queue of a project that names none.
const defaultTaskQueue = "varve"

// Config says how a process reaches Temporal.
type Config struct {
	// Temporal is the project's part.
	Temporal schemas.Temporal
	// File is where an embedded server keeps its state. Default .varve/temporal.db in the project.
	File string
	// Log takes what Temporal's client and server warn of. Default discarded.
	Log *slog.Logger
}

// Config gives the configuration of a project.
func (p *Project) Config(log *slog.Logger) Config {
	return Config{Temporal: p.Settings.Temporal, File: filepath.Join(p.Dir, ".varve", "temporal.db"), Log: log}.WithDefaults()
}

// WithDefaults fills in what is not set.
func (c Config) WithDefaults() Config {
	c.Temporal.TaskQueue = cmp.Or(c.Temporal.TaskQueue, defaultTaskQueue)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
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
