package corpus

import (
	"os"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Bugs of other operators, re-created from what was published about them. Each is found, by
// the kind of schedule that one would expect, and its fixed form has no finding.
func TestPublished(t *testing.T) {
	for name, test := range map[string]struct {
		why   string
		setup func(fixed bool) func(ctrl.Manager, *fault.Env) error
		// kind is what finds it, or any if the undisturbed run does.
		kind fault.Kind
		want string
		// fixedSize leaves the change of size out of the story.
		fixedSize bool
	}{
		"crossplane#3037": {
			why:   "killed between the external create and its record, an object is stuck for ever",
			setup: SetupPending, kind: fault.Crashes, want: "I1", fixedSize: true,
		},
		"upjet#561": {
			why:   "what an asynchronous create made is known to memory alone and made again after a restart",
			setup: SetupAsync, kind: fault.Crashes, want: "I3", fixedSize: true,
		},
		"operatify finalizer": {
			why:   "the finalizer goes although the external delete failed",
			setup: SetupAnyway, kind: fault.Faults, want: "I2", fixedSize: true,
		},
		"component-operator-runtime lastObservedAt": {
			why:   "each look at a cluster at rest writes the status",
			setup: SetupObserved, kind: fault.Crashes, want: "I5",
		},
		"cluster-api#13649": {
			why:   "a set that is not in the cache yet is made again",
			setup: SetupSets, kind: fault.Stale, want: "I1", fixedSize: true,
		},
		"rabbitmq#782": {
			why:   "killed while a volume grows, it keeps its old size for ever",
			setup: SetupExpand, kind: fault.Crashes, want: "I1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := explore(t, published(name, test.setup(false), test.fixedSize), test.kind)
			if !slices.Contains(d.broken, test.want) {
				t.Errorf("%s: broken invariants are %v; want %s among them", test.why, d.broken, test.want)
			}
			if d := explore(t, published(name+" fixed", test.setup(true), test.fixedSize)); d.broken != nil {
				t.Errorf("the fixed form breaks %v; want nothing", d.broken)
			}
		})
	}
}

func published(name string, operator func(ctrl.Manager, *fault.Env) error, fixedSize bool) fault.Scenario {
	s := story(name, operator)
	if fixedSize {
		s.Steps = slices.Delete(s.Steps, 1, 2)
	}
	return s
}

// Operators without a bug, in other styles than the Renter's, have no finding.
func TestNoFalseAlarms(t *testing.T) {
	for name, s := range map[string]fault.Scenario{
		"renter":        withRoles(story("renter", SetupRenter(NoBug))),
		"tells":         withSecret(story("tells", SetupRenter(TellsFailure))),
		"apply":         story("apply", SetupApplier),
		"cluster scope": inCluster(),
		"elected":       elected(),
		"slow vendor":   slow(),
	} {
		t.Run(name, func(t *testing.T) {
			if d := explore(t, s); d.broken != nil {
				t.Errorf("a correct operator breaks %v; want nothing", d.broken)
			}
		})
	}
}

func withSecret(s fault.Scenario) fault.Scenario {
	s.Secrets = []string{"hunter2"}
	return s
}

func withRoles(s fault.Scenario) fault.Scenario {
	s.Operator.RBAC = os.DirFS("roles")
	return s
}

func inCluster() fault.Scenario {
	s := story("cluster scope", SetupClasses)
	site := &Site{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: Spec{Size: 1}}
	s.Steps = []fault.Step{
		fault.Create(site).Becomes(site, ready),
		fault.Merge(site, `{"spec":{"size":2}}`).Becomes(site, ready),
		fault.Delete(site).Gone(site),
	}
	return s
}

func elected() fault.Scenario {
	s := story("elected", SetupAnnouncer)
	s.Operator.Manager.LeaderElection, s.Operator.Manager.LeaderElectionID, s.Operator.Manager.LeaderElectionNamespace = true, "announcer", "default"
	s.Replicas = 2
	i := item()
	s.Steps[1] = fault.Merge(i, `{"spec":{"text":"two"}}`)
	return s
}

func slow() fault.Scenario {
	s := story("slow vendor", SetupPoller)
	s.ExternalAPI = func() fault.ExternalAPI { return &Cloud{Boot: 20 * time.Second} }
	s.Steps = slices.Delete(s.Steps, 1, 2)
	return s
}
