// Command bare is the operator of package bare. It understands as much of the command line of
// trimtab's operators as package operatortest uses.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/test/beside/internal/bare"
	"github.com/trimtab-dev/trimtab/test/beside/internal/cloud"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the process ends
	}
}

// synced waits until c has what the controllers read.
func synced(c cache.Cache) healthz.Checker {
	return func(r *http.Request) error {
		if !c.WaitForCacheSync(r.Context()) {
			return errors.New("the cache is not complete")
		}
		return nil
	}
}

// settings are the flags; those that nothing reads are accepted because others pass them.
type settings struct {
	namespace, kubeconfig, health, cloud string
	drift                                time.Duration
	workers                              int
}

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("bare", flag.ContinueOnError)
	f.StringVar(&s.namespace, "namespace", "", "")
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "")
	f.StringVar(&s.health, "health-address", "", "")
	f.StringVar(&s.cloud, "cloud", "", "")
	f.DurationVar(&s.drift, "drift-interval", 0, "")
	f.IntVar(&s.workers, "workers", 1, "")
	f.String("metrics-address", "", "")
	f.String("debug-address", "", "")
	f.Bool("leader-elect", false, "")
	return s, f.Parse(args)
}

func run(ctx context.Context, command string, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	if command == "manifests" {
		return manifests(s.namespace)
	}
	return manage(ctx, s)
}

func manifests(namespace string) error {
	crd, err := thing.CRDs.ReadFile("crds/things.trimtab.dev_things.yaml")
	if err != nil {
		return err
	}
	fmt.Printf(`apiVersion: v1
kind: ServiceAccount
metadata: {name: bare, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: bare}
rules:
- {apiGroups: [things.trimtab.dev], resources: [things], verbs: [get, list, watch, patch]}
- {apiGroups: [things.trimtab.dev], resources: [things/status], verbs: [patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: bare}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: bare}
subjects: [{kind: ServiceAccount, name: bare, namespace: %[1]s}]
---
%[2]s`, namespace, strings.TrimPrefix(string(crd), "---\n"))
	return nil
}

func manage(ctx context.Context, s settings) error {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	scheme := clientgoscheme.Scheme
	if err := thing.AddToScheme(scheme); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.health)
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil { // for the manager, which does not say on which port it listens
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: address,
		Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	if err != nil {
		return err
	}
	r := &bare.Reconciler{Client: mgr.GetClient(), Cloud: cloud.NewClient(s.cloud), Drift: s.drift}
	if err := r.SetupWithManager(mgr, s.workers); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("cache", synced(mgr.GetCache())); err != nil {
		return err
	}
	log.Info("starting", "health-address", address)
	return mgr.Start(ctx)
}
