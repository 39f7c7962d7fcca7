package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/install"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/kubectl"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/steps"
)

// Options say what is run, and where.
type Options struct {
	// Root is the folder of the module's go.mod, an absolute path. Required.
	Root string
	// Package is the operator's main package, as go build takes it in Root. Empty means ".".
	Package string
	// Args are additional flags of the operator's manager.
	Args []string
	// Examples are files and folders with objects that are applied after each start, absolute or in Root. Empty means
	// those of [DefaultExamples] that exist.
	Examples []string
	// Config is the cluster. Required.
	Config *rest.Config
	// Temporary says that the cluster ends with the session. The operator's objects are deleted first, so that nothing stays
	// outside the cluster.
	Temporary bool
	// Folder is for the session's files. The caller removes it. Required.
	Folder string
	// Debug receives the operator's debug address. Nil: nobody needs it.
	Debug *Address
	// Kubectl writes the commands that are shown.
	Kubectl kubectl.Commands
	// Out shows what happens. On a terminal, a table of the operator's objects is below it. Required.
	Out io.Writer
}

// DefaultExamples are where modules have examples: those of `trimtab new`, and those of kubebuilder.
func DefaultExamples() []string { return []string{"example.yaml", filepath.Join("config", "samples")} }

// session is a running [Run].
type session struct {
	options Options
	screen  *screen
	print   *steps.Printer
	admin   client.Client
	objects *objects

	files   map[string]digest // what the last turn was made of
	failed  bool              // the last turn, or what came of it
	builds  int
	current *build   // what runs, or ran last; nil before the first
	process *process // nil if none runs
	account account
}

// Run runs the operator until ctx ends. Mistakes in the module are shown, and the next saved file is tried; an error means that
// the session itself cannot go on.
func Run(ctx context.Context, o Options) error {
	s, err := newSession(ctx, o)
	if err != nil {
		return err
	}
	defer s.objects.stop()
	saved, err := watch(ctx, o.Root)
	if err != nil {
		return err
	}
	if err := s.turns(ctx, saved); err != nil {
		return errors.Join(err, s.end(ctx))
	}
	return s.end(ctx)
}

func newSession(ctx context.Context, o Options) (*session, error) {
	if o.Package == "" {
		o.Package = "."
	}
	admin, err := install.Client(o.Config)
	if err != nil {
		return nil, err
	}
	dynamic, err := dynamic.NewForConfig(o.Config)
	if err != nil {
		return nil, err
	}
	screen := newScreen(o.Out)
	return &session{
		options: o, screen: screen, print: steps.New(screen), admin: admin,
		objects: newObjects(ctx, dynamic, screen), account: account{admin: admin, config: o.Config, folder: o.Folder},
	}, nil
}

// turns takes one turn now and one after each change of the module's files.
func (s *session) turns(ctx context.Context, saved <-chan error) error {
	if err := s.turn(ctx, true); err != nil {
		return err
	}
	stale := len(saved) > 0 // a change was noticed during the turn, which may have been made by it
	for ctx.Err() == nil {
		var ended <-chan struct{}
		if s.process != nil {
			ended = s.process.ended
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			s.print.Line("  ✘ the operator has ended (%v); it is started again when a file is saved", s.process.result())
			s.process, s.failed = nil, true
		case <-s.account.due():
			if err := s.account.renew(ctx); err != nil {
				s.print.Line("  ✘ %v", err)
			}
		case err := <-saved:
			if err != nil {
				return err
			}
			if err := s.turn(ctx, !stale); err != nil {
				return err
			}
			stale = len(saved) > 0
		}
	}
	return nil
}

// turn makes the operator and its examples what the module's files say, unless these have not changed. After a failure, again
// says to try the same files again. What is wrong with them is shown.
func (s *session) turn(ctx context.Context, again bool) error {
	files, err := snapshot(s.options.Root)
	if err != nil {
		return err
	}
	first := s.files == nil
	if !first && same(files, s.files) && (!s.failed || !again) {
		return nil
	}
	s.files = files
	wrong := s.try(ctx, time.Now(), first)
	s.failed = wrong != nil
	if s.failed && ctx.Err() == nil {
		s.explain(wrong)
	}
	return nil
}

