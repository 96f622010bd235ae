package embedded

import (
	"context"
	"fmt"
	"net"
)

// PortError says that a port that was asked for is taken.
type PortError struct {
	Port int
	What string
}

func (e *PortError) Error() string {
	return fmt.Sprintf("port %d of %s is in use: end the program that listens there, or choose another port", e.Port, e.What)
}

// port is a port that is kept from others until it is released to be used.
type port struct {
	number int
	guard  net.Listener
}

func (p *port) release() {
	if p.guard != nil {
		p.guard.Close() //nolint:gosec // nobody ever connected to it
		p.guard = nil
	}
}

// take gives the listener that keeps the port, which is the caller's then.
func (p *port) take() net.Listener {
	l := p.guard
	p.guard = nil
	return l
}

// ports are those of a service's parts, the frontend's first, and of the UI.
type ports struct {
	service []*port
	ui      *port
}

// choosePorts chooses all ports of a server.
func choosePorts(ctx context.Context, o Options) (ports, error) {
	var out ports
	frontend, err := choose(ctx, o.Port, UsualPort, "the Temporal service")
	if err != nil {
		return out, err
	}
	out.service = append(out.service, frontend)
	for range services()[1:] {
		p, err := guard(ctx, 0)
		if err != nil {
			out.release()
			return out, err
		}
		out.service = append(out.service, p)
	}
	if out.ui, err = choose(ctx, o.UIPort, UsualUIPort, "the Temporal UI"); err != nil {
		out.release()
		return out, err
	}
	return out, nil
}

func (p ports) release() {
	for _, one := range p.service {
		one.release()
	}
	if p.ui != nil {
		p.ui.release()
	}
}

func (p ports) numbers() []int {
	out := make([]int, len(p.service))
	for i, one := range p.service {
		out[i] = one.number
	}
	return out
}

// choose gives the port that was asked for, or the usual one, or a free one where that is taken.
func choose(ctx context.Context, asked, usual int, what string) (*port, error) {
	if asked != 0 {
		p, err := guard(ctx, asked)
		if err != nil {
			return nil, &PortError{Port: asked, What: what}
		}
		return p, nil
	}
	if p, err := guard(ctx, usual); err == nil {
		return p, nil
	}
	return guard(ctx, 0)
}

// guard takes a port, 0 for any free one.
func guard(ctx context.Context, number int) (*port, error) {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", address(number))
	if err != nil {
		return nil, fmt.Errorf("no port to listen on: %w", err)
	}
	at, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("no port to listen on: %v has none", l.Addr())
	}
	return &port{number: at.Port, guard: l}, nil
}
