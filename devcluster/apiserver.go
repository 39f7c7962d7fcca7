package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/trimtab-dev/trimtab/devcluster/internal/pki"
)

const serviceAccountIssuer = "https://kubernetes.default.svc.cluster.local"

// auditPolicy records every request once, when it has been answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// startAPIServer uses the server's options and Run directly, because its cobra
// command would install a signal handler for the whole process.
func (c *Cluster) startAPIServer(ctx context.Context) error {
	opts := options.NewServerRunOptions()
	args, err := c.apiServerArgs()
	if err != nil {
		return err
	}
	if err := parse(opts.Flags(), args); err != nil {
		return fmt.Errorf("kube-apiserver's flags: %w", err)
	}
	opts.SecureServing.Listener = c.listener
	if err := opts.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("kube-apiserver's feature gates: %w", err)
	}
	completed, err := opts.Complete(ctx)
	if err != nil {
		return fmt.Errorf("kube-apiserver's options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return fmt.Errorf("kube-apiserver's options: %w", errors.Join(errs...))
	}
	c.run(ctx, "kube-apiserver", func(ctx context.Context) error { return app.Run(ctx, completed) })
	return c.waitForAPIServer(ctx)
}

func (c *Cluster) apiServerArgs() ([]string, error) {
	args := []string{
		"--etcd-servers=" + c.etcdSocket().String(),
		"--bind-address=127.0.0.1",
		// Endpoints must not contain loopback addresses, and the machine may have no
		// other address, so those of the Service kubernetes are not maintained.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + c.pki.Cert(pki.APIServer),
		"--tls-private-key-file=" + c.pki.Key(pki.APIServer),
		"--client-ca-file=" + c.pki.Cert(pki.CA),
		"--requestheader-client-ca-file=" + c.pki.Cert(pki.FrontProxyCA),
		"--requestheader-allowed-names=" + pki.FrontProxy,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.pki.Cert(pki.FrontProxy),
		"--proxy-client-key-file=" + c.pki.Key(pki.FrontProxy),
		"--service-account-issuer=" + serviceAccountIssuer,
		"--service-account-key-file=" + c.pki.Key(pki.ServiceAccounts),
		"--service-account-signing-key-file=" + c.pki.Key(pki.ServiceAccounts),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--profiling=false",
	}
	audit, err := c.auditArgs()
	return append(args, audit...), err
}

func (c *Cluster) auditArgs() ([]string, error) {
	const policy = "audit-policy.yaml"
	path := c.options.AuditLog
	if path == "" {
		return nil, nil
	}
	// The server opens the file at the first request and only logs an error.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("audit log: %w; use a writable file", err)
	}
	if err := c.folder.Write(policy, []byte(auditPolicy)); err != nil {
		return nil, fmt.Errorf("write the audit policy: %w", err)
	}
	return []string{"--audit-policy-file=" + c.folder.Join(policy), "--audit-log-path=" + path}, nil
}

// waitForAPIServer polls the server until it reports that it is ready.
func (c *Cluster) waitForAPIServer(ctx context.Context) error {
	const pause = 20 * time.Millisecond
	late := &lateError{what: "kube-apiserver"}
	ctx, cancel := c.waiting(ctx, late)
	defer cancel()
	clients, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		said, err := clients.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil {
			return nil
		}
		if failed := failedChecks(said); failed != "" {
			late.checks = failed
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// failedChecks are the names of the checks that have not succeeded, by the server's answer to /readyz.
func failedChecks(readyz []byte) string {
	var names []string
	for line := range strings.Lines(string(readyz)) {
		if rest, ok := strings.CutPrefix(line, "[-]"); ok {
			name, _, _ := strings.Cut(rest, " ")
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// parse applies args to the flags of a component. Flags are the only stable
// interface to its options.
func parse(flags cliflag.NamedFlagSets, args []string) error {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, fs := range flags.FlagSets {
		all.AddFlagSet(fs)
	}
	return all.Parse(args)
}
