package operatortest

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/operator"
)

// Simulation is an operator for a simulated cluster: what fault.Operator of module kubesim says of
// one, field by field, so that it converts to that:
//
//	fault.Scenario{Operator: fault.Operator(operatortest.Simulated(options)), ...}
//
// E is what the simulation gives to each process: *fault.Env.
type Simulation[E any] struct {
	// CRDs are those of the operator's options.
	CRDs fs.FS
	// RBAC holds the account, roles and bindings among the operator's manifests.
	RBAC fs.FS
	// Justified are rights that every operator has and that few scenarios are long enough to need: to
	// repeat an event, and what a policy alone asks for.
	Justified []string
	// AddToScheme is that of the operator's options.
	AddToScheme func(*runtime.Scheme) error
	// Manager is how the operator configures its manager.
	Manager manager.Options
	// Ignored are the fields that differ with what happened on the way: the record of package external,
	// which holds times, and how often it knows that an external resource was made.
	Ignored []string
	// SetUp sets up one process of the operator.
	SetUp func(mgr manager.Manager, env E) error
}

// Simulated is how an operator that [operator.Main] runs is played by package fault of module kubesim:
// with its own CRDs and roles, as its manager sees the cluster, under flags as on its command line.
// There is no leader election unless the flags say --leader-elect. options is called for each process,
// and once with the zero E for what is the same in all of them; what it returns must be new each time.
// Reading RBAC and SetUp fail if something is wrong with the options.
func Simulated[E any](options func(env E) operator.Options, flags ...string) Simulation[E] {
	flags = append([]string{"--leader-elect=false"}, flags...)
	var none E
	o := options(none)
	s := Simulation[E]{
		CRDs: o.CRDs, AddToScheme: o.AddToScheme,
		Justified: []string{"patch events.events.k8s.io", "update records.trimtab.dev"},
		Ignored:   []string{"metadata.annotations." + api.AnnotationExternal, "status.external.incarnation"},
		SetUp: func(mgr manager.Manager, env E) error {
			e, err := operator.Embed(options(env), flags...)
			if err != nil {
				return err
			}
			return e.SetupWithManager(mgr)
		},
	}
	e, err := operator.Embed(o, flags...)
	if err != nil {
		s.RBAC = unreadable{err}
		return s
	}
	s.Manager = e.ManagerOptions()
	s.Manager.LeaderElectionNamespace = s.Manager.LeaderElectionID // where the manifests put the operator
	s.RBAC = roles(o, flags, s.Manager.LeaderElection)
	return s
}

// unreadable is a file system that cannot be read, and says why.
type unreadable struct{ err error }

// Open fails.
func (u unreadable) Open(string) (fs.File, error) { return nil, u.err }

// roles returns what says in the operator's manifests what it may do.
func roles(o operator.Options, flags []string, elects bool) fs.FS {
	objects, err := operator.Manifests(o, operator.ManifestOptions{Args: flags})
	if err != nil {
		return unreadable{err}
	}
	var out bytes.Buffer
	for _, obj := range objects {
		kind := obj.GetObjectKind().GroupVersionKind().Kind
		switch kind {
		case "Role", "RoleBinding": // of the lease alone
			if !elects && strings.HasSuffix(obj.GetName(), "-leader-election") {
				continue
			}
		case "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding":
		default:
			continue
		}
		text, err := yaml.Marshal(obj)
		if err != nil {
			return unreadable{fmt.Errorf("%s %s: %w", kind, obj.GetName(), err)}
		}
		out.WriteString("---\n" + string(text))
	}
	return fstest.MapFS{"roles.yaml": &fstest.MapFile{Data: out.Bytes()}}
}
