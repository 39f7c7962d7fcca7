package cli

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/ui"
)

func newUI() *cobra.Command {
	var k kube
	var address, operator string
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show in a browser what is not ready and why",
		Long: "Serves a dashboard on this machine: the objects of operators that are not ready, worst first, and for each\n" +
			"one why, its conditions, and what it is made of. It is kept current while it is open. Objects are read with\n" +
			"your permissions, and nothing is changed but by the actions on the page, which are shown with their commands.\n" +
			"Only who has the address that is printed gets in, because it has a key. The page keeps that for its tab alone.\n\n" +
			"The page Operator says whether the operator itself is well. By default, that is what its lease shows, and how to\n" +
			"make the operator reachable; with --operator, it is also asked for its queue, passes, requests and permissions.",
		Example: "  kubectl trimtab ui\n  kubectl trimtab ui -n shop --address 127.0.0.1:8080\n" +
			"  kubectl trimtab ui --operator http://127.0.0.1:8082",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := onLoopback(address); err != nil {
				return err
			}
			if err := onThisMachine(operator); err != nil {
				return err
			}
			k.all = k.all || *k.flags.Namespace == ""
			t, err := k.target()
			if err != nil {
				return err
			}
			name := *k.flags.Context
			if raw, err := k.flags.ToRawKubeConfigLoader().RawConfig(); err == nil && name == "" {
				name = raw.CurrentContext
			}
			dashboard := t.dashboard(name)
			dashboard.Operator.URL = strings.TrimSuffix(operator, "/")
			return serveUI(cmd.Context(), address, dashboard, func(url string) { fmt.Fprintln(cmd.OutOrStdout(), url) })
		},
	}
	k.bind(cmd, true)
	cmd.Flags().StringVar(&address, "address", "127.0.0.1:7777", "where to listen; it must be on loopback, and port 0 takes a free one")
	cmd.Flags().StringVar(&operator, "operator", "", "debug address of an operator, as http://127.0.0.1:8082; kubectl port-forward makes that of a Pod reachable")
	return cmd
}

// onThisMachine refuses addresses of operators that are not on loopback: an operator answers there alone.
func onThisMachine(operator string) error {
	if operator == "" {
		return nil
	}
	u, err := url.Parse(operator)
	if err != nil || u.Scheme != "http" || u.Port() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil ||
		u.Hostname() != "localhost" && !loopback(u.Hostname()) {
		return fmt.Errorf("--operator %s: use http://127.0.0.1:PORT; an operator answers on loopback only, and kubectl port-forward -n NAMESPACE pod/NAME PORT:8082 makes that of a Pod reachable here", operator)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// onLoopback refuses addresses that other machines reach.
func onLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil || !loopback(host) {
		return fmt.Errorf("--address %s: use 127.0.0.1:PORT; whoever opens the dashboard has your permissions, so it is on loopback only", address)
	}
	return nil
}

// serveUI serves until ctx ends. It tells the address as soon as the dashboard can be opened.
func serveUI(ctx context.Context, address string, o ui.Options, tell func(url string)) error {
	var listening net.ListenConfig
	l, err := listening.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--address %s: %w; use another port, or 0 for a free one", address, err)
	}
	s := ui.New(o)
	server := &http.Server{Handler: s.Handler(l.Addr()), ReadHeaderTimeout: 10 * time.Second}
	var running sync.WaitGroup
	defer running.Wait()
	serving, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() { s.Run(serving) })
	running.Go(func() {
		<-serving.Done()
		_ = server.Close() // streams have no end
	})
	tell(s.URL(l.Addr()))
	if err := server.Serve(l); ctx.Err() == nil {
		return fmt.Errorf("serve the dashboard: %w", err)
	}
	return nil
}

// fresh is how long kinds and permissions that were looked up are taken as they were.
const fresh = 15 * time.Second

