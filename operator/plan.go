package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/internal/manifest"
	"github.com/trimtab-dev/trimtab/operator/internal/plan"
)

// errChanges is returned by a plan that has changes; the exit code is then 2.
var errChanges = errors.New("the plan has changes")

// planning are the settings of the command "plan".
type planning struct {
	settings

	file         string
	in           string // the namespace of objects that name none
	output       string
	runReconcile bool
}

func planCmd(o Options) *cobra.Command {
	var p planning
	cmd := &cobra.Command{
		Use:   "plan (KIND/NAME | -f FILE)",
		Short: "Print what the next pass over an object would do, without changing anything",
		Long: "Print what the next pass over an object would do, by the operator's own code and without changing anything.\n" +
			"The object is one of the cluster, or one of a file, which is taken as if it were applied. Reads are real, with\n" +
			"your permissions. Writes to Kubernetes are dry runs. Calls that change an external resource are not made.\n" +
			"The exit code is 0 if nothing would be changed, 1 after an error, and 2 if something would be changed.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.run(cmd.Context(), o, args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	p.flags(f, o)
	for _, name := range []string{
		"namespace", "leader-elect", "metrics-address", "health-address", "debug-address", "webhook-address", "webhook-url", "webhook-cert-dir",
		"shutdown-timeout", "stuck-after", "trace", "log-format", "log-level",
	} { // accepted, so that the flags of the manager can be given, and without effect
		f.Lookup(name).Hidden = true
	}
	f.StringVarP(&p.file, "filename", "f", "", "file with the objects; - means standard input")
	f.StringVarP(&p.in, "object-namespace", "n", "", "namespace of the object (default: that of the kubeconfig)")
	f.StringVarP(&p.output, "output", "o", "text", "text or json")
	f.BoolVar(&p.runReconcile, "run-reconcile", false, "run the code of a controller also if it may call other systems by itself, which a plan cannot hold back")
	return cmd
}

// run plans the passes over all objects that were asked for.
func (p *planning) run(ctx context.Context, o Options, args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) == 0 && p.file == "":
		return errors.New("name an object as KIND/NAME, or give a file with -f")
	case len(args) > 0 && p.file != "":
		return errors.New("name an object or give a file, not both")
	case p.output != "text" && p.output != "json":
		return fmt.Errorf("--output %q is neither text nor json", p.output)
	}
	objects, err := p.objects(args, in)
	if err != nil {
		return err
	}
	changes := false
	for _, object := range objects {
		found, err := p.plan(ctx, o, object)
		if err != nil {
			return err
		}
		if err := p.print(found, out); err != nil {
			return err
		}
		if found.Error != "" {
			return fmt.Errorf("the pass over %s %s would fail", found.Kind, found.Name)
		}
		changes = changes || found.Changes()
	}
	if changes {
		return errChanges
	}
	return nil
}

func (p *planning) print(found *plan.Plan, out io.Writer) error {
	if p.output == "text" {
		return found.Print(out)
	}
	text, err := found.JSON()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
}

// planned is an object to plan.
type planned struct {
	kind, name string
	file       *unstructured.Unstructured
}

// objects returns those that the arguments name.
func (p *planning) objects(args []string, in io.Reader) ([]planned, error) {
	if p.file == "" {
		kind, name, ok := strings.Cut(args[0], "/")
		if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("%q names no object; write KIND/NAME, and the namespace with -n", args[0])
		}
		return []planned{{kind: kind, name: name}}, nil
	}
	var data []byte
	var err error
	if p.file == "-" {
		data, err = io.ReadAll(in)
	} else {
		data, err = os.ReadFile(p.file)
	}
	if err != nil {
		return nil, fmt.Errorf("read the file to plan: %w", err)
	}
	var out []planned
	err = manifest.Split(data, func(document []byte) error {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &u.Object); err != nil {
			return fmt.Errorf("%s: %w", p.file, err)
		}
		if len(u.Object) > 0 {
			out = append(out, planned{kind: u.GetKind(), name: u.GetName(), file: u})
		}
		return nil
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s contains no object", p.file)
	}
	return out, err
}

// plan plans the next pass over an object, with an operator of its own.
func (p *planning) plan(ctx context.Context, o Options, object planned) (*plan.Plan, error) {
	d, err := o.read()
	if err != nil {
		return nil, err
	}
	if err := d.govern(p.settings); err != nil {
		return nil, err
	}
	i, err := d.reconciles(object)
	if err != nil {
		return nil, err
	}
	if safe, ok := d.controllers[i].(interface{ DryRunSafe() bool }); !p.runReconcile && (!ok || !safe.DryRunSafe()) {
		return nil, fmt.Errorf("the controller of %s has code that may call other systems by itself, and a plan cannot hold that back; "+
			"if it calls none, or asks loop.IsDryRun first, add --run-reconcile or let its Reconciler be a loop.DryRunner", d.kinds[i].Kind)
	}
	cluster, err := findCluster(p.settings)
	if err != nil {
		return nil, err
	}
	if err := cluster.reachable(ctx); err != nil {
		return nil, err
	}
	r := plan.Request{
		Config: cluster.config, Options: d.managerOptions(p.settings), Controller: d.controllers[i], Kind: d.kinds[i], File: object.file,
		Name:  types.NamespacedName{Namespace: cluster.namespace, Name: object.name},
		Check: func(m meta.RESTMapper) error { return d.served(m, []schema.GroupVersionKind{d.kinds[i]}) },
		Setup: d.setup,
	}
	r.Options.Logger = logr.Discard()
	if p.in != "" {
		r.Name.Namespace = p.in
	} else if object.file != nil && object.file.GetNamespace() != "" {
		r.Name.Namespace = object.file.GetNamespace()
	}
	return plan.Run(ctx, r)
}

// reconciles returns the index of the controller of an object.
func (d *design) reconciles(object planned) (int, error) {
	var known []string
	for i, kind := range d.kinds {
		if object.file != nil {
			if kind == object.file.GroupVersionKind() {
				return i, nil
			}
		} else if slices.Contains(d.resources.names(kind), strings.ToLower(object.kind)) {
			return i, nil
		}
		known = append(known, kind.Kind)
	}
	return 0, fmt.Errorf("%s is no kind of a controller of this operator, which has %s", object.kind, strings.Join(known, ", "))
}
