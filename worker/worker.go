// Package worker is the wiring: a user's project, configuration, connections, the registration of workflows and activities.
// It does none of their work.
package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"varve/activities"
	"varve/worker/embedded"
	"varve/workflows"
)

// stopTimeout is how long a worker that is told to end waits for its activities; they are safe to break off.
const stopTimeout = 5 * time.Second

// Service is a worker that runs, with its connection.
type Service struct {
	Client client.Client
	// Queue is the worker's task queue.
	Queue string
	// Namespace is the one it works in.
	Namespace string
	// Server is the embedded service; nil where the worker joined another.
	Server *embedded.Server

	worker sdkworker.Worker
	failed chan error
}

// Join starts a worker on an existing Temporal service.
func Join(ctx context.Context, c Config, engine activities.Engine) (*Service, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configuration of the worker: %w", err)
	}
	o, err := c.clientOptions()
	if err != nil {
		return nil, err
	}
	return join(ctx, c, o, engine)
}

func join(ctx context.Context, c Config, o client.Options, engine activities.Engine) (*Service, error) {
	conn, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("no Temporal service answers at %s (set temporal.address in %s or TEMPORAL_ADDRESS, or use varve dev, which brings its own): %w", o.HostPort, ProjectFile, err)
	}
	s := &Service{Client: conn, Queue: c.Temporal.TaskQueue, Namespace: o.Namespace, failed: make(chan error, 1)}
	if err := s.start(ctx, c, engine); err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

// Serve starts an embedded Temporal service with its UI, and a worker on it.
func Serve(ctx context.Context, c Config, engine activities.Engine) (*Service, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configuration of the worker: %w", err)
	}
	server, err := embedded.Start(ctx, embedded.Options{
		File: c.File, Namespace: c.Temporal.Namespace, Port: c.Temporal.Port, UIPort: c.Temporal.UIPort,
		Attributes: workflows.AttributeNames(), Log: c.Log,
	})
	if err != nil {
		return nil, err
	}
	s, err := join(ctx, c, c.embeddedOptions(server.Address), engine)
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	s.Server = server
	return s, nil
}

// start registers everything there is and begins to poll.
func (s *Service) start(ctx context.Context, c Config, engine activities.Engine) error {
	s.worker = sdkworker.New(s.Client, s.Queue, s.options(c))
	workflows.Register(s.worker, workflows.Workflows{Attributes: s.attributes(ctx)})
	s.worker.RegisterActivity(activities.New(engine, s.Client))
	if err := s.worker.Start(); err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	return nil
}

// options bound what the worker does at once. One bound for all activities is enough: none waits for what another does, and an
// attempt's time begins when it runs.
func (s *Service) options(c Config) sdkworker.Options {
	return sdkworker.Options{
		WorkerStopTimeout: stopTimeout, MaxConcurrentActivityExecutionSize: c.Stages,
		OnFatalError: func(err error) {
			s.failed <- fmt.Errorf("the Temporal service refuses the worker of task queue %s in namespace %s: see that the namespace is there and that the worker may use it, then start the worker again: %w", s.Queue, s.Namespace, err)
		},
	}
}

// Failed gives the error for which the worker gave up, once: it polls no more and does nothing until it is started again.
func (s *Service) Failed() <-chan error { return s.failed }

// attributes says whether the namespace has varve's search attributes, after trying to make those that are missing. Some
// services do not let a worker do so; then workflows run without.
func (s *Service) attributes(ctx context.Context) bool {
	has := func() bool {
		r, err := s.Client.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: s.Namespace})
		if err != nil {
			return false
		}
		for _, name := range workflows.AttributeNames() {
			if _, ok := r.GetCustomAttributes()[name]; !ok {
				return false
			}
		}
		return true
	}
	if has() {
		return true
	}
	missing := map[string]enumspb.IndexedValueType{}
	for _, name := range workflows.AttributeNames() {
		missing[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	_, err := s.Client.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: s.Namespace, SearchAttributes: missing})
	return err == nil && has()
}

// Stop ends the worker, its connection and the embedded service.
func (s *Service) Stop() error {
	s.worker.Stop()
	s.Client.Close()
	if s.Server != nil {
		return s.Server.Stop()
	}
	return nil
}

// Ready says whether the service answers.
func (s *Service) Ready(ctx context.Context) error {
	_, err := s.Client.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return fmt.Errorf("ask the Temporal service: %w", err)
	}
	return nil
}

// Run starts a workflow under an id and waits for its result; one that runs under the id already is joined.
func (s *Service) Run(ctx context.Context, id, workflow string, in, out any) error {
	run, err := s.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: s.Queue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, workflow, in)
	if err != nil {
		return fmt.Errorf("start %s: %w", id, err)
	}
	if err := run.Get(ctx, out); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return nil
}
