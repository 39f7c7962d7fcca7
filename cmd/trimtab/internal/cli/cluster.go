package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/steps"
	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

var errNoCluster = errors.New("no cluster is running; start one with `trimtab cluster up`")

func newCluster() *cobra.Command {
	cluster := &cobra.Command{
		Use:   "cluster",
		Short: "Run a Kubernetes control plane on this machine",
		Long: "Runs a Kubernetes control plane on this machine: etcd, kube-apiserver, controllers and simulated\n" +
			"nodes in one process. On first use it is downloaded if this is a release of trimtab, and built\n" +
			"otherwise, which takes several minutes; after that it starts in seconds. A download is checked by\n" +
			"a digest that is part of trimtab. " + controlplane.EnvReleases + " is its address, and if empty, it is built.\n\n" +
			"No container runs. On the simulated nodes, pods become Ready and the pods of Jobs succeed. Claims\n" +
			"are bound to simulated volumes of the StorageClass \"standard\". Services of type LoadBalancer and\n" +
			"Ingresses of the class \"simulated\" get addresses at which nobody answers. For\n" +
			"HorizontalPodAutoscalers, pods use no CPU and no memory. With --nodes -1, nothing is simulated.",
		Args: cobra.NoArgs, // so that a misspelt command is an error
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cluster.AddCommand(newBuild(), newUp(), newDown(), newStatus(), newKubeconfig())
	return cluster
}

func newBuild() *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Download or build the control plane if necessary and print the path of the binary",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := controlplane.Binary(cmd.Context(), controlplane.Print(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
}

// noted shows the progress of a build with a step.
func noted(p *steps.Printer, s *steps.Step) controlplane.Progress {
	return func(b controlplane.Step) {
		if b.Instead != "" {
			p.Line("  (%s)", b.Instead)
		}
		s.Note(b.String())
	}
}

func newKubeconfig() *cobra.Command {
	return &cobra.Command{
		Use:     "kubeconfig",
		Short:   "Print the path of the cluster's kubeconfig",
		Example: "  export KUBECONFIG=$(trimtab cluster kubeconfig)",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := running()
			switch {
			case err != nil:
				return err
			case r == nil:
				return errNoCluster
			case r.Starting:
				return errors.New("the cluster is still starting; try again in a moment")
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), r.Kubeconfig)
			return err
		},
	}
}

func running() (*record, error) {
	h, err := openHome()
	if err != nil {
		return nil, err
	}
	return h.running()
}

// clusterStatus is what `status -o json` prints.
type clusterStatus struct {
	// State is "stopped", "starting", "ready" or "unready".
	State string `json:"state"`
	// Cluster is nil if no cluster is running.
	Cluster *record `json:"cluster,omitempty"`
}

func newStatus() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show whether the cluster is running, and where",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("-o %s: use json, or omit -o", output)
			}
			r, err := running()
			if err != nil {
				return err
			}
			s := clusterStatus{State: state(cmd, r), Cluster: r}
			if output == "json" {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(s)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), s)
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json, or empty for text")
	return cmd
}

// String returns the status as text.
func (s clusterStatus) String() string {
	c := s.Cluster
	if c == nil || c.Starting {
		return s.State + "\n"
	}
	data := c.Data
	if !c.Kept {
		data += " (removed with the cluster)"
	}
	return fmt.Sprintf("%-12s%s for %s\n%-12s%s\n%-12s%s\n%-12s%d\n%-12s%s\n%-12s%s\n",
		"state", s.State, time.Since(c.Began).Round(time.Second),
		"server", c.URL, "version", c.Version, "process", c.PID, "data", data, "kubeconfig", c.Kubeconfig)
}

func state(cmd *cobra.Command, r *record) string {
	switch {
	case r == nil:
		return "stopped"
	case r.Starting:
		return "starting"
	case ready(cmd, r.Kubeconfig):
		return "ready"
	}
	return "unready"
}

// answersWithin is more than a healthy server on the same machine needs to answer.
const answersWithin = 5 * time.Second

// ready reports whether the server itself says that it is ready.
func ready(cmd *cobra.Command, kubeconfig string) bool {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return false
	}
	cfg.Timeout = answersWithin
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return false
	}
	req, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, cfg.Host+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func newDown() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster; the data in a folder given by --data stays",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := openHome()
			if err != nil {
				return err
			}
			p := steps.New(cmd.ErrOrStderr())
			r, err := h.running()
			if err != nil {
				return err
			}
			if r == nil {
				p.Line("no cluster is running")
				return h.tidy()
			}
			return p.Run("stop", func(*steps.Step) error { return h.stop(cmd.Context(), *r) })
		},
	}
}

// errBusy explains who holds the lock.
func errBusy(r *record) error {
	if r == nil || r.Starting {
		return errors.New("a cluster is already starting; wait for it, or stop it with `trimtab cluster down`")
	}
	return fmt.Errorf("a cluster is already running at %s (process %d); use it with `export KUBECONFIG=%s`, or stop it with `trimtab cluster down`",
		r.URL, r.PID, r.Kubeconfig)
}

// signalEnd sends sig, which asks a process to end or kills it.
func signalEnd(pid int, sig os.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer p.Release() //nolint:errcheck // nothing is lost
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	return nil
}
