package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"time"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
	"go.temporal.io/server/common/membership/static"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
)

const (
	storeName   = sqliteplugin.PluginName
	clusterName = "active"
	disabled    = "disabled"
)

// services are the parts of a Temporal service, the frontend first.
func services() []primitives.ServiceName {
	return []primitives.ServiceName{primitives.FrontendService, primitives.HistoryService, primitives.MatchingService, primitives.WorkerService}
}

// settings is the configuration of a one-process service: one shard, everything on loopback, state in one file.
//
// The write-ahead log makes a commit one append. It is not synced at each: a killed process loses nothing, a machine that
// loses its power may lose the last steps of workflows, which are then done again.
func settings(file string, ports []int) *config.Config {
	store := config.SQL{
		PluginName: sqliteplugin.PluginName, DatabaseName: (&url.URL{Path: filepath.ToSlash(file)}).EscapedPath(),
		ConnectAttributes: map[string]string{"mode": "rwc", "journal_mode": "wal", "synchronous": "normal", "busy_timeout": "5000"},
	}
	c := &config.Config{
		Global: config.Global{Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: Host}},
		Persistence: config.Persistence{
			DefaultStore: storeName, VisibilityStore: storeName, NumHistoryShards: 1,
			DataStores: map[string]config.DataStore{storeName: {SQL: &store}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: clusterName, CurrentClusterName: clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: address(ports[0])}},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            map[string]config.Service{},
		Archival:            config.Archival{History: config.HistoryArchival{State: disabled}, Visibility: config.VisibilityArchival{State: disabled}},
		PublicClient:        config.PublicClient{HostPort: address(ports[0])},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: disabled},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: disabled},
		}},
	}
	for i, name := range services() {
		c.Services[string(name)] = config.Service{RPC: config.RPC{GRPCPort: ports[i], BindOnIP: Host}}
	}
	return c
}

// staticHosts says where each part of the service is, so that none has to look for the others.
func staticHosts(c *config.Config) map[primitives.ServiceName]static.Hosts {
	out := map[primitives.ServiceName]static.Hosts{}
	for _, name := range services() {
		out[name] = static.SingleLocalHost(address(c.Services[string(name)].RPC.GRPCPort))
	}
	return out
}

// dynamic is what differs from Temporal's defaults: one process sees its own search attributes at once, and a task queue
// in one process needs no partitions.
func dynamic() dynamicconfig.Client {
	return dynamicconfig.StaticClient{
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():      1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key():     1,
	}
}

// logger gives the server's warnings and errors to slog. What is below a warning says nothing to a person who runs varve.
type logger struct{ log *slog.Logger }

var _ log.Logger = logger{}

func (l logger) Debug(string, ...tag.Tag) {}
func (l logger) Info(string, ...tag.Tag)  {}

func (l logger) Warn(msg string, tags ...tag.Tag)   { l.write(slog.LevelWarn, msg, tags) }
func (l logger) Error(msg string, tags ...tag.Tag)  { l.write(slog.LevelError, msg, tags) }
func (l logger) DPanic(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

// Panic is the server's word for a bug.
func (l logger) Panic(msg string, tags ...tag.Tag) {
	l.write(slog.LevelError, msg, tags)
	panic(msg)
}

// Fatal is the server's word for a state that it cannot go on from, such as a port that is taken.
func (l logger) Fatal(msg string, tags ...tag.Tag) {
	err := &fatalError{message: msg}
	for _, t := range tags {
		err.message += fmt.Sprintf(", %s %v", t.Key(), t.Value())
	}
	panic(err)
}

// fatalError is why the server would end its process.
type fatalError struct{ message string }

func (e *fatalError) Error() string { return "start Temporal: " + e.message }

func (l logger) write(level slog.Level, msg string, tags []tag.Tag) {
	args := make([]slog.Attr, 0, len(tags)+1)
	args = append(args, slog.String("message", msg))
	for _, t := range tags {
		args = append(args, slog.Any(t.Key(), t.Value()))
	}
	l.log.LogAttrs(context.Background(), level, "temporal", args...)
}
