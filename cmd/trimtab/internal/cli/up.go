package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/install"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/kubectl"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/steps"
	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

// up holds the flags of `cluster up`.
type up struct {
	data   string
	port   int
	nodes  int
	audit  string
	detach bool
	apply  []string
}

func newUp() *cobra.Command {
	var u up
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster and run it until Ctrl-C or `trimtab cluster down`",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if u.nodes < -1 {
				return fmt.Errorf("--nodes %d: use -1 for none, or a positive number", u.nodes)
			}
			h, err := openHome()
			if err != nil {
				return err
			}
			return u.run(cmd.Context(), h, steps.New(cmd.ErrOrStderr()))
		},
	}
	f := cmd.Flags()
	f.StringVar(&u.data, "data", "", "folder that keeps the cluster's state across restarts (default: a temporary folder)")
	f.IntVar(&u.port, "port", 0, "port of the API server on 127.0.0.1 (default: the port stored in --data, or a free one)")
	f.IntVar(&u.nodes, "nodes", 0, "number of simulated nodes; -1 for none, and nothing is simulated (default: 1)")
	f.StringVar(&u.audit, "audit-log", "", "file that gets an audit event for each request (default: none)")
	f.StringSliceVar(&u.apply, "apply", nil, "files and folders whose objects are applied when the cluster is ready, CRDs first")
	f.BoolVar(&u.detach, "detach", false, "return when the cluster is ready, and leave it running")
	return cmd
}

func (u up) run(ctx context.Context, h home, p *steps.Printer) error {
	objects, err := install.Read(u.apply)
	if err != nil {
		return fmt.Errorf("--apply %w", err)
	}
	lock, err := h.lock()
	if err != nil {
		return err
	}
	if lock == nil {
		r, err := h.running()
		return errors.Join(err, errBusy(r))
	}
	defer lock.Close()
	if err := h.clear(); err != nil { // remove what a crash left
		return err
	}
	p.Line("Kubernetes control plane on this machine:")
	cluster, err := u.start(ctx, h, lock, p)
	if err != nil {
		return errors.Join(err, h.clear())
	}
	if len(objects) > 0 {
		err := p.Run("apply", func(s *steps.Step) error {
			s.Detail("%d objects", len(objects))
			c, err := install.Client(cluster.Config)
			if err != nil {
				return err
			}
			return install.Apply(ctx, c, objects)
		})
		if err != nil {
			return errors.Join(err, cluster.Stop(), h.clear())
		}
	}
	p.Line("\n  export KUBECONFIG=%s\n", kubectl.Quote(cluster.Kubeconfig))
	if u.detach {
		p.Line("It runs until `trimtab cluster down`.")
		return nil
	}
	p.Line("Ctrl-C or `trimtab cluster down` stops it.")
	err = cluster.Wait()
	p.Line("stopped")
	// Stop returns when nothing is left, whoever ended the cluster.
	return errors.Join(err, cluster.Stop(), h.clear())
}

func (u up) start(ctx context.Context, h home, lock *os.File, p *steps.Printer) (*controlplane.Cluster, error) {
	r := record{Began: time.Now(), Starting: true, Kept: u.data != "", Cluster: controlplane.Cluster{PID: os.Getpid()}}
	if err := h.write(r); err != nil {
		return nil, err
	}
	o, err := u.options(h, lock)
	if err != nil {
		return nil, err
	}
	var cluster *controlplane.Cluster
	err = p.Run("control plane", func(s *steps.Step) error {
		var once sync.Once
		note := noted(p, s)
		o.Progress = func(b controlplane.Step) {
			switch {
			case b.Instead != "": // says the same
				once.Do(func() {})
			case b.Phase != controlplane.Fetching && b.Phase != controlplane.Built:
				once.Do(func() {
					p.Line("  (the first start builds it, which takes several minutes; later starts take seconds)")
				})
			}
			note(b)
		}
		cluster, err = controlplane.Start(ctx, o)
		if err != nil {
			return err
		}
		s.Detail("%s", cluster.Version)
		s.Detail("%s", cluster.URL)
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.Cluster, r.Starting = *cluster, false
	if err := h.write(r); err != nil {
		return nil, errors.Join(err, cluster.Stop())
	}
	return cluster, nil
}

func (u up) options(h home, lock *os.File) (controlplane.Options, error) {
	o := controlplane.Options{Port: u.port, Nodes: u.nodes, Kubeconfig: h.kubeconfig(), Hold: lock}
	for path, to := range map[string]*string{u.data: &o.Data, u.audit: &o.AuditLog} {
		if path == "" {
			continue
		}
		full, err := filepath.Abs(path)
		if err != nil {
			return o, fmt.Errorf("find the absolute path of %q: %w", path, err)
		}
		*to = full
	}
	if u.detach {
		o.Detach = h.complaints()
	}
	return o, nil
}

const (
	// stopsWithin is how long a cluster may take to stop before it is killed.
	stopsWithin = time.Minute
	// lockPoll is how often the lock is tried: the release of a lock cannot be waited for.
	lockPoll = 50 * time.Millisecond
)

// stop ends the cluster that r describes and removes its record.
func (h home) stop(ctx context.Context, r record) error {
	if r.PID == 0 {
		return errBusy(&r)
	}
	if err := signalEnd(r.PID, syscall.SIGTERM); err != nil {
		return err
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	insist := time.After(stopsWithin)
	for {
		lock, err := h.lock()
		if err != nil {
			return err
		}
		if lock != nil {
			defer lock.Close()
			return h.clear()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-insist:
			if err := signalEnd(r.PID, os.Kill); err != nil {
				return err
			}
		case <-tick.C:
		}
	}
}
