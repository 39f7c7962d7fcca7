package operatortest

import (
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

// Simulation describes an operator for a simulated cluster. It has the same fields as fault.Operator
// in module kubesim and can be converted to it:
//
//	fault.Scenario{Operator: fault.Operator(operatortest.Simulated(options)), ...}
//
// E is the type of what the simulation passes to each process: *fault.Env.
type Simulation[E any] struct {
	// CRDs are those of the operator's options.
	CRDs fs.FS
	// RBAC contains the service account, roles and bindings from the operator's manifests.
	RBAC fs.FS
	// Webhooks is for webhook configurations, of which the operator's options know nothing. Simulated
	// returns nil.
	Webhooks fs.FS
	// Justified are permissions that every operator has but few scenarios use: to repeat an event,
	// and one that only a policy checks.
	Justified []string
	// AddToScheme is that of the operator's options.
	AddToScheme func(*runtime.Scheme) error
	// Manager are the options of the operator's manager.
	Manager manager.Options
	// Ignored are fields whose values depend on what happened before: the record of package
	// external, which contains times, the number of known creations, and conditions that tell the past.
	Ignored []string
	// SetUp sets up one process of the operator.
	SetUp func(mgr manager.Manager, env E) error
}

// Simulated returns the operator that options describe in the form that package fault of module
// kubesim runs: with its own CRDs and roles, its manager's view of the cluster, and the given flags.
// There is no leader election unless the flags include --leader-elect. options is called for each
// process, and once with the zero E for what all processes have in common; it must return new values
// each time. If something is wrong with the options, reading RBAC and SetUp return the error.
func Simulated[E any](options func(env E) operator.Options, flags ...string) Simulation[E] {
	flags = append([]string{"--leader-elect=false"}, flags...)
	var none E
	o := options(none)
	s := Simulation[E]{
		CRDs: o.CRDs, AddToScheme: o.AddToScheme,
		Justified: []string{"patch events.events.k8s.io", "update records.trimtab.dev"},
		Ignored: []string{
			"metadata.annotations." + api.AnnotationExternal, "status.external.incarnation",
			"status.conditions.[Creating=False]", "status.conditions.[Updating=False]", "status.conditions.[Failed=False]",
		},
	}
	e, err := operator.Embed(o, flags...)
	if err != nil {
		s.RBAC = unreadable{err}
		s.SetUp = func(manager.Manager, E) error { return err }
		return s
	}
	s.SetUp = func(mgr manager.Manager, env E) error {
		process, err := e.Again(options(env))
		if err != nil {
			return err
		}
		return process.SetupWithManager(mgr)
	}
	s.Manager = e.ManagerOptions()
	s.Manager.LeaderElectionNamespace = s.Manager.LeaderElectionID // the manifests' default namespace
	s.RBAC = roles(o, flags, s.Manager.LeaderElection)
	return s
}

// unreadable is a file system that cannot be read. It returns its error instead.
type unreadable struct{ err error }

// Open fails.
func (u unreadable) Open(string) (fs.File, error) { return nil, u.err }

// roles returns the RBAC objects in the operator's manifests.
func roles(o operator.Options, flags []string, elects bool) fs.FS {
	objects, err := operator.Manifests(o, operator.ManifestOptions{Args: flags})
	if err != nil {
		return unreadable{err}
	}
	files := fstest.MapFS{}
	for _, obj := range objects {
		kind := obj.GetObjectKind().GroupVersionKind().Kind
		switch kind {
		case "Role", "RoleBinding": // only for the lease
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
		files[fmt.Sprintf("%02d.yaml", len(files))] = &fstest.MapFile{Data: text}
	}
	return files
}