// explain shows why a turn has failed, and what runs now.
func (s *session) explain(wrong error) {
	s.print.Line("%s", indented(wrong.Error()))
	now := "No operator runs."
	if s.process != nil {
		now = "The operator that runs goes on."
	}
	s.print.Line("  %s Save a file to try again.", now)
}

func (s *session) try(ctx context.Context, began time.Time, first bool) error {
	if !first {
		s.print.Line("")
	}
	var next *build
	if err := s.print.Run("build", func(st *steps.Step) (err error) {
		next, err = s.build(ctx, st)
		return err
	}); err != nil {
		return err
	}
	if err := s.print.Run("definitions", func(st *steps.Step) error { return s.fits(ctx, next, st) }); err != nil {
		return err
	}
	if err := s.print.Run("operator", func(st *steps.Step) error { return s.handOver(ctx, next, st) }); err != nil {
		return err
	}
	err := s.print.Run("examples", func(st *steps.Step) error { return s.applyExamples(ctx, st) })
	if err == nil && !first {
		s.print.Line("  %s after the file was saved", steps.Seconds(time.Since(began)))
	}
	return err
}

// handOver has the process that runs finish its passes and end, and starts the next one.
func (s *session) handOver(ctx context.Context, next *build, st *steps.Step) error {
	if s.process != nil && s.current.sum == next.sum {
		st.Detail("unchanged")
		return os.Remove(next.binary)
	}
	if s.process != nil {
		old := s.process
		s.process = nil
		if err := old.stop(); err != nil {
			s.print.Line("  ✘ the old operator did not end well: %v", err)
		}
	}
	if s.current != nil {
		_ = os.Remove(s.current.binary) // a temporary file, in a folder that is removed
	}
	s.current = next
	if err := install.Apply(ctx, s.admin, next.installed()); err != nil {
		return err
	}
	if err := s.served(ctx, next.definitions); err != nil {
		return err
	}
	if err := s.account.use(ctx, next.namespace, next.serviceAccount); err != nil {
		return err
	}
	s.objects.follow(next.definitions)
	p, err := start(next.binary, s.managerArgs(next), s.options.Root, s.screen)
	if err != nil {
		return err
	}
	s.process = p
	if s.options.Debug != nil {
		s.options.Debug.process.Store(p)
	}
	lease, err := p.ready(ctx)
	if err != nil {
		if p.hasEnded() {
			s.process = nil
		}
		return err
	}
	st.Detail("pid %d, ServiceAccount %s/%s", p.cmd.Process.Pid, next.namespace, next.serviceAccount)
	if lease != "" {
		st.Waits()
		s.print.Line("%s", indented(s.behind(ctx, lease)))
	}
	return nil
}

// servedWithin is more than the API server needs to serve a new kind.
const servedWithin = 2 * time.Minute

// served waits until the API server serves the kinds of definitions.
func (s *session) served(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	ctx, cancel := context.WithTimeout(ctx, servedWithin)
	defer cancel()
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for _, d := range definitions {
		for {
			err := s.objects.readable(ctx, d)
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("the API server does not serve the kind %s: %w", d.Spec.Names.Kind, err)
			case <-tick.C:
			}
		}
	}
	return nil
}

func (s *session) managerArgs(b *build) []string {
	return append([]string{
		"manager", "--kubeconfig", s.account.kubeconfig(), "--namespace", b.namespace, "--log-format", "text",
		"--metrics-address", "0", "--health-address", "127.0.0.1:0", "--debug-address", "127.0.0.1:0",
	}, s.options.Args...)
}

// examplesWithin is more than the API server needs to take objects of a definition that has just changed.
const examplesWithin = 5 * time.Second

