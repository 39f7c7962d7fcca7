package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

// kube is the cluster that a command asks, with the flags of kubectl.
type kube struct {
	flags  *genericclioptions.ConfigFlags
	given  *pflag.FlagSet
	output string
	all    bool
}

func (k *kube) bind(cmd *cobra.Command, namespaces bool) {
	k.flags = genericclioptions.NewConfigFlags(true)
	k.flags.AddFlags(cmd.Flags())
	k.given = cmd.Flags()
	cmd.Flags().StringVarP(&k.output, "output", "o", "", "json for programs; empty for people")
	if namespaces {
		cmd.Flags().BoolVarP(&k.all, "all-namespaces", "A", false, "objects of all namespaces")
	}
}

// target is the cluster and the namespace that are meant.
type target struct {
	config    *rest.Config
	client    client.WithWatch
	mapper    meta.RESTMapper
	server    discovery.ServerResourcesInterface
	namespace string
	named     []string // the flags of kubectl that name the cluster
}

// cluster returns a reader of what a target has.
func (t target) cluster() *model.Cluster {
	return model.New(t.client, t.mapper, t.server, t.named...)
}

// naming are the flags of kubectl that say which cluster is meant, and who asks. A token is none: it is not to be shown.
func naming() []string {
	return []string{
		"as", "as-group", "as-uid", "as-user-extra", "certificate-authority", "client-certificate", "client-key", "cluster", "context",
		"insecure-skip-tls-verify", "kubeconfig", "proxy-url", "server", "tls-server-name", "user",
	}
}

// named returns the flags that were given and name the cluster, as a command repeats them.
func (k *kube) named() (all []string) {
	k.given.Visit(func(f *pflag.Flag) {
		if !slices.Contains(naming(), f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if several, is := f.Value.(pflag.SliceValue); is {
			values = several.GetSlice()
		}
		for _, value := range values {
			all = append(all, "--"+f.Name+"="+value)
		}
	})
	return all
}

// target connects.
func (k *kube) target() (target, error) {
	if k.output != "" && k.output != "json" {
		return target{}, fmt.Errorf("--output: %q is not known; use json, or leave it out", k.output)
	}
	namespace, _, err := k.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return target{}, err
	}
	if k.all {
		namespace = ""
	}
	config, err := k.flags.ToRESTConfig()
	if err != nil {
		return target{}, err
	}
	config.QPS = -1 // one question asks many times, and nothing afterwards
	mapper, err := k.flags.ToRESTMapper()
	if err != nil {
		return target{}, err
	}
	server, err := k.flags.ToDiscoveryClient()
	if err != nil {
		return target{}, err
	}
	c, err := client.NewWithWatch(config, client.Options{Mapper: mapper})
	if err != nil {
		return target{}, err
	}
	return target{config, c, mapper, server, namespace, k.named()}, nil
}

// targetOf is a whole cluster. Flags name it to kubectl.
func targetOf(config *rest.Config, flags ...string) (target, error) {
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return target{}, err
	}
	cache := memory.NewMemCacheClient(server)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cache)
	c, err := client.NewWithWatch(config, client.Options{Mapper: mapper})
	if err != nil {
		return target{}, err
	}
	return target{config: config, client: c, mapper: mapper, server: cache, named: flags}, nil
}

// kindOf returns the kind that a word means, as kubectl takes it: a kind, a resource, a short name, maybe with its group.
func kindOf(mapper meta.RESTMapper, word string) (schema.GroupVersionKind, error) {
	full, gr := schema.ParseResourceArg(strings.ToLower(word))
	if full != nil {
		if kind, err := mapper.KindFor(*full); err == nil {
			return kind, nil
		}
	}
	kind, err := mapper.KindFor(gr.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return kind, fmt.Errorf("the cluster has no kind %q; kubectl api-resources lists those that it has", word)
	}
	return kind, err
}

// object returns what arguments such as "widget/a" or "widget a" name.
func (t target) object(args []string) (model.Ref, error) {
	namespace := t.namespace
	word, name, is := strings.Cut(args[0], "/")
	if !is && len(args) == 2 {
		name, is = args[1], true
	} else if len(args) == 2 {
		is = false
	}
	if !is || word == "" || name == "" {
		return model.Ref{}, fmt.Errorf("%q names no object; write KIND/NAME", strings.Join(args, " "))
	}
	kind, err := kindOf(t.mapper, word)
	if err != nil {
		return model.Ref{}, err
	}
	mapping, err := t.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return model.Ref{}, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	return model.Ref{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: namespace, Name: name}, nil
}

// asked returns the object that arguments name, and its cluster.
func (k *kube) asked(args []string) (target, model.Ref, error) {
	t, err := k.target()
	if err != nil {
		return target{}, model.Ref{}, err
	}
	r, err := t.object(args)
	return t, r, err
}

func printJSON(out io.Writer, value any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// printUnseen says what the answer lacks.
func printUnseen(out io.Writer, unseen []string) {
	if len(unseen) > 0 {
		fmt.Fprintf(out, "\nNot seen: %s\n", strings.Join(unseen, "\n          "))
	}
}

func newTable(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

// ago is an age as kubectl shows it.
func ago(t metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(time.Since(t.Time))
}

// mark shows whether an object is ready.
func mark(o model.Object) string {
	if o.Held {
		return "○"
	}
	switch o.Ready {
	case "":
		return ""
	case metav1.ConditionTrue:
		return "✔"
	case metav1.ConditionFalse, metav1.ConditionUnknown:
	}
	return "✗"
}

// flat is a message in one line.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// line is a message in one short line.
func line(text string) string {
	text = flat(text)
	if r := []rune(text); len(r) > 160 {
		return string(r[:159]) + "…"
	}
	return text
}
