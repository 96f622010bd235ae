// Package embedded is a Temporal service and its UI inside this process, on loopback, with its state in one SQLite file. It
// is for a developer's machine, demos and tests; it knows nothing of workflows.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/temporal"
)

// Host is the only address that the servers listen on.
const Host = "127.0.0.1"

// The ports that Temporal's own tools expect.
const (
	UsualPort   = 7233
	UsualUIPort = 8233
)

// tries is how often a start is tried anew because another process took a port between its choice and its use.
const tries = 5

// Options say where a server listens and keeps its state.
type Options struct {
	// File is the SQLite file. It is made where it is missing.
	File string
	// Namespace is made where it is missing. Default default.
	Namespace string
	// Port and UIPort are where the service and its UI listen. Default 7233 and 8233, or free ones where those are taken.
	Port, UIPort int
	// Attributes are the search attributes that the namespace gets, all keywords.
	Attributes []string
	// Log takes what the server warns of. Default discarded.
	Log *slog.Logger
}

// WithDefaults fills in what is not set.
func (o Options) WithDefaults() Options {
	o.Namespace = cmp.Or(o.Namespace, "default")
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Server is a running service with its UI.
type Server struct {
	// Address is the service's host and port.
	Address string
	// UI is the address of the web UI.
	UI string
	// SetAside is the file that the state of another server version was moved to, empty where there was none.
	SetAside string

	service temporal.Server
	ui      *webUI
	unlock  func() error
}

// Start starts a service and its UI and returns when both answer.
func Start(ctx context.Context, o Options) (*Server, error) {
	o = o.WithDefaults()
	unlock, err := lock(o.File)
	if err != nil {
		return nil, err
	}
	s := &Server{unlock: unlock}
	if s.SetAside, err = setAsideOlder(o.File); err != nil {
		return nil, errors.Join(fmt.Errorf("start Temporal: %w", err), unlock())
	}
	for try := 1; ; try++ {
		err = s.start(ctx, o)
		if err == nil {
			return s, nil
		}
		if _, lost := errors.AsType[*fatalError](err); !lost || try == tries {
			return nil, errors.Join(err, unlock())
		}
	}
}

// start chooses ports and starts the service, then its UI.
func (s *Server) start(ctx context.Context, o Options) error {
	ports, err := choosePorts(ctx, o)
	if err != nil {
		return err
	}
	defer ports.release()
	s.Address, s.UI = address(ports.service[0].number), "http://"+address(ports.ui.number)
	settings := settings(o.File, ports.numbers())
	if err := prepare(settings, o); err != nil {
		return fmt.Errorf("start Temporal: %w", err)
	}
	for _, p := range ports.service {
		p.release()
	}
	if s.service, err = service(settings, o.Log); err != nil {
		return fmt.Errorf("start Temporal: %w", err)
	}
	if s.ui, err = startUI(ports.ui.take(), s.Address, o.Namespace); err != nil {
		return errors.Join(err, s.service.Stop())
	}
	return nil
}

// Stop ends both. The state stays in the file.
func (s *Server) Stop() error { return errors.Join(s.ui.stop(), s.service.Stop(), s.unlock()) }

// service makes and starts the service. One that cannot be made has started nothing; the ports that it took by then it keeps
// until the process ends, so another try takes others.
func service(c *config.Config, log *slog.Logger) (temporal.Server, error) {
	var s temporal.Server
	err := fatal(func() (err error) {
		s, err = temporal.NewServer(
			temporal.WithConfig(c),
			temporal.ForServices(temporal.DefaultServices),
			temporal.WithStaticHosts(staticHosts(c)),
			temporal.WithLogger(logger{log: log}),
			temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
			temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorization.NewNoopClaimMapper() }),
			temporal.WithDynamicConfigClient(dynamic()),
		)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, begin(s)
}

// begin starts the service; one that starts half is stopped.
func begin(s temporal.Server) error {
	if err := fatal(s.Start); err != nil {
		return errors.Join(err, fatal(s.Stop))
	}
	return nil
}

// fatal makes an error of the server's wish to end its process where it cannot go on.
func fatal(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			wish, ok := p.(*fatalError)
			if !ok {
				panic(p)
			}
			err = wish
		}
	}()
	return do()
}

// address is a port on the only host.
func address(port int) string { return net.JoinHostPort(Host, strconv.Itoa(port)) }
