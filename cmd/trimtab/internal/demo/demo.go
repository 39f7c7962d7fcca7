package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/kubectl"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/steps"
	"github.com/trimtab-dev/trimtab/internal/controlplane"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
)

// Options configure the demo.
type Options struct {
	// Operator is the binary of samples/nats. Required.
	Operator string
	// Folder is where the demo keeps its files. It is removed at the end. Required.
	Folder string
	// Once ends the demo after its last step. Otherwise everything stays up until the
	// context ends.
	Once bool
	// JSON writes a [Report] to Out at the end; progress then goes to Err.
	JSON bool
	// Out and Err receive the output. Required.
	Out, Err io.Writer
}

// Report is what -o json prints.
type Report struct {
	OK    bool           `json:"ok"`
	Steps []steps.Result `json:"steps"`
	// Objects are the requests that the operator made for each object, by "Kind/name".
	Objects map[string]Cost `json:"objects"`
	Seconds float64         `json:"seconds"`
	Error   string          `json:"error,omitempty"`
}

// Cost counts requests for one object.
type Cost struct {
	// KubernetesWrites are requests to the API server that change something, except events
	// and leases, counted from its audit log.
	KubernetesWrites int `json:"kubernetesWrites"`
	// NATSWrites and NATSReads are requests that NATS received.
	NATSWrites int `json:"natsWrites"`
	NATSReads  int `json:"natsReads"`
}

// Run runs the demo. It returns an error if a step could not be verified.
func Run(ctx context.Context, o Options) error {
	lines := o.Out
	if o.JSON {
		lines = o.Err
	}
	began := time.Now()
	s := &stage{options: o, print: steps.New(lines)}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.print.OnFailure(func(err error) { stop(fmt.Errorf("cannot write output: %w", err)) })
	err := errors.Join(s.play(ctx), s.tearDown())
	if !o.JSON {
		return err
	}
	r := Report{OK: err == nil, Steps: s.print.Results(), Objects: s.costs, Seconds: float64(time.Since(began).Milliseconds()) / 1000}
	if err != nil {
		r.Error = err.Error()
	}
	encoder := json.NewEncoder(o.Out)
	encoder.SetIndent("", "  ")
	return errors.Join(err, encoder.Encode(r))
}

// stage is the state of a running demo.
type stage struct {
	options Options
	print   *steps.Printer

	cluster  *controlplane.Cluster
	admin    client.WithWatch
	nats     *natsserver.Server
	hook     hook
	operator *operator
	client   *natsClient
	costs    map[string]Cost
}

// scene is one step of the demo.
type scene struct {
	name string
	play func(context.Context, *steps.Step) error
}

// play runs the steps in order. It stops at the first step that fails, or when the control
// plane ends.
func (s *stage) play(ctx context.Context) error {
	alive, ended := context.WithCancelCause(context.WithoutCancel(ctx))
	defer ended(nil)
	if err := s.print.Run("control plane", func(st *steps.Step) error { return s.startCluster(ctx, st, ended) }); err != nil {
		return err
	}
	wanted, interrupt := context.WithCancelCause(alive)
	defer context.AfterFunc(ctx, func() { interrupt(context.Cause(ctx)) })()
	for _, scene := range []scene{
		{"NATS with JetStream", s.startNATS},
		{"CRDs and roles", s.install},
		{"operator", s.startOperator},
		{"objects", s.createObjects},
		{"drift", s.makeDrift},
		{"SIGKILL during create", s.killInMidCreate},
	} {
		if err := s.step(wanted, scene); err != nil {
			return err
		}
	}
	if !s.options.Once {
		s.stay(wanted)
		if err := context.Cause(alive); err != nil {
			return err
		}
		wanted = alive // the interruption ends the stay, not the last step
	}
	return s.step(wanted, scene{"delete everything", s.deleteAll})
}

// stepLimit is more than any step takes on two busy cores.
const stepLimit = 2 * time.Minute

func (s *stage) step(ctx context.Context, scene scene) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepLimit, fmt.Errorf("not verified within %s", stepLimit))
	defer cancel()
	err := s.print.Run(scene.name, func(st *steps.Step) error { return explained(ctx, scene.play(ctx, st)) })
	if err != nil {
		return fmt.Errorf("%s: %w", scene.name, err)
	}
	return nil
}

// endedError reports that the control plane ended unexpectedly. It is the cause of whatever
// fails at the same time.
type endedError struct{ why error }

func (e endedError) Error() string { return e.why.Error() }

// noticedWithin is how long after the end of its connections the end of a process is noticed.
const noticedWithin = time.Second

// explained adds the cause of ctx's end to the error of a step. A request may be cut off in its answer, too, so
// each error waits for the end of a process to be noticed.
func explained(ctx context.Context, err error) error {
	if err != nil {
		select {
		case <-ctx.Done():
		case <-time.After(noticedWithin):
		}
	}
	cause := context.Cause(ctx)
	if err == nil || cause == nil {
		return err
	}
	if _, ended := errors.AsType[endedError](cause); ended {
		return cause // without err, which may repeat it: a request that was cut off reports it too
	}
	if errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// stay keeps everything up until ctx ends, normally because of Ctrl-C, otherwise because the
// control plane ended.
func (s *stage) stay(ctx context.Context) {
	s.print.Line("\n  Everything stays up. In another terminal:\n")
	for _, line := range []string{
		"export KUBECONFIG=" + kubectl.Quote(s.cluster.Kubeconfig),
		"kubectl get streams,consumers,keyvalues -o wide",
		"kubectl describe consumer billing",
		`kubectl patch stream orders --type merge -p '{"spec":{"maxMsgs":500}}'`,
		"kubectl delete stream payments",
	} {
		s.print.Line("    %s", line)
	}
	s.print.Line("\n  NATS is at %s. Ctrl-C deletes everything and ends the demo.", s.nats.URL())
	<-ctx.Done()
	s.print.Line("")
}

// tearDown stops everything in reverse order and removes the folder.
func (s *stage) tearDown() error {
	var errs []error
	if s.operator != nil {
		s.operator.stop()
	}
	if s.client != nil {
		s.client.close()
	}
	if s.nats != nil {
		s.nats.Stop()
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(s.options.Folder))...)
}

func (s *stage) file(name string) string { return filepath.Join(s.options.Folder, name) }
