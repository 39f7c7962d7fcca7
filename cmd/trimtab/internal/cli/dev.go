package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/dev"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/kubectl"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/steps"
)

func newDev() *cobra.Command {
	o := dev.Options{}
	cluster := ""
	cmd := &cobra.Command{
		Use:   "dev [PACKAGE] [-- FLAGS]",
		Short: "Run the operator of a module, and a cluster for it, while you change the code",
		Long: "Runs the operator of the module in the working directory with a control plane on this machine: that of\n" +
			"trimtab cluster, or one of its own that ends with the command. It generates deep copies and CRDs, builds the\n" +
			"operator, runs it under the permissions of its own manifests, applies example.yaml and config/samples, and\n" +
			"shows the operator's objects and their transitions.\n\n" +
			"After each saved file it does so again. The old operator finishes its passes and ends before the new one\n" +
			"starts. If the code does not compile, or objects in the cluster do not fit a changed type, the old one goes\n" +
			"on. Ctrl-C ends everything; in a control plane of its own, the operator deletes its objects first. While\n" +
			"another one holds the operator's lease, it stands by; who that is, and how to end it, is shown.",
		Example: "  trimtab dev\n" +
			"  trimtab dev ./cmd/manager -- --api-url http://localhost:9000\n" +
			"  trimtab dev --cluster current   # that of your kubeconfig",
		RunE: func(cmd *cobra.Command, args []string) error {
			packages := args
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				packages, o.Args = args[:n], args[n:]
			}
			switch len(packages) {
			case 0:
			case 1:
				o.Package = packages[0]
			default:
				return fmt.Errorf("%d packages are given; name the operator's main package, as in trimtab dev ./cmd/manager", len(packages))
			}
			var err error
			if o.Root, err = moduleRoot(); err != nil {
				return err
			}
			for i, path := range o.Examples {
				if o.Examples[i], err = filepath.Abs(path); err != nil {
					return err
				}
			}
			if cluster == "current" && unled(o.Args) {
				return errors.New("--leader-elect=false with --cluster current: an operator that runs in the cluster and this one would work on the same objects at the same time; leave it out, or use --cluster embedded")
			}
			o.Out = cmd.OutOrStdout()
			return develop(cmd.Context(), cluster, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cluster, "cluster", "embedded", "embedded: a control plane on this machine, that of trimtab cluster if it runs; current: the cluster of your kubeconfig")
	f.StringSliceVar(&o.Examples, "examples", nil, "files and folders with objects that are applied after each change (default: example.yaml and config/samples)")
	return cmd
}

// unled reports whether the flags of an operator turn off its leader election.
func unled(args []string) bool {
	off := false
	for _, arg := range args {
		if arg == "--leader-elect" {
			off = false
		} else if value, is := strings.CutPrefix(arg, "--leader-elect="); is {
			leads, err := strconv.ParseBool(value)
			off = err == nil && !leads
		}
	}
	return off
}

// develop runs a session in a cluster.
func develop(ctx context.Context, cluster string, o dev.Options) (err error) {
	if o.Folder, err = os.MkdirTemp("", "trimtab-dev-"); err != nil {
		return fmt.Errorf("create a temporary folder: %w; set TMPDIR to a writable folder", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.Folder)) }()
	switch cluster {
	case "current":
		o.Config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
		if err != nil {
			return err
		}
		return session(ctx, o)
	case "embedded":
		return embedded(ctx, o)
	}
	return fmt.Errorf("--cluster %q is not known; use embedded or current", cluster)
}

// session runs a session with a dashboard. Ctrl-C is its normal end. The flags name the cluster to kubectl.
func session(ctx context.Context, o dev.Options, flags ...string) error {
	o.Config.QPS = -1 // one question asks many times, and nothing afterwards
	t, err := targetOf(o.Config, flags...)
	if err != nil {
		return err
	}
	o.Kubectl, o.Debug = kubectl.Commands{Flags: flags}, &dev.Address{}
	dashboard := t.dashboard("trimtab dev")
	dashboard.Operator.At = o.Debug.URL
	serving, stop := context.WithCancel(ctx)
	shown, failed := make(chan string, 1), make(chan error, 1)
	go func() {
		failed <- serveUI(serving, "127.0.0.1:0", dashboard, func(url string) { shown <- url })
	}()
	select {
	case url := <-shown:
		fmt.Fprintf(o.Out, "  dashboard: %s\n\n", url)
	case err := <-failed:
		stop()
		return err
	}
	err = dev.Run(ctx, o)
	stop()
	return errors.Join(err, <-failed)
}

// embedded runs a session in the cluster of `trimtab cluster`, which is started, and ends with the session, if it does not run.
func embedded(ctx context.Context, o dev.Options) error {
	h, err := openHome()
	if err != nil {
		return err
	}
	lock, err := h.lock()
	if err != nil {
		return err
	}
	if lock == nil {
		r, err := h.running()
		if err != nil {
			return err
		}
		if r == nil || r.Starting {
			return errBusy(r)
		}
		return inRunning(ctx, r.Kubeconfig, o)
	}
	defer lock.Close()
	if err := h.clear(); err != nil { // remove what a crash left
		return err
	}
	// The control plane outlives ctx: the operator deletes its objects first.
	life, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	defer giveUp(nil)
	starting := context.AfterFunc(ctx, func() { giveUp(context.Cause(ctx)) })
	c, err := up{}.start(life, h, lock, steps.New(o.Out))
	if err != nil {
		return errors.Join(err, h.clear())
	}
	if !starting() {
		return errors.Join(context.Cause(ctx), c.Stop(), h.clear())
	}
	alive, ended := context.WithCancelCause(ctx)
	defer ended(nil)
	go func() {
		if why := c.Wait(); why != nil {
			ended(fmt.Errorf("the control plane ended: %w", why))
		}
	}()
	fmt.Fprintf(o.Out, "\n  export KUBECONFIG=%s\n\n", kubectl.Quote(c.Kubeconfig))
	o.Config, o.Temporary = c.Config, true
	err = session(alive, o, "--kubeconfig="+c.Kubeconfig)
	if ctx.Err() == nil {
		err = errors.Join(context.Cause(alive), err)
	}
	return errors.Join(err, c.Stop(), h.clear())
}

func inRunning(ctx context.Context, kubeconfig string, o dev.Options) error {
	fmt.Fprintf(o.Out, "The cluster of `trimtab cluster` is used, and stays:\n\n  export KUBECONFIG=%s\n\n", kubectl.Quote(kubeconfig))
	var err error
	if o.Config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return err
	}
	return session(ctx, o, "--kubeconfig="+kubeconfig)
}