// dashboard is what a dashboard shows of a cluster, and the actions that it offers.
func (t target) dashboard(name string) ui.Options {
	p := &permissions{known: map[model.Ref]permission{}}
	var kinds sync.Mutex
	looked := time.Now()
	return ui.Options{
		Name: name, Namespace: t.namespace, Watch: t.watch, Module: modulePath("."),
		Cluster: func() *model.Cluster {
			kinds.Lock()
			defer kinds.Unlock()
			if cache, is := t.server.(interface{ Invalidate() }); is && time.Since(looked) > fresh {
				cache.Invalidate()
				meta.MaybeResetRESTMapper(t.mapper) // which takes a cache that was filled again for fresh
				looked = time.Now()
			}
			return t.cluster()
		},
		Actions: []ui.Action{
			t.action("reconcile", p, func(ctx context.Context, c *model.Cluster, r model.Ref) (model.Change, error) {
				return c.Reconcile(ctx, r, newToken())
			}),
			t.action("pause", p, func(ctx context.Context, c *model.Cluster, r model.Ref) (model.Change, error) {
				change, err := c.Pause(ctx, r, "")
				if change.Was != "" { // it is paused until some time
					return model.Change{}, err
				}
				return change, err
			}),
			t.action("resume", p, func(ctx context.Context, c *model.Cluster, r model.Ref) (model.Change, error) {
				return c.Resume(ctx, r)
			}),
			t.action("approve", p, func(ctx context.Context, c *model.Cluster, r model.Ref) (model.Change, error) {
				h, err := c.Held(ctx, r)
				if err != nil {
					return model.Change{}, err
				}
				hold, err := chosen(h, "") // of several, the command names one
				if err != nil || hold == nil {
					return model.Change{}, err
				}
				return hold.Change(), nil
			}),
		},
	}
}

// action is a change that can be made to an object, if it would change something.
func (t target) action(verb string, p *permissions, change func(context.Context, *model.Cluster, model.Ref) (model.Change, error)) ui.Action {
	return ui.Action{
		Verb:    verb,
		Command: func(r model.Ref) string { return t.cluster().Verb(verb, r) },
		For: func(ctx context.Context, c *model.Cluster, o model.Object) (effects []string, offered bool) {
			would, err := change(ctx, c, o.Ref)
			return follows(would), err == nil && would.Annotation != "" && p.mayPatch(ctx, t, o.Ref)
		},
		Do: func(ctx context.Context, r model.Ref, uid types.UID, agreed func([]string) error) error {
			c, err := change(ctx, t.cluster(), r)
			switch {
			case err != nil:
				return err
			case c.UID() != "" && c.UID() != uid:
				return replacedError(r)
			case c.Annotation == "":
				return fmt.Errorf("%s: there is nothing to %s any more", r, verb)
			}
			if err := agreed(follows(c)); err != nil {
				return err
			}
			return t.make(ctx, c, false)
		},
	}
}

// follows says what follows from a change.
func follows(c model.Change) []string {
	if len(c.Gone) == 0 {
		return c.Effects
	}
	return append(slices.Clone(c.Effects), "not kept: "+strings.Join(c.Gone, ", "))
}

// watch calls changed after each change of an object of a kind, until the watch ends.
func (t target) watch(ctx context.Context, kind schema.GroupVersionKind, namespace string, changed func()) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	w, err := t.client.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return fmt.Errorf("watch objects of kind %s: the watch has ended", kind.Kind)
		}
		changed()
	}
	return nil
}

// permissions remembers for a while what the user may do.
type permissions struct {
	mu    sync.Mutex
	known map[model.Ref]permission
}

type permission struct {
	allowed bool
	at      time.Time
}

// mayPatch reports whether the user may patch an object. What cannot be found out is not allowed.
func (p *permissions) mayPatch(ctx context.Context, t target, r model.Ref) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, has := p.known[r]; has && time.Since(last.at) < fresh {
		return last.allowed
	}
	allowed, err := t.mayPatch(ctx, r)
	if err != nil {
		return false
	}
	maps.DeleteFunc(p.known, func(_ model.Ref, last permission) bool { return time.Since(last.at) >= fresh })
	p.known[r] = permission{allowed, time.Now()}
	return allowed
}