func (s *session) applyExamples(ctx context.Context, st *steps.Step) error {
	paths, err := s.examples()
	if err != nil || len(paths) == 0 {
		st.Detail("none")
		return err
	}
	all, err := install.Read(paths)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, examplesWithin)
	defer cancel()
	again := time.NewTicker(retryEvery)
	defer again.Stop()
	for {
		err := install.Apply(ctx, s.admin, all)
		if err == nil {
			st.Detail("%d applied", len(all))
			return nil
		}
		select {
		case <-limited.Done():
			return err
		case <-again.C:
		}
	}
}

// retryEvery is how often something is tried whose readiness cannot be watched.
const retryEvery = 100 * time.Millisecond

func (s *session) examples() ([]string, error) {
	var paths []string
	for _, p := range s.options.Examples {
		paths = append(paths, s.inRoot(p))
	}
	if len(paths) > 0 {
		return paths, nil
	}
	for _, p := range DefaultExamples() {
		switch _, err := os.Stat(s.inRoot(p)); {
		case err == nil:
			paths = append(paths, s.inRoot(p))
		case !errors.Is(err, os.ErrNotExist):
			return nil, err
		}
	}
	return paths, nil
}

func (s *session) inRoot(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.options.Root, path)
}

// deletedWithin is how long the operator may take to delete its objects at the end.
const deletedWithin = 30 * time.Second

// end ends what the session has started. It begins when ctx has ended, or when the session cannot go on.
func (s *session) end(ctx context.Context) error {
	s.objects.quiet()
	if s.process == nil {
		return s.abandoned(context.WithoutCancel(ctx))
	}
	var err error
	if s.options.Temporary {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), deletedWithin)
		defer cancel()
		err = s.print.Run("delete objects", func(*steps.Step) error { return s.deleteAll(limited) })
	}
	err = errors.Join(err, s.print.Run("stop the operator", func(*steps.Step) error { return s.process.stop() }))
	if !s.options.Temporary {
		s.print.Line("  The definitions, roles and objects stay in the cluster.")
	}
	return err
}

// abandoned is an error if no operator runs that could delete the objects of a cluster which ends with the session.
func (s *session) abandoned(ctx context.Context) error {
	if !s.options.Temporary || s.current == nil {
		return nil
	}
	var left []string
	for _, d := range s.current.definitions {
		items, err := stored(ctx, s.admin, d)
		if err != nil {
			return err
		}
		for _, o := range items {
			left = append(left, name(&o))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("no operator ran at the end that could delete these objects, and what they stand for outside the cluster may be left: %s", strings.Join(left, ", "))
}

// deleteAll deletes the objects of the operator's kinds and waits until its finalizers let them go.
func (s *session) deleteAll(ctx context.Context) error {
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		left, err := s.deleteOnce(ctx)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the operator did not delete these objects within %s, and what they stand for outside the cluster may be left: %s",
				deletedWithin, strings.Join(left, ", "))
		case <-s.process.ended:
			return fmt.Errorf("the operator ended before these objects were deleted, and what they stand for outside the cluster may be left: %s",
				strings.Join(left, ", "))
		case <-tick.C:
		}
	}
}

// deleteOnce deletes the objects of the operator's kinds, and returns those that exist still.
func (s *session) deleteOnce(ctx context.Context) (left []string, err error) {
	for _, d := range s.current.definitions {
		items, err := stored(ctx, s.admin, d)
		if err != nil {
			return nil, err
		}
		for _, o := range items {
			left = append(left, name(&o))
			if !o.GetDeletionTimestamp().IsZero() {
				continue
			}
			if err := client.IgnoreNotFound(s.admin.Delete(ctx, &o)); err != nil {
				return nil, err
			}
		}
	}
	return left, nil
}

// name is how an object is shown.
func name(u *unstructured.Unstructured) string {
	if ns := u.GetNamespace(); ns != "" && ns != "default" {
		return u.GetKind() + "/" + ns + "/" + u.GetName()
	}
	return u.GetKind() + "/" + u.GetName()
}

func indented(text string) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ")
}
